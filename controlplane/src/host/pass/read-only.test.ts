import type { HostStatus, Run, RunStep } from '@rackwright/messages';
import { expect, test } from 'vitest';
import type { Pass, PassView } from './pass.ts';
import type { RunView, StepView } from './read-only.ts';

type Accepts<Changed, Given> = Given extends Changed ? 'accepted' : 'refused';

// The test is the compilation: another value is not of the type.
const verdicts: {
  readonly pass: Accepts<Pass, PassView>;
  readonly status: Accepts<HostStatus, PassView['status']>;
  readonly run: Accepts<Run, RunView>;
  readonly step: Accepts<RunStep, StepView>;
  readonly effects: Accepts<Pass['effects'], PassView['effects']>;
  readonly reading: Accepts<PassView, Pass>;
} = {
  ...{ pass: 'refused', status: 'refused', run: 'refused', step: 'refused', effects: 'refused' },
  reading: 'accepted',
};

test('a function that changes a pass refuses one that is only for reading', () => {
  expect(verdicts.pass).toBe('refused');
  expect(verdicts.reading).toBe('accepted');
});
