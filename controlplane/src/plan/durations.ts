/** How long a plan usually takes, filled in from what such runs took before. Pure. */
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import type { Plan } from '@rackwright/messages';
import type { UsualTimes } from '../host/index.ts';

/** Writes the usual durations of steps and whole into a plan; `manual`: a list of a person. */
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
  // A deletion is several runs, of which each has its own usual time.
  const whole = plan.stages.length > 0 ? undefined : usual.runMs(run);
  const known = stepsMs.filter((ms) => ms !== undefined);
  const sum = known.reduce((all, ms) => all + ms, 0);
  const wholeMs = whole ?? (known.length === stepsMs.length ? sum : undefined);
  if (wholeMs !== undefined && stepsMs.length > 0) plan.usualDuration = durationFromMs(wholeMs);
}
