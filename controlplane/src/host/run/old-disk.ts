/**
 * Templates that boot a disk which may have data of an earlier use: without a person's reason, only
 * a disk that the run itself has written is booted (DESIGN §4).
 */
import { type Run, type RunStep, StepState } from '@rackwright/messages';
import { engineSteps } from '../pass/step-names.ts';

/** In the arguments of a power on, when the host was dirty at the planning of its run. */
export const oldDiskArgument = 'oldDisk';

/** Checked when the step begins: earlier steps may have been skipped, or have failed. */
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
