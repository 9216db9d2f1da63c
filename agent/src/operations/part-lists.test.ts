import type { BmcDriver, BmcInventory, BmcResult } from '@rackwright/bmc';
import { quietLog } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import { partsOf } from './part-lists.ts';

const nothing = { processors: [], memory: [], drives: [], interfaces: [], firmware: [] };

/** The parts that are read from a BMC with this answer. */
async function listed(answer: () => Promise<BmcResult<BmcInventory>>, isOver = false) {
  const driver = { readInventory: answer } as Partial<BmcDriver> as BmcDriver;
  return partsOf(driver, isOver ? AbortSignal.abort() : new AbortController().signal, log);
}

const warned: unknown[] = [];
const log = {
  ...quietLog,
  warn: (_fields: unknown, _message: string, error?: unknown) => void warned.push(error),
};

const answering = (more: Partial<BmcInventory>) => async (): Promise<BmcResult<BmcInventory>> => {
  return { kind: 'ok', value: { ...nothing, complete: true, ...more } };
};

test('reported memory, network cards and firmware are bounded, whatever a BMC says', async () => {
  const parts = await listed(
    answering({
      memory: Array.from({ length: 65 }, () => ({ capacityMiB: 16_384, slot: 'A'.repeat(500) })),
      interfaces: [
        { mac: ' 52:54:00:AA:00:01', speedMbps: -1, linkUp: true },
        { mac: '52:54:00:aa:00:02', speedMbps: Number.POSITIVE_INFINITY, name: 'NIC.1' },
      ],
      firmware: [{ name: 'BIOS', version: '2.1' }],
    }),
  );
  expect(parts).toMatchObject({
    complete: false,
    interfaces: [
      { mac: '52:54:00:aa:00:01', speedMbps: 0, linkUp: true },
      { mac: '52:54:00:aa:00:02', speedMbps: 0xffff_ffff, linkUp: false, name: 'NIC.1' },
    ],
    firmware: [{ name: 'BIOS', version: '2.1' }],
  });
  expect(parts?.memoryModules).toHaveLength(64);
  expect(parts?.memoryModules[0]).toMatchObject({ sizeBytes: 16n << 30n });
  expect(parts?.memoryModules[0]?.slot.length).toBeLessThanOrEqual(64);
});

test('a BMC that does not answer, or has no time left, yields no list', async () => {
  const unread = { complete: false, memoryModules: [] };
  const failed = { kind: 'failed', type: 'rejected', message: 'no', backendText: '' } as const;
  expect(await listed(async () => failed)).toMatchObject(unread);
  const broken = new Error('broken');
  expect(await listed(() => Promise.reject(broken))).toMatchObject(unread);
  expect(warned).toEqual([broken]);
  const firmware = [{ name: 'BIOS', version: '2.1' }] as const;
  expect(await listed(answering({ firmware }), true)).toMatchObject({ ...unread, firmware: [] });
  expect(await partsOf({} as BmcDriver, new AbortController().signal, log)).toBeUndefined();
});
