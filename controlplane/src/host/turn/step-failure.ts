/** How steps fail, and which of them erase: what every judgement about a step shares. */
import { create } from '@bufbuild/protobuf';
import { eraseMetadataStep, eraseStep, type RunFailure, RunFailureSchema } from '@rackwright/api';

export function isErasure(stepName: string): boolean {
  return stepName === eraseStep || stepName === eraseMetadataStep;
}

/** Longest texts of a failure that a record keeps, in characters: records are bounded. */
const typeMax = 64;
export const messageMax = 1_024;
const detailMax = 4_096;

/** A text of at most `charactersMax`; what was cut off is said. */
export function cut(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text;
  return `${text.slice(0, charactersMax)}… (${text.length - charactersMax} more)`;
}

export function stepFailure(type: string, message: string, detail = ''): RunFailure {
  return create(RunFailureSchema, {
    type: cut(type, typeMax),
    message: cut(message, messageMax),
    detail: cut(detail, detailMax),
  });
}

export function invalidResult(message: string): RunFailure {
  return stepFailure('invalidResult', message);
}
