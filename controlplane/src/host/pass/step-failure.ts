/** How steps fail, and which of them erase: shared by all checks of steps. */
import { create } from '@bufbuild/protobuf';
import {
  type FailureDetails,
  type FailureName,
  failureTypeOf,
  type RunFailure,
  RunFailureSchema,
} from '@rackwright/messages';

/** The longest text of a failure in a record, in characters: records are bounded. */
export const messageMax = 1_024;
const detailMax = 4_096;

/** A text of at most `charactersMax`; a mark shows that it was truncated. */
export function truncate(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text;
  return `${text.slice(0, charactersMax)}… (${text.length - charactersMax} more)`;
}

export function stepFailure(
  name: FailureName,
  message: string,
  detail = '',
  details?: FailureDetails,
): RunFailure {
  return create(RunFailureSchema, {
    type: failureTypeOf(name),
    message: truncate(message, messageMax),
    detail: truncate(detail, detailMax),
    ...(details === undefined ? {} : { details }),
  });
}

export function invalidResult(message: string): RunFailure {
  return stepFailure('invalidResult', message);
}
