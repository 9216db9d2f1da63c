/** The calls of an act that takes several governed calls and is read back. */
import type { Clock } from '@rackwright/platform';
import type { BmcFailed, BmcResult } from '../driver.ts';
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

/** Whether the BMC has no such resource. */
export function isAbsent(result: BmcResult<unknown>): boolean {
  return result.kind === 'failed' && result.type === 'unsupported';
}

/**
 * Of the members of a list the first that could not be read and may exist: where the one that is
 * looked for is not among the others, it may be this one.
 */
export class FirstFailure {
  failure: BmcFailed | undefined;

  note(result: BmcResult<unknown>): void {
    if (result.kind === 'failed' && !isAbsent(result)) this.failure ??= result;
  }
}
