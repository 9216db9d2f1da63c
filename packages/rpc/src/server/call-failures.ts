/** The failure of a call, for its caller and for the log: the same over every transport. */

import { ApiFailure } from '@rackwright/messages';
import { type Log, type Random, randomId } from '@rackwright/platform';

export interface FailureParts {
  readonly log: Log;
  readonly random: Random;
}

/**
 * An `ApiFailure` as it is, its cause in the log; anything else becomes `internal` with a
 * reference, and only the log has the details under that reference.
 */
export function failureForCaller(
  error: unknown,
  path: string,
  { log, random }: FailureParts,
): ApiFailure {
  if (!(error instanceof ApiFailure)) return hide(error, path, { log, random });
  if (error.cause !== undefined) log.warn({ method: path }, error.message, error.cause);
  return error;
}

function hide(error: unknown, path: string, { log, random }: FailureParts): ApiFailure {
  const reference = randomId(random);
  log.error({ method: path, reference }, 'a call failed by our fault', error);
  return new ApiFailure({
    kind: 'internal',
    message: `An internal error; the control plane's log has it under reference ${reference}.`,
    reason: 'INTERNAL',
    reference,
  });
}

/** The caller has gone, or its deadline has passed. */
export function callerGone(): ApiFailure {
  return new ApiFailure({ kind: 'cancelled', message: 'The call is over.', reason: 'CANCELLED' });
}

/** Ends a stream while the server closes. */
export function serverClosing(): ApiFailure {
  return new ApiFailure({
    kind: 'unavailable',
    message: 'The server is closing; connect again.',
    reason: 'SERVER_CLOSING',
  });
}
