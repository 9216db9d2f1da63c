/** The power state of a host after a failed run. */
import { create } from '@bufbuild/protobuf';
import { actors, HostState, type Run, RunKind, RunOutcome, store } from '@rackwright/messages';
import { type DiskAfter, switchedOnMs } from '../deployment/deployment.ts';
import type { Pass } from '../pass/pass.ts';
import { engineSteps, isBootStep, isOfTemplate } from '../pass/step-names.ts';
import { movesRunner } from '../run/step-parts.ts';

/**
 * A run that fails half-way restores the power as it was: a host in use boots from its disk again,
 * unless the disk holds half an image; an available host is off.
 */
export function restorePower(
  { status, record }: Pass,
  run: Run,
  disk: DiskAfter | undefined,
): void {
  if (!run.steps.some(({ name, attempt }) => name === engineSteps.off && attempt > 0)) return;
  // G3: a run of the restored store may have ended since, and the host may be in use.
  if (record.lookFirstSince !== undefined) return;
  const steps = powerAfter(status.state, run, disk);
  if (steps.length === 0) return;
  record.pendingPower = create(store.PendingPowerSchema, { steps, by: actors.system });
}

function powerAfter(state: HostState, run: Run, disk: DiskAfter | undefined): string[] {
  switch (state) {
    case HostState.AVAILABLE:
      return hasBooted(run) ? [engineSteps.off] : [];
    case HostState.PROVISIONED: {
      const wasOn = run.steps.some(({ name }) => name === engineSteps.on);
      if (run.kind === RunKind.SERVICE) return wasOn ? [engineSteps.off, engineSteps.on] : [];
      if (run.kind === RunKind.WORKFLOW) return powerAfterWorkflow(run);
      if (disk === undefined) return [];
      if (disk === 'lost') return [engineSteps.off];
      // A host that has booted its image may still prove itself, or a person may inspect it.
      const isUp = disk === 'whole' && switchedOnMs(run) !== undefined;
      return isUp ? [] : [engineSteps.off, engineSteps.on];
    }
    default:
      // The runner of a stopped inspection has no further use.
      return run.kind === RunKind.INSPECT && run.outcome === RunOutcome.CANCELLED && hasBooted(run)
        ? [engineSteps.off]
        : [];
  }
}

function hasBooted({ steps }: Run): boolean {
  return steps.some(({ name, attempt }) => isBootStep(name) && attempt > 0);
}

/**
 * Where the template itself has switched the power last, or handed the host over, the power stays.
 */
function powerAfterWorkflow({ steps }: Run): string[] {
  const wasOn = steps.some((step) => !isOfTemplate(step) && step.name === engineSteps.on);
  const last = steps.findLast((step) => step.attempt > 0 && movesRunner(step));
  const power = last?.arguments['power'];
  const isTheirs = last?.handOff === true || power === 'powerOff' || power === 'bootDisk';
  return wasOn && !isTheirs ? [engineSteps.off, engineSteps.on] : [];
}
