import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { storageDeviceOf } from '@rackwright/erasure';
import * as agent from '@rackwright/messages/agent';
import { nodeClock } from '@rackwright/platform/node';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fileDisks } from '../linux/file-disks.ts';
import { type BlockDevices, DeviceError } from '../machine/block-devices.ts';
import type { StepContext } from '../steps/step.ts';
import { prepareDevices } from './prepare.ts';
import { findTargets } from './targets.ts';

const mib = 1024 * 1024;
const { RUN, CHECK } = agent.StepMode;
const method = agent.ErasureMethod.OVERWRITE;
let folder = '';
let devices: BlockDevices;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-prepare-'));
  devices = fileDisks(folder, nodeClock());
});

afterEach(() => rmSync(folder, { recursive: true }));

/** A disk of 2 MiB that exposes one of them. */
function addDisk(name: string, description: object = {}): void {
  const regions = [{ name, exposedBytes: mib }];
  const text = JSON.stringify({ transport: 'sata', serial: `S-${name}`, regions, ...description });
  writeFileSync(join(folder, `${name}.json`), text);
  writeFileSync(join(folder, `${name}.img`), Buffer.alloc(2 * mib, 'PATTERN!'));
}

async function order(
  removeHiddenArea: boolean,
  mode: agent.StepMode = RUN,
): Promise<agent.RunStep> {
  const found = (await devices.list()).devices;
  const plans = found.map((each) => ({ device: storageDeviceOf(each), method, removeHiddenArea }));
  return create(agent.RunStepSchema, { mode, devices: plans });
}

async function prepared(
  on: BlockDevices,
  asked: agent.RunStep,
  mayBegin: StepContext['requestBegin'] = async () => ({ kind: 'granted' }),
) {
  return await prepareDevices(
    { devices: on, order: asked, requestBegin: mayBegin },
    await on.list(),
    'write',
  );
}

test('a hidden area is shown, and the larger disk counts as the planned one', async () => {
  addDisk('sda');
  const asked = await order(true);
  const ready = await prepared(devices, asked);
  if (ready.kind === 'failed') throw new Error(ready.message);
  expect(ready.done.get('S-sda')).toEqual({ dismantled: [], hiddenBytesRemoved: BigInt(mib) });
  const found = findTargets(asked.devices, ready.listing);
  if (found.kind !== 'targets') throw new Error(JSON.stringify(found));
  expect(found.targets.map(({ device, decision: plan }) => [device.sizeBytes, plan.kind])).toEqual([
    [2 * mib, 'erase'],
  ]);
});

test('the step leaves a hidden area alone in a check and where it may not be removed', async () => {
  addDisk('sda');
  const before = readFileSync(join(folder, 'sda.json'), 'utf8');
  for (const asked of [await order(false), await order(true, CHECK)]) {
    const ready = await prepared(devices, asked);
    if (ready.kind === 'failed') throw new Error(ready.message);
    const found = findTargets(asked.devices, ready.listing);
    if (found.kind !== 'targets') throw new Error(JSON.stringify(found));
    expect(found.targets[0]?.decision).toMatchObject({ kind: 'refused' });
    expect(readFileSync(join(folder, 'sda.json'), 'utf8')).toBe(before);
  }
});

test('a disk that has grown by another size than its hidden area is another disk', async () => {
  addDisk('sda');
  const asked = await order(true);
  writeFileSync(join(folder, 'sda.img'), Buffer.alloc(3 * mib));
  const ready = await prepared(devices, asked);
  if (ready.kind === 'failed') throw new Error(ready.message);
  expect(findTargets(asked.devices, ready.listing).kind).toBe('changed');
});

test('each disk that cannot be prepared is named, and none outside the order touched', async () => {
  for (const name of ['sda', 'sdb', 'sdc']) addDisk(name, { holders: ['md127'] });
  const asked = await order(false);
  asked.devices.pop();
  const tried: string[] = [];
  const stubborn: BlockDevices = {
    ...devices,
    dismantle: async ({ name }) => {
      tried.push(name);
      throw new DeviceError(`${name} is still held by md127`);
    },
  };
  expect(await prepared(stubborn, asked)).toEqual({
    kind: 'failed',
    type: 'ioError',
    message: 'S-sda (sda): sda is still held by md127; S-sdb (sdb): sdb is still held by md127',
  });
  expect(tried).toEqual(['sda', 'sdb']);
});

test('the step takes down the holders of a disk, and nothing else', async () => {
  addDisk('sda', { holders: ['md127'], regions: [{ name: 'sda' }] });
  const acts: string[] = [];
  const watched: BlockDevices = {
    ...devices,
    dismantle: async ({ name }) => {
      acts.push(`dismantle ${name}`);
      return ['md127'];
    },
    unhide: async ({ name }) => {
      acts.push(`unhide ${name}`);
      return [];
    },
  };
  const ready = await prepared(watched, await order(true));
  expect(acts).toEqual(['dismantle sda']);
  expect(ready).toMatchObject({
    kind: 'ready',
    done: new Map([['S-sda', { dismantled: ['md127'], hiddenBytesRemoved: 0n }]]),
  });
});

test.each([
  ['that nothing identifies', [{ serial: '' }]],
  ['that cannot be told from another', [{ serial: 'S' }, { serial: 'S' }]],
])('the step touches no disk %s', async (_name, disks) => {
  for (const [at, disk] of disks.entries()) addDisk(`sd${at}`, { holders: ['md127'], ...disk });
  const untouchable: BlockDevices = {
    ...devices,
    dismantle: () => Promise.reject(new DeviceError('it was touched')),
  };
  const ready = await prepared(untouchable, await order(true));
  expect(ready).toMatchObject({ kind: 'ready', done: new Map() });
  expect((await devices.list()).devices.every(({ sizeBytes }) => sizeBytes === mib)).toBe(true);
});

test('no disk is prepared before the agent has said that the step may begin', async () => {
  addDisk('sda');
  const before = readFileSync(join(folder, 'sda.json'), 'utf8');
  const over = async () => ({ kind: 'over', reason: 'its time is over' }) as const;
  expect(await prepared(devices, await order(true), over)).toEqual({
    kind: 'failed',
    ...{ type: 'cancelled', message: 'not begun: its time is over' },
  });
  expect(readFileSync(join(folder, 'sda.json'), 'utf8')).toBe(before);
});
