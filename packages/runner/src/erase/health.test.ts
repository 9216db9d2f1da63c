import { expect, test } from 'vitest';
import { fileDisks } from '../linux/file-disks.ts';
import type { BlockDevices } from '../machine/block-devices.ts';
import { addDisk, clock, folder, run, useFolder } from './erase.fixture.ts';

useFolder();

/** File disks that count up their media errors, as worn ones do; the second says nothing. */
function wearing(): BlockDevices {
  const devices = fileDisks(folder, clock);
  let listings = 0;
  return {
    ...devices,
    list: async () => {
      const listing = await devices.list();
      listings += 1;
      const health = { mediaErrors: listings, passed: true };
      const said = listing.devices.map((each) =>
        each.name === 'sda' ? { ...each, health } : each,
      );
      return { ...listing, devices: said };
    },
  };
}

test('the evidence says what each device told of its health before and after', async () => {
  addDisk('sda');
  addDisk('sdb');
  const { evidence } = await run({ context: { devices: wearing() } });
  const [sda, sdb] = evidence?.devices ?? [];
  expect(sda).toMatchObject({ healthBefore: { mediaErrors: 1n, passed: true } });
  expect(sda).toMatchObject({ healthAfter: { mediaErrors: 2n, passed: true } });
  expect(sdb).not.toHaveProperty('healthBefore');
  expect(sdb).not.toHaveProperty('healthAfter');
});
