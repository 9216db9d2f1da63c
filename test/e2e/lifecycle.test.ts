import {
  BootAsker,
  type BootStep,
  BootStepKind,
  BootTransport,
  type Host,
  HostState,
} from '@rackwright/messages';
import type { FirmwareForm } from '@rackwright/sim/firmware';
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

/** Every step that its firmware took stands in the trace of its boot. */
function expectWholeBoot(host: Host, form: FirmwareForm): void {
  const [last] = host.status?.boots ?? [];
  expect(last).toMatchObject({ mac: machine.mac, missing: BootStepKind.UNSPECIFIED });
  const loads = form === 'uefiHttp' ? BootTransport.HTTP : BootTransport.TFTP;
  const { DISCOVER, OFFER, REQUEST, ACK, LOADER, SCRIPT, KERNEL, INITRD, RUNNER } = BootStepKind;
  const isPxeRequest = ({ kind }: BootStep) => kind === REQUEST || kind === ACK;
  expect(last?.steps.filter((step) => !isPxeRequest(step))).toMatchObject([
    { kind: DISCOVER, asker: BootAsker.FIRMWARE },
    { kind: OFFER, asker: BootAsker.FIRMWARE },
    { kind: LOADER, transport: loads },
    { kind: DISCOVER, asker: BootAsker.LOADER },
    { kind: OFFER, asker: BootAsker.LOADER },
    ...[SCRIPT, KERNEL, INITRD].map((kind) => ({ kind, transport: BootTransport.HTTP })),
    { kind: RUNNER },
  ]);
  const files = last?.steps.filter(({ transport }) => transport !== 0) ?? [];
  expect(files.map(({ bytes }) => bytes > 0n)).toEqual(files.map(() => true));
}

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
    expectWholeBoot(host, form);
    const [folder] = rack.machines;
    for (const disk of machine.disks) {
      expect(folder !== undefined && holdsPattern(folder.folder, disk)).toBe(false);
    }
  } finally {
    await rack.stop();
  }
});
