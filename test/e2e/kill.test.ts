import { HostGoal, HostState, RunPhase } from '@rackwright/api';
import { holdsPattern } from '@rackwright/sim/machine';
import { describe, expect, test } from 'vitest';
import { boundaries, killTable, victims } from './kill-table.ts';
import { diskLog, type MachinePlan, runnerStarts } from './machines.ts';
import { Rack } from './rack.ts';

const discardDisk = { name: 'vda', serial: 'DISK-1', kind: 'discard' } as const;
const formatDisk = { name: 'nvme0', serial: 'NVME-1', kind: 'format' } as const;
const machine: MachinePlan = {
  name: 'h1',
  bmcAddress: '127.0.0.21',
  mac: '52:54:00:00:00:01',
  uuid: '0102030405060708090a0b0c0d0e0f10',
  serial: 'SN-1',
  disks: [discardDisk, formatDisk],
};
const rowTimeoutMs = 600_000;

const rows = boundaries.flatMap(({ name, occurrence }) =>
  victims.map((victim) => ({ name, occurrence, victim, expected: killTable[name][victim] })),
);

describe.concurrent('the kill table', () => {
  test.for(rows)(
    'kill -9 of the $victim at $name',
    { timeout: rowTimeoutMs },
    async ({ name, occurrence, victim, expected }) => {
      const crash = { name, occurrence, victim };
      const rack = await Rack.start({ machines: [machine], crash, goal: HostGoal.MANAGEABLE });
      try {
        await cleanOnce(rack);
        const [folder] = rack.machines;
        if (folder === undefined) throw new Error('no machine');
        const lives = victim === 'runner' ? runnerStarts(folder) : rack.starts[victim];
        expect(lives, 'the victim was killed once and came back').toBe(2);
        const formats = diskLog(folder, formatDisk).filter(
          (act) => act.kind === 'format' && act.phase === 'begin',
        );
        expect(machine.disks.filter((disk) => holdsPattern(folder.folder, disk))).toEqual([]);
        expect(expected.formats).toContain(formats.length);
      } finally {
        await rack.stop();
      }
    },
  );
});

/** Verifies, asks for a clean, and waits for its end and its certificates. */
async function cleanOnce(rack: Rack): Promise<void> {
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
