/** The six results, their wire form, and the arithmetic of trying again. Pure. */
export { type BackOff, backoffDelayMs, fullJitterDelayMs } from './back-off.ts';
export { boundResult, boundText, messageBytesMax, outputTailBytesMax } from './bounds.ts';
export {
  type Complete,
  type ConflictReason,
  type Continuing,
  type FailedAttempt,
  type FinalResult,
  type Result,
  type RetryAfter,
  type TransientError,
} from './result.ts';
export { resultFromWire, resultToWire, type UnsupportedReport } from './wire.ts';
