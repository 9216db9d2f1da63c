/**
 * The one error that stores throw. Outcomes that a caller must decide on (conflict, unknown) are
 * results, never errors; an error means that the call could not be made or not be answered.
 */

/**
 * - `invalidKey`, `invalidPrefix`, `invalidWriteId`, `invalidRevision`, `valueTooLarge`: the
 *   caller's mistake; nothing was sent, a repetition fails alike.
 * - `closed`: the store was closed, by its owner or because it failed; open it again.
 * - `unavailable`: a read could not be answered now; try again later.
 * - `incarnationChanged`: the store behind this handle was replaced; open it again and treat it as
 *   a new incarnation (DESIGN §10, restore).
 * - `notWritable`, `otherSchema`, `corrupt`, `inUse`, `serverTooOld`, `wrongConfiguration`,
 *   `durabilityUnproven`, `incarnationMismatch`: opening was refused. The third also ends an open
 *   store, when a server returns that does not sync before it acknowledges.
 */
export type StoreErrorCode =
  | 'invalidKey'
  | 'invalidPrefix'
  | 'invalidWriteId'
  | 'invalidRevision'
  | 'valueTooLarge'
  | 'closed'
  | 'unavailable'
  | 'incarnationChanged'
  | 'notWritable'
  | 'otherSchema'
  | 'corrupt'
  | 'inUse'
  | 'serverTooOld'
  | 'wrongConfiguration'
  | 'durabilityUnproven'
  | 'incarnationMismatch';

export class StoreError extends Error {
  readonly code: StoreErrorCode;

  /** `message` says what is wrong and what would be right. */
  constructor(code: StoreErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'StoreError';
    this.code = code;
  }
}
