import { create } from '@bufbuild/protobuf';
import { agent, RerunClass } from '@rackwright/api';
import { expect, test } from 'vitest';
import { cleanPlan } from './plan.ts';

test.each([
  [undefined, true],
  [true, true],
  [false, false],
])('takes a step that says destructive: %s for destructive: %s', (said, taken) => {
  const step = create(agent.StepDescriptionSchema, {
    name: 'vendor.reset',
    priority: 5,
    rerunClass: RerunClass.SAFE,
    ...(said === undefined ? {} : { destructive: said }),
  });
  const [planned] = cleanPlan({ known: [{ description: step, source: 'runner' }] }).enabled;
  expect(planned).toMatchObject({ name: 'vendor.reset', destructive: taken });
});
