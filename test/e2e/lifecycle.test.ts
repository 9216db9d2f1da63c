import { HostState } from '@rackwright/messages';
import { holdsPattern } from '@rackwright/sim/machine';
import { expect, test } from 'vitest';
import type { MachinePlan } from './machines.ts';
import { Rack } from './rack.ts';

const machine: MachinePlan = {
  name: 'h1',
  bmcAddress: '127.0.0.21',
  mac: '52:54:00:00:00:01',
  uuid: '0102030405060708090a0b0c0d0e0f10',
  serial: 'SN-1',
  disks: [
    { name: 'vda', serial: 'DISK-1', kind: 'discard' },
    { name: 'nvme0', serial: 'NVME-1', kind: 'format' },
  ],
};

const title = 'a host that boots by %s becomes available, and its disks hold nothing of before';

test.for(['bios', 'uefi', 'uefiHttp'] as const)(title, async (form) => {
  // Once as in a clone: each program from its source.
  const programs = form === 'bios' ? 'source' : 'bundle';
  const rack = await Rack.start({ machines: [{ ...machine, form }], programs });
  try {
    const host = await rack.untilHost('h1', 'available', ({ status }) => {
      return status?.state === HostState.AVAILABLE;
    });
    expect(host.status?.lastCleaned?.certificates).toHaveLength(2);
    const [folder] = rack.machines;
    for (const disk of machine.disks) {
      expect(folder !== undefined && holdsPattern(folder.folder, disk)).toBe(false);
    }
  } finally {
    await rack.stop();
  }
});
