/** How clean steps of the site's own are shown. */
import { durationMs } from '@bufbuild/protobuf/wkt';
import { type OwnCleanStep, ownPrefix, ownPriorityUsual } from '@rackwright/messages';
import type { TextColumn } from './table.ts';
import { duration } from './time.ts';

/** Columns of `fleet clean-step list`. */
export const ownStepColumns: readonly TextColumn<OwnCleanStep>[] = [
  { title: 'STEP', value: ({ name }) => `${ownPrefix}${name}` },
  { title: 'PRIORITY', value: ({ priority = ownPriorityUsual }) => String(priority) },
  { title: 'IMAGE', value: ({ image }) => image, widthMin: 20 },
  {
    title: 'TIMEOUT',
    value: ({ timeout }) => (timeout === undefined ? '' : duration(durationMs(timeout))),
    dropOrder: 3,
  },
  { title: 'ON FAILURE', value: rulesText, dropOrder: 2 },
  { title: 'DESCRIPTION', value: ({ description }) => description, dropOrder: 1, widthMin: 12 },
];

/** "continue after 2 retries, timed out: hold" */
export function rulesText({ retries, onFailure, onTimeout }: OwnCleanStep): string {
  const failure = onFailure || 'fail';
  const after = retries === 0 ? failure : `${failure} after ${retries} more`;
  const late = onTimeout || 'fail';
  return late === failure ? after : `${after}, timed out: ${late}`;
}
