import { create } from '@bufbuild/protobuf';
import { BmcIdentitySchema, BurnInKind } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import { expect, test } from 'vitest';
import {
  addDisk,
  type Change,
  guid,
  heldAs,
  image,
  mib,
  regionsAs,
  run,
  useFolder,
} from '../erase/erase.fixture.ts';
import { DeviceError, type OpenRegion } from '../machine/block-devices.ts';
import { keptOf } from './burn-in.fixture.ts';
import { burnInDisk, worse } from './disk.ts';

useFolder();

const before = Buffer.alloc(512, 'PATTERN!');

async function burn(given: Record<string, string> = {}, change: Change = {}) {
  const order = { step: 'burnin.disk', arguments: { share: '100', ...given }, ...change.order };
  return await run({ ...change, step: burnInDisk, order });
}

/** Regions of every disk, altered by `change`. */
function disksWith(change: (open: OpenRegion) => Partial<OpenRegion>): Change {
  return { context: { devices: heldAs((held) => regionsAs(held, change)) } };
}

/** The number of blocks of a disk that still hold their old content. */
function blocksLeft(disk: string): number {
  const bytes = image(disk);
  let left = 0;
  for (let at = 0; at < bytes.length; at += 512) {
    if (bytes.subarray(at, at + 512).equals(before)) left += 1;
  }
  return left;
}

test('the burn-in works every disk of the order over all of it, and tells each', async () => {
  addDisk('sda');
  addDisk('sdb', {}, ['sdb'], mib);
  const end = await burn();
  expect(end.result.kind).toBe('complete');
  expect(keptOf(end)).toMatchObject({ kind: BurnInKind.DISK, passed: true, problem: '' });
  expect(keptOf(end)?.parts).toMatchObject([
    { name: 'S-sda', bytes: BigInt(2 * mib), errors: 0n, finding: '' },
    { name: 'S-sdb', bytes: BigInt(mib), errors: 0n, finding: '' },
  ]);
  expect([blocksLeft('sda'), blocksLeft('sdb')]).toEqual([0, 0]);
});

test('the burn-in works a share of a disk, and leaves the rest', async () => {
  addDisk('sda', {}, ['sda'], 4 * mib);
  const end = await burn({ share: '25' });
  expect(keptOf(end)?.parts).toMatchObject([{ bytes: BigInt(mib) }]);
  expect(blocksLeft('sda')).toBe((3 * mib) / 512);
});

test('a disk that has no time gets at least one piece, which is read back', async () => {
  addDisk('sda', {}, ['sda'], 64 * mib);
  let nowMs = 0;
  // Every look at this clock takes a second.
  const clock = { nowMs: () => 0, suspendAwareMs: () => 1_000 * nowMs++, after: () => () => {} };
  const end = await burn({ duration: '1s' }, { context: { clock } });
  expect(end.result.kind).toBe('complete');
  const [part] = keptOf(end)?.parts ?? [];
  expect(part?.bytes).toBeGreaterThan(0n);
  expect(part?.bytes).toBeLessThan(BigInt(8 * mib));
  expect(part?.readPerSecond).toBeGreaterThan(0n);
});

test('a disk that returns an old block is found', async () => {
  addDisk('sda');
  const at = mib + 7 * 512;
  const change = disksWith((open) => ({
    readInto: async (offset, target) => {
      await open.readInto(offset, target);
      if (at >= offset && at < offset + target.length) target.set(before, at - offset);
    },
  }));
  const end = await burn({}, change);
  expect(end.result).toMatchObject({ kind: 'failed', type: 'hardwareDefect' });
  const problem = `disk S-sda (sda): what was written at ${at} reads back differently`;
  expect(keptOf(end)).toMatchObject({ passed: false, problem });
  expect(keptOf(end)?.parts).toMatchObject([{ errors: 1n }]);
});

test('a disk that writes to another place, or nowhere, is found', async () => {
  addDisk('sda');
  const moved = disksWith((open) => ({
    write: (offset, bytes) => open.write(offset === mib ? 0 : offset, bytes),
  }));
  expect(keptOf(await burn({}, moved))?.problem).toContain('reads back differently');
  const dropped = disksWith(() => ({ write: async () => {} }));
  const [part] = keptOf(await burn({}, dropped))?.parts ?? [];
  expect(part?.errors).toBeGreaterThanOrEqual(2_048n);
});

