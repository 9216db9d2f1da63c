/**
 * Templates that boot a disk which may hold data of an earlier use: only what the run itself has
 * written there may come to life without a reason that a person gave (DESIGN §4).
 */
import { type Run, type RunStep, StepState } from '@rackwright/messages';
import { engineSteps } from '../pass/step-names.ts';

/** Stands in the arguments of a switching on, where the host was dirty when its run was planned. */
export const oldDiskArgument = 'oldDisk';

/** Asked when the step begins: steps before it may have been skipped, or have failed. */
export function refusalOfUnwritten(run: Run, step: RunStep): string | undefined {
  if (step.name !== engineSteps.on || step.arguments[oldDiskArgument] === undefined)
    return undefined;
  const written = run.steps.slice(0, run.steps.indexOf(step)).some((each) => {
    const writes = each.destructive && each.arguments['power'] === undefined;
    return writes && each.state === StepState.SUCCEEDED;
  });
  if (written) return undefined;
  return (
    'the disk may hold data of its last use, and no step of this run that may write there ' +
    'has succeeded; clean the host first, or switch it on with boot_old_disk_reason'
  );
}
