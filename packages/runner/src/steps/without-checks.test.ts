import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { blockBytes, type DeviceFacts } from '@rackwright/erasure';
import { eraseStep, verifyErasedStep } from '@rackwright/messages';
import { nodeClock } from '@rackwright/platform/node';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fileDisks } from '../linux/file-disks.ts';
import type { BlockDevices } from '../machine/block-devices.ts';
import { transferMemory } from '../machine/transfer-memory.ts';
import type { Step, StepContext } from './step.ts';
import { runStep } from './steps.fixture.ts';
import { devicesWithout, type LabCheck, stepWithout } from './without-checks.ts';

const BYTES = 1024 * 1024;
let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-without-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

function addDisk(name: string, serial: string, transport = 'virtio'): void {
  writeFileSync(join(folder, `${name}.json`), JSON.stringify({ serial, transport }));
  writeFileSync(join(folder, `${name}.img`), Buffer.alloc(BYTES, 'PATTERN!'));
}

function without(...checks: readonly LabCheck[]): BlockDevices {
  return devicesWithout(fileDisks(folder, nodeClock()), new Set(checks));
}

async function only(devices: BlockDevices): Promise<DeviceFacts> {
  const [device] = (await devices.list()).devices;
  if (device === undefined) throw new Error('there is one disk');
  return device;
}

/** The names that are listed. */
async function listed(devices: BlockDevices): Promise<string[]> {
  return (await devices.list()).devices.map(({ name }) => name).sort();
}

/** What a step of this name is given by the laboratory, as its context. */
async function seenBy(name: string, ...checks: readonly LabCheck[]): Promise<StepContext> {
  let seen: StepContext | undefined;
  const step: Step = {
    description: { name },
    run: (context) => {
      seen = context;
      return Promise.resolve({ result: { kind: 'complete' } });
    },
  };
  const devices = fileDisks(folder, nodeClock());
  await runStep(stepWithout(step, new Set(checks)), {}, {}, { devices }).end;
  if (seen === undefined) throw new Error('the step was not run');
  return seen;
}

test('a card is not listed without the look at other storage', async () => {
  addDisk('vda', 'A');
  addDisk('mmcblk0', 'B', 'mmc');
  expect(await listed(without())).toEqual(['mmcblk0', 'vda']);
  expect(await listed(without('storageSigns'))).toEqual(['vda']);
});

for (const isHeld of [true, false]) {
  const becomes = isHeld ? 'is left alone' : 'is written when devices are not held';
  test(`a disk that takes the place of a planned one ${becomes}`, async () => {
    addDisk('vda', 'PLANNED');
    const devices = without(...(isHeld ? [] : (['heldDevice'] as const)));
    const held = await devices.hold(await only(devices));
    rmSync(join(folder, 'vda.img'));
    addDisk('vda', 'FOREIGN');
    const write = held.regions[0]?.writeZeros(0, 4096);
    await write?.catch(() => undefined);
    await held.close();
    const isWhole = readFileSync(join(folder, 'vda.img')).equals(Buffer.alloc(BYTES, 'PATTERN!'));
    expect(isWhole).toBe(isHeld);
  });
}

const readings = [
  [eraseStep, 'wholeRead', 'powerCycleRead'],
  [verifyErasedStep, 'powerCycleRead', 'wholeRead'],
] as const;
for (const [step, off, other] of readings) {
  test(`${step} reads zeros in bulk without ${off}, and what is there otherwise`, async () => {
    addDisk('vda', 'A');
    const firstByte = async (check: LabCheck, length?: number): Promise<number | undefined> => {
      const { devices } = await seenBy(step, check);
      const held = await devices.hold(await only(devices));
      const bytes = transferMemory(1)[0]?.subarray(0, length);
      if (bytes !== undefined) await held.regions[0]?.readInto(0, bytes);
      await held.close();
      return bytes?.[0];
    };
    expect(await firstByte(off)).toBe(0);
    expect(await firstByte(off, blockBytes), 'the challenge').toBe('P'.codePointAt(0));
    expect(await firstByte(other)).toBe('P'.codePointAt(0));
  });
}
