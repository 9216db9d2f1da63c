/** The clean of the kill table: one host with a disk of each kind, cleaned once, and its judge. */
import { ErasureDocumentKind, type Host, HostState, RunPhase } from '@rackwright/api';
import { type DiskPlan, holdsPattern } from '@rackwright/sim/machine';
import { expect } from 'vitest';
import { diskLog, type MachinePlan, runnerStarts } from './machines.ts';
import type { Crash, Rack } from './rack.ts';

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

/** Verifies, asks for a clean, and waits for its end and its certificates. */
export async function cleanOnce(rack: Rack): Promise<void> {
  await rack.untilHost('h1', 'verified', ({ status }) => {
    return status?.state === HostState.MANAGEABLE && status.run?.phase === RunPhase.ENDED;
  });
  await rack.clients.hosts.cleanHost({ name: 'hosts/h1' });
  const host = await rack.untilHost('h1', 'cleaned', ({ status }) => {
    return status?.run?.number === 2n && status.run.phase === RunPhase.ENDED;
  });
  expect(host.status?.lastError?.failure?.message).toBeUndefined();
  expect(host.status?.dirty).toBe(false);
  expect(host.status?.lastCleaned?.certificates).toHaveLength(2);
}

/** Boots the runner once more: it reads again before anything else, and finds what came back. */
export async function readAgainInVain(rack: Rack): Promise<Host> {
  await rack.clients.hosts.inspectHost({ name: 'hosts/h1' });
  return rack.untilHost('h1', 'seen with its data again', ({ status }) => {
    return status?.run?.number === 3n && status.run.phase === RunPhase.ENDED;
  });
}

/** How many documents of each kind the host has. */
export async function documentsOf({ clients }: Rack) {
  const { erasureDocuments } = await clients.erasures.listErasureDocuments({ host: 'hosts/h1' });
  const count = (kind: ErasureDocumentKind) =>
    erasureDocuments.filter((document) => document.kind === kind).length;
  return {
    manifests: count(ErasureDocumentKind.MANIFEST),
    addenda: count(ErasureDocumentKind.ADDENDUM),
    revocations: count(ErasureDocumentKind.REVOCATION),
  };
}

export interface CleanEnd {
  /** How often the victim was started. */
  readonly lives: number;
  /** How often the NVMe disk saw a format begin. */
  readonly formats: number;
  /** Names of disks that still hold their pattern. */
  readonly left: readonly string[];
}

/** What the disks say, read from outside. */
export function judgeClean(rack: Rack, victim: Crash['victim']): CleanEnd {
  const [folder] = rack.machines;
  if (folder === undefined) throw new Error('no machine');
  const formats = diskLog(folder, formatDisk).filter(
    (act) => act.kind === 'format' && act.phase === 'begin',
  );
  return {
    lives: victim === 'runner' ? runnerStarts(folder) : rack.starts[victim],
    formats: formats.length,
    left: folder.plan.disks
      .filter((disk) => holdsPattern(folder.folder, disk))
      .map(({ name }) => name),
  };
}
