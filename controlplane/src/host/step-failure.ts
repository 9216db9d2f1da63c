/** How steps fail, and which of them erase: what every judgement about a step shares. */
import { create } from '@bufbuild/protobuf';
import { type RunFailure, RunFailureSchema } from '@rackwright/api';
import { eraseMetadataStep, eraseStep } from '../steps/index.ts';

export function isErasure(stepName: string): boolean {
  return stepName === eraseStep || stepName === eraseMetadataStep;
}

export function stepFailure(type: string, message: string, detail = ''): RunFailure {
  return create(RunFailureSchema, { type, message, detail });
}

export function invalidResult(message: string): RunFailure {
  return stepFailure('invalidResult', message);
}
