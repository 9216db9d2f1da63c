/** The six results, their wire form, and the arithmetic of trying again. Pure. */
export { type BackOff, backoffDelayMs, fullJitterDelayMs } from './back-off.ts';
export { boundResult, boundText, messageBytesMax } from './bounds.ts';
export {
  afterConflict,
  type Conflict,
  type ConflictDecision,
  conflictBudgetMs,
} from './conflict-budget.ts';
export {
  type Complete,
  type ConflictReason,
  type Continuing,
  conflictReasons,
  endsAttempt,
  type Failed,
  type FailureType,
  type FinalResult,
  failureTypes,
  type HostUpdated,
  type Result,
  type RetryAfter,
  type TransientCause,
  type TransientError,
  transientCauses,
} from './result.ts';
export { resultFromWire, resultToWire, type Unsupported } from './wire.ts';
