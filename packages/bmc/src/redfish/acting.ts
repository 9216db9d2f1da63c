/** What an act needs that is told in several turns of the governor and read back. */
import type { Clock } from '@rackwright/platform';
import type { BmcResult } from '../driver.ts';
import type { ReadBackTimings } from '../read-back.ts';
import type { Conversation, Get } from './conversation.ts';

export interface ActCalls {
  /** One turn of the governor. */
  turn<T>(act: (talk: Conversation) => Promise<BmcResult<T>>): Promise<BmcResult<T>>;
  readonly clock: Clock;
  readonly readBack: ReadBackTimings;
  readonly signal: AbortSignal | undefined;
}

/** Reads in turns of their own. */
export function readBy({ turn, signal }: ActCalls): Get {
  return (path) => turn((talk) => talk.get(path, signal));
}

/** Whether the BMC will not have it, in whatever words. */
export function isRefused(
  result: BmcResult<void>,
): result is Extract<BmcResult<never>, { kind: 'failed' }> {
  return result.kind === 'failed' && (result.type === 'rejected' || result.type === 'unsupported');
}
