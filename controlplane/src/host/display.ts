/** The words in which people read a host's state; derived, never stored. */
import { HostState, type HostStatus, RunKind, RunPhase } from '@rackwright/api';
import { activeRun } from './turn.ts';

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

/** "cleaning", "cleaning, waiting for agent", "pending delete", "manageable". */
export function displayOf(status: HostStatus): string {
  const run = activeRun(status);
  if (run === undefined) {
    return status.deletion === undefined
      ? (stateNames[status.state] ?? 'unknown')
      : 'pending delete';
  }
  const name = runNames[run.kind] ?? 'working';
  const pending = status.deletion !== undefined && run.kind !== RunKind.DELETE;
  const base = pending ? `pending delete, ${name}` : name;
  const { waiting } = run;
  if (run.phase !== RunPhase.WAITING || waiting === undefined) return base;
  return `${base}, waiting for ${waiting.reason}`;
}
