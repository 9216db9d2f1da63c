/** The usual durations of a plan, from earlier runs of the same kind. Pure. */
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import type { Plan } from '@rackwright/messages';
import type { UsualTimes } from '../host/index.ts';

/**
 * Writes the usual durations of the steps and of the whole into a plan; `manual`: a person's list.
 */
export function addUsualDurations(
  plan: Plan,
  usual: UsualTimes,
  of: { readonly manual: boolean; readonly workflowRun: string },
): void {
  const steps = plan.steps.map((step) => ({
    name: step.step,
    title: step.title,
    arguments: step.arguments,
  }));
  const run = { ...of, kind: plan.kind, steps };
  const stepsMs = steps.map((step) => usual.stepMs(run, step));
  for (const [index, step] of plan.steps.entries()) {
    const ms = stepsMs[index];
    if (ms !== undefined) step.usualDuration = durationFromMs(ms);
  }
  // A deletion has several runs, each with its own usual duration.
  const whole = plan.stages.length > 0 ? undefined : usual.runMs(run);
  const known = stepsMs.filter((ms) => ms !== undefined);
  const sum = known.reduce((all, ms) => all + ms, 0);
  const wholeMs = whole ?? (known.length === stepsMs.length ? sum : undefined);
  if (wholeMs !== undefined && stepsMs.length > 0) plan.usualDuration = durationFromMs(wholeMs);
}
