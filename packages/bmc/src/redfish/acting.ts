/** The calls of an act that takes several governed calls and is read back. */
import type { Clock } from '@rackwright/platform';
import type { BmcResult } from '../driver.ts';
import type { ReadBackTimings } from '../read-back.ts';
import type { Conversation, Get } from './conversation.ts';

export interface ActCalls {
  /** One governed call. */
  governed<T>(act: (talk: Conversation) => Promise<BmcResult<T>>): Promise<BmcResult<T>>;
  readonly clock: Clock;
  readonly readBack: ReadBackTimings;
  readonly signal: AbortSignal | undefined;
}

/** Each read is a governed call of its own. */
export function readBy({ governed, signal }: ActCalls): Get {
  return (path) => governed((talk) => talk.get(path, signal));
}

/** Whether the BMC refuses it, in any words. */
export function isRefused(
  result: BmcResult<void>,
): result is Extract<BmcResult<never>, { kind: 'failed' }> {
  return result.kind === 'failed' && (result.type === 'rejected' || result.type === 'unsupported');
}