test('a block of another place is reported as such', async () => {
  addDisk('sda');
  const swapped = disksWith((open) => ({
    readInto: (offset, target) => open.readInto(offset === mib ? 0 : offset, target),
  }));
  const problem = `what was written at ${mib} reads back differently; it is what belongs at 0`;
  expect(keptOf(await burn({}, swapped))?.problem).toContain(problem);
});

test.each<[string, (open: OpenRegion) => Partial<OpenRegion>]>([
  ['read', () => ({ readInto: () => Promise.reject(new DeviceError('cannot read')) })],
  ['write', () => ({ write: () => Promise.reject(new DeviceError('cannot write')) })],
  ['flush', () => ({ flush: () => Promise.reject(new DeviceError('cannot flush')) })],
])('a disk that cannot %s fails, and another one is worked all the same', async (what, change) => {
  addDisk('sda');
  addDisk('sdb');
  const devices = heldAs((held, name) => (name === 'sda' ? regionsAs(held, change) : {}));
  const end = await burn({}, { context: { devices } });
  expect(end.result).toMatchObject({ type: 'hardwareDefect' });
  expect(keptOf(end)?.problem).toBe(`disk S-sda (sda): cannot ${what}`);
  expect(keptOf(end)?.parts).toMatchObject([
    { name: 'S-sda' },
    { name: 'S-sdb', bytes: BigInt(2 * mib), errors: 0n },
  ]);
});

test('a disk that is pulled is gone, and no defect', async () => {
  addDisk('sda');
  const gone = new DeviceError('is gone', { loss: 'vanished' });
  const end = await burn(
    {},
    disksWith(() => ({ write: () => Promise.reject(gone) })),
  );
  expect(end.result).toMatchObject({ kind: 'failed', type: 'deviceVanished' });
});

test('a disk that is too slow does not pass', async () => {
  addDisk('sda');
  const end = await burn({ rate_min: '100000' });
  expect(keptOf(end)?.problem).toMatch(/^disk S-sda \(sda\): writes \d+ MB\/s, reads \d+ MB\/s$/);
});

test.each<[string, string, Change]>([
  ['another machine', 'identityMismatch', { order: { expectedIdentity: other() } }],
  ['a disk that is in no plan', 'deviceChanged', { afterPlan: () => addDisk('sdb') }],
  ['no disk', 'noDevices', { order: { devices: [] }, context: { devices: heldNone() } }],
  ['an order without a seed', 'invalidArgument', { order: { challengeSeed: new Uint8Array() } }],
  ['a check', 'invalidArgument', { order: { mode: agent.StepMode.CHECK } }],
  [
    'an agent that does not let it begin',
    'cancelled',
    { context: { requestBegin: async () => ({ kind: 'over', reason: 'the lease is over' }) } },
  ],
])('the burn-in writes nothing: %s', async (_, type, change) => {
  addDisk('sda');
  const end = await burn({}, change);
  expect(end.result).toMatchObject({ kind: 'failed', type });
  expect(keptOf(end)).toBeUndefined();
  expect(blocksLeft('sda')).toBe((2 * mib) / 512);
});

function other() {
  return create(BmcIdentitySchema, { guid: Buffer.from(guid.replace('ff', '00'), 'hex') });
}

function heldNone() {
  const none = () => Promise.reject(new Error('nothing is held'));
  const list = async () => ({ devices: [], signs: [] });
  return { list, hold: none, dismantle: none, unhide: none };
}

test('health that has become worse is told, and only that', () => {
  const was = { reallocatedSectors: 4, pendingSectors: 0, mediaErrors: 1, passed: true };
  expect(worse(was, was)).toEqual([]);
  expect(worse(was, undefined)).toEqual([]);
  expect(worse(undefined, was)).toEqual([]);
  expect(worse(was, { ...was, reallocatedSectors: 5, passed: false })).toEqual([
    '4 → 5 reallocated sectors',
    'it says that it fails',
  ]);
});
