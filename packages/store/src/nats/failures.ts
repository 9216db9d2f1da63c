/**
 * The meaning of the client's errors. Unlisted ones are uncertain: the server's action is unknown.
 */
import { JetStreamApiError } from '@nats-io/jetstream';

/** "stream not found". */
const STREAM_NOT_FOUND = 10059;
/** "stream name already in use with a different configuration". */
const STREAM_NAME_IN_USE = 10058;
/** "wrong last sequence": another write was there first. */
const WRONG_LAST_SEQUENCE = 10071;
/** "wrong last sequence", without a number: a write of the same key is under way, or was first. */
const WRONG_LAST_SEQUENCE_IN_PROCESS = 10164;

export function codeOf(error: unknown): number | undefined {
  return error instanceof JetStreamApiError ? error.code : undefined;
}

export function isStreamNotFound(error: unknown): boolean {
  return codeOf(error) === STREAM_NOT_FOUND;
}

export function isNameInUse(error: unknown): boolean {
  return codeOf(error) === STREAM_NAME_IN_USE;
}

/**
 * The meaning of a failed publish: `wrongRevision`, the server compared and refused; `uncertain`,
 * it may have been stored or still be (time-outs, no leader, a failing disk: 10077 and all others).
 */
export function publishFailure(error: unknown): 'wrongRevision' | 'uncertain' {
  switch (codeOf(error)) {
    case WRONG_LAST_SEQUENCE:
    case WRONG_LAST_SEQUENCE_IN_PROCESS:
      return 'wrongRevision';
    default:
      return 'uncertain';
  }
}
