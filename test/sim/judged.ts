/** What the judges look at: hosts as their records say, and the machines behind them. */
import type { store } from '@rackwright/messages';
import type { MachineLogs, SimMachine } from './machine.ts';
import type { WorldView } from './view.ts';

/** A host as the last revision of its record says. */
export interface JudgedHost {
  readonly key: string;
  readonly revision: number;
  readonly record: store.HostRecord;
}

export interface JudgeParts {
  readonly view: WorldView;
  readonly logs: MachineLogs;
  readonly machines: ReadonlyMap<string, SimMachine>;
  /** Until when an agent of the rack may begin destructive work (R11). */
  readonly leaseUntilMs: () => number;
}

/**
 * The machine that a host is, by what its BMC has proved: its address may lead elsewhere for a
 * while, when people cross cables.
 */
export function machineOf(
  machines: ReadonlyMap<string, SimMachine>,
  { record }: JudgedHost,
): SimMachine | undefined {
  const guid = record.host?.status?.bmcIdentity?.guid ?? new Uint8Array();
  return [...machines.values()].find((machine) => Buffer.from(machine.guid).equals(guid));
}
