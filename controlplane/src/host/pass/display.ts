/** A host's state in words for people; derived, never stored. */
import {
  type Deletion,
  DeletionMode,
  HostState,
  type HostStatus,
  RunKind,
  RunOutcome,
  RunPhase,
} from '@rackwright/messages';
import { activeRun } from './pass.ts';

const stateNames: Readonly<Record<number, string>> = {
  [HostState.NEW]: 'new',
  [HostState.MANAGEABLE]: 'manageable',
  [HostState.AVAILABLE]: 'available',
  [HostState.PROVISIONED]: 'provisioned',
  [HostState.EXTERNAL]: 'external',
  [HostState.GONE]: 'gone',
};

const runNames: Readonly<Record<number, string>> = {
  [RunKind.VERIFY]: 'verifying',
  [RunKind.INSPECT]: 'inspecting',
  [RunKind.CLEAN]: 'cleaning',
  [RunKind.DELETE]: 'deleting',
  [RunKind.POWER]: 'switching power',
  [RunKind.PROVISION]: 'provisioning',
  [RunKind.REIMAGE]: 'reimaging',
  [RunKind.SERVICE]: 'servicing',
  [RunKind.WORKFLOW]: 'running a workflow',
  [RunKind.RELEASE]: 'releasing',
  [RunKind.RESCUE]: 'booting into rescue',
  [RunKind.ADOPT]: 'adopting',
};

const waitingNames: Readonly<Record<string, string>> = {
  hold: 'held for a person',
  person: 'waiting for a person',
  wait: 'pausing',
  image: 'queued for its image',
};

/** "cleaning", "cleaning, waiting for agent", "pending force delete", "provisioned, in rescue". */
export function displayOf(status: HostStatus): string {
  const run = activeRun(status);
  if (run === undefined) {
    if (status.deletion !== undefined) return pendingName(status.deletion);
    const state = stateName(status.state);
    return isInRescue(status) ? `${state}, in rescue` : state;
  }
  const name = runNames[run.kind] ?? 'working';
  const pending = run.kind === RunKind.DELETE ? undefined : status.deletion;
  const base = pending === undefined ? name : `${pendingName(pending)}, ${name}`;
  const { waiting } = run;
  if (run.phase !== RunPhase.WAITING || waiting === undefined) return base;
  return `${base}, ${waitingNames[waiting.reason] ?? `waiting for ${waiting.reason}`}`;
}

/** "manageable" */
export function stateName(state: HostState): string {
  return stateNames[state] ?? 'unknown';
}

function pendingName({ mode }: Deletion): string {
  return mode === DeletionMode.FORCE ? 'pending force delete' : 'pending delete';
}

/**
 * Whether the runner was booted for a person, and may still be up. Not while it is only requested:
 * the boot may have failed, or another run may have followed.
 */
export function isInRescue({ inRescue, run, poweredOn }: HostStatus): boolean {
  const booted = run?.kind === RunKind.RESCUE && run.outcome === RunOutcome.SUCCEEDED;
  return inRescue && booted && poweredOn !== false;
}
