/** The control step `wait`: its end, from its stored fields. */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { StepView } from './read-only.ts';
import { engineSteps } from './step-names.ts';

/** Wall time in milliseconds; undefined for a step that is no pause, or has not begun. */
export function pauseEndsMs({ name, startTime, arguments: given }: StepView): number | undefined {
  if (name !== engineSteps.wait || startTime === undefined) return undefined;
  return timestampMs(startTime) + Number(given['seconds'] ?? 0) * 1_000;
}
