/** The clean of the kill table: one host with a disk of each kind, cleaned once, and its judge. */
import { ErasureDocumentKind, type Host, HostState, RunPhase } from '@rackwright/messages';
import { type DiskPlan, holdsPattern } from '@rackwright/sim/machine';
import { expect } from 'vitest';
import type { Crash, Victim } from './crash.ts';
import { diskLog, type MachineFolder, type MachinePlan, runnerStarts } from './machines.ts';
import type { Rack } from './rack.ts';

const discardDisk = { name: 'vda', serial: 'DISK-1', kind: 'discard' } as const;
const formatDisk = { name: 'nvme0', serial: 'NVME-1', kind: 'format' } as const;

/** `faults` are those of the disk that is discarded and of the one that is formatted. */
export function machineWith(
  faults: readonly [DiskPlan['faults'], DiskPlan['faults']],
): MachinePlan {
  const [discardFaults = [], formatFaults = []] = faults;
  return {
    name: 'h1',
    bmcAddress: '127.0.0.21',
    mac: '52:54:00:00:00:01',
    uuid: '0102030405060708090a0b0c0d0e0f10',
    serial: 'SN-1',
    disks: [
      { ...discardDisk, faults: discardFaults },
      { ...formatDisk, faults: formatFaults },
    ],
  };
}

export const machine: MachinePlan = machineWith([[], []]);

/** The disk that is discarded confirms that, flushes, and has its data back once it was off. */
export const forgetfulMachine: MachinePlan = {
  ...machine,
  disks: machine.disks.map((disk) =>
    disk.name === discardDisk.name
      ? { ...disk, lies: [{ kind: 'losesAtPowerOff', flushed: true }] }
      : disk,
  ),
};

/** One host on a rack, and how often the rack's programs had been started when it came. */
export interface Row {
  readonly rack: Rack;
  readonly machine: MachineFolder;
  readonly startsBefore: Readonly<Rack['starts']>;
}

/** The row of a rack that was started with one machine. */
export function onlyRow(rack: Rack): Row {
  const [machineFolder] = rack.machines;
  if (machineFolder === undefined) throw new Error('no machine');
  const startsBefore = { controlplane: 1, agent: 1, replica: 1 };
  return { rack, machine: machineFolder, startsBefore };
}

/** A row with a machine of its own on a rack that other rows were on; `crash` counts from now. */
export async function newRow(rack: Rack, kind: MachinePlan, crash: Crash): Promise<Row> {
  const startsBefore = { ...rack.starts };
  return { rack, machine: await rack.addHost(kind, crash), startsBefore };
}

/** How many lives of a process the row has seen. */
export function livesOf({ rack, machine: at, startsBefore }: Row, victim: Victim): number {
  return victim === 'runner' ? runnerStarts(at) : 1 + rack.starts[victim] - startsBefore[victim];
}

/** Verifies, asks for a clean, and waits for its end and its certificates. */
export async function cleanOnce({ rack, machine: { plan } }: Row): Promise<void> {
  await rack.untilHost(plan.name, 'verified', ({ status }) => {
    return status?.state === HostState.MANAGEABLE && status.run?.phase === RunPhase.ENDED;
  });
  await rack.clients.hosts.cleanHost({ name: `hosts/${plan.name}` });
  const host = await rack.untilHost(plan.name, 'cleaned', ({ status }) => {
    return status?.run?.number === 2n && status.run.phase === RunPhase.ENDED;
  });
  expect(host.status?.lastError?.failure?.message).toBeUndefined();
  expect(host.status?.dirty).toBe(false);
  expect(host.status?.lastCleaned?.certificates).toHaveLength(2);
}

/** Boots the runner once more: it reads again before anything else, and finds what came back. */
export async function readAgainInVain({ rack, machine: { plan } }: Row): Promise<Host> {
  await rack.clients.hosts.inspectHost({ name: `hosts/${plan.name}` });
  return rack.untilHost(plan.name, 'seen with its data again', ({ status }) => {
    return status?.run?.number === 3n && status.run.phase === RunPhase.ENDED;
  });
}

/** How many documents of each kind the host has. */
export async function documentsOf({ rack, machine: { plan } }: Row) {
  const { erasures } = rack.clients;
  const { erasureDocuments } = await erasures.listErasureDocuments({ host: `hosts/${plan.name}` });
  const count = (kind: ErasureDocumentKind) =>
    erasureDocuments.filter((document) => document.kind === kind).length;
  return {
    manifests: count(ErasureDocumentKind.MANIFEST),
    addenda: count(ErasureDocumentKind.ADDENDUM),
    revocations: count(ErasureDocumentKind.REVOCATION),
  };
}

export interface CleanEnd {
  /** How many lives of the victim the row has seen. */
  readonly lives: number;
  /** How often the NVMe disk saw a format begin. */
  readonly formats: number;
  /** Names of disks that still hold their pattern. */
  readonly left: readonly string[];
}

/** What the disks say, read from outside. */
export function judgeClean(row: Row, victim: Victim): CleanEnd {
  const { machine: at } = row;
  const formats = diskLog(at, formatDisk).filter(
    (act) => act.kind === 'format' && act.phase === 'begin',
  );
  return {
    lives: livesOf(row, victim),
    formats: formats.length,
    left: at.plan.disks.filter((disk) => holdsPattern(at.folder, disk)).map(({ name }) => name),
  };
}
