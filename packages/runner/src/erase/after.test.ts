/** The checks after the verdict: all attached devices, the same places again, later. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { methodToWire, plausibilityProblems, storageDeviceOf } from '@rackwright/erasure';
import * as agent from '@rackwright/messages/agent';
import { expect, test } from 'vitest';
import { fileDisks } from '../linux/file-disks.ts';
import type { DeviceStage, StepResult } from '../steps/step.ts';
import {
  addDisk,
  checkAfter,
  clock,
  deviceLog,
  folder,
  image,
  mib,
  run,
  useFolder,
  verdicts,
} from './erase.fixture.ts';
import { verifyErased } from './verify-erased.ts';

useFolder();

const erasedSeed = new Uint8Array(32).fill(9);
const places = 64;
const sampled = { level: agent.VerificationLevel.SAMPLED, places: BigInt(places) };

/** Plans for all disks that are there. */
async function plans(
  more: MessageInitShape<typeof agent.DevicePlanSchema> = {},
): Promise<agent.DevicePlan[]> {
  const { devices } = await fileDisks(folder, clock).list();
  return devices.map((device) =>
    create(agent.DevicePlanSchema, {
      ...more,
      device: storageDeviceOf(device),
      method: methodToWire(device.discardSupported ? 'discard' : 'overwrite'),
    }),
  );
}

async function verifyAgain(verification = create(agent.VerificationSchema)): Promise<StepResult> {
  const devices = await plans({ erasedSeed, certificate: 'erasureCertificates/c1', verification });
  const challengeSeed = new Uint8Array(32).fill(5);
  const order = { mode: agent.StepMode.CHECK, devices, challengeSeed };
  return await run({ order, step: verifyErased });
}

/** Puts bytes back behind the runner's back. */
function putBack(name: string, offset: number, text = 'PATTERN!'): void {
  const bytes = readFileSync(join(folder, `${name}.img`));
  bytes.write(text, offset);
  writeFileSync(join(folder, `${name}.img`), bytes);
}

test('the step reports the reads and writes of each device, and leaves none out', async () => {
  addDisk('sda', { discardSupported: false });
  const end = await run();
  expect(end.evidence?.ofFailedStep).toBe(false);
  expect(end.evidence?.devicesAfter?.map(({ serial }) => serial)).toEqual(['S-sda']);
  expect(end.evidence?.devices?.[0]).toMatchObject({
    verification: { level: agent.VerificationLevel.FULL },
    bytesExamined: BigInt(2 * mib),
    bytesRead: BigInt(2 * mib),
    bytesWritten: BigInt(2 * mib),
    errors: {},
  });
});

test.each<[string, (stage: DeviceStage) => void, string, RegExp]>([
  ['plugged in', () => addDisk('sdx'), 'deviceChanged', /seen at the end: disk S-sdx .*not in the/],
  [
    'pulled after its verdict',
    (stage) => {
      if (stage === 'verified') rmSync(join(folder, 'sda.json'));
    },
    'deviceVanished',
    /S-sda of the plan is not there/,
  ],
])('the step fails when a disk was %s, and evidence says so', async (_name, act, type, text) => {
  addDisk('sda');
  addDisk('sdb');
  const stage = async (identity: string, reached: DeviceStage) => {
    if (identity === 'S-sda') act(reached);
  };
  const end = await run({ context: { recordStage: stage } });
  expect(end.result).toMatchObject({ kind: 'failed', type });
  expect((end.result as { message: string }).message).toMatch(text);
  expect(end.evidence?.ofFailedStep).toBe(true);
});

test('the step counts errors by kind', async () => {
  addDisk('sda', {
    discardSupported: false,
    faults: [{ kind: 'ioError', operation: 'write', offset: mib + 8192, length: 512 }],
  });
  const end = await run();
  expect(end.evidence?.devices?.[0]?.errors).toEqual({ write: 1n });
  expect(end.evidence?.ofFailedStep).toBe(true);
});

test('the step reads again after the delay, and finds what has come back', async () => {
  addDisk('sda');
  addDisk('sdb');
  const devices = await plans({ rereadDelay: durationFromMs(300), verification: sampled });
  const progress = (_percent: number, text: string): void => {
    if (text.includes('S-sda') && text.includes('waits')) putBack('sda', 0);
  };
  const end = await run({ order: { devices }, context: { reportProgress: progress } });
  expect(end.result).toMatchObject({ kind: 'failed', type: 'dataReturned' });
  expect((end.result as { message: string }).message).toMatch(
    /^1 of 2 devices is not proved erased: S-sda \(sda\): read again after 1 s: .*offset 0/,
  );
  expect(verdicts(end)).toEqual([agent.VerdictKind.NOT_ERASED, agent.VerdictKind.ERASED]);
  // The same places and others.
  const other = end.evidence?.devices?.[1];
  expect(Number(other?.placesRead)).toBeGreaterThan(places + 100);
  expect(other?.readings).toBe(2);
  expect(Number(other?.bytesOfReadings)).toBeGreaterThan(Number(other?.bytesRead));
});

test('a check after an interruption reads twice too, and its evidence is plausible', async () => {
  addDisk('sda', {}, ['sda'], 8 * mib);
  const verification = create(agent.VerificationSchema, sampled);
  const devices = await plans({ rereadDelay: durationFromMs(300), verification });
  expect((await run({ order: { devices } })).result.kind).toBe('complete');
  const end = await run({ order: { ...checkAfter('erased', 'S-sda'), devices } });
  expect(end.result).toEqual({ kind: 'complete' });
  const [found] = end.evidence?.devices ?? [];
  const outcome = create(agent.DeviceOutcomeSchema, found as agent.DeviceOutcome);
  const [ordered] = devices;
  expect(outcome.readings).toBe(2);
  expect(ordered && plausibilityProblems(outcome, ordered)).toEqual([]);
});

test('a reading that does not end says how much it has read', async () => {
  const faults = [{ kind: 'ioError', operation: 'read', offset: 3 * mib, length: 512 }] as const;
  addDisk('sda', { discardSupported: false, faults: [...faults] }, ['sda'], 4 * mib);
  const end = await run();
  expect(end.result.kind).toBe('failed');
  const [found] = end.evidence?.devices ?? [];
  expect(found).toMatchObject({ readings: 1, verdict: agent.VerdictKind.UNVERIFIED });
  expect(Number(found?.bytesOfReadings)).toBeGreaterThan(mib);
  expect(Number(found?.bytesOfReadings)).toBeLessThan(4 * mib);
});

test('the step stops waiting for a rereading when it is cancelled', async () => {
  addDisk('sda');
  const cancel = new AbortController();
  const devices = await plans({ rereadDelay: durationFromMs(3_600_000) });
  const progress = (_percent: number, text: string): void => {
    if (text.includes('waits')) cancel.abort();
  };
  const end = await run({
    order: { devices },
    context: { reportProgress: progress, signal: cancel.signal },
  });
  expect(end.result).toMatchObject({ kind: 'failed', type: 'cancelled' });
});

test('the step verifies erased disks in a later boot, and writes nothing', async () => {
  addDisk('sda');
  addDisk('sdb', { discardSupported: false });
  expect((await run()).result.kind).toBe('complete');
  const writes = (): string[] =>
    [...deviceLog('sda'), ...deviceLog('sdb')]
      .map(({ kind }) => kind)
      .filter((kind) => kind !== 'open');
  const before = writes();
  const end = await verifyAgain();
  expect(end.result).toEqual({ kind: 'complete' });
  expect(end.evidence).toMatchObject({ mode: agent.StepMode.CHECK, ofFailedStep: false });
  expect(end.evidence?.devices?.[0]).toMatchObject({
    certificate: 'erasureCertificates/c1',
    verdict: agent.VerdictKind.ERASED,
    bytesWritten: 0n,
  });
  expect(writes()).toEqual(before);
});

test('data that is back is named by disk and offset', async () => {
  addDisk('sda');
  expect((await run()).result.kind).toBe('complete');
  putBack('sda', mib + 77);
  const end = await verifyAgain();
  expect(end.result).toMatchObject({ kind: 'failed', type: 'dataReturned' });
  const text = /S-sda \(sda\): byte 0x50 is left at offset 1048653/;
  expect((end.result as { message: string }).message).toMatch(text);
  expect(
    image('sda')
      .subarray(mib + 77, mib + 85)
      .toString(),
  ).toBe('PATTERN!');
});

test('a disk that cannot be read in a later boot is unproved, and its data not back', async () => {
  addDisk('sda');
  expect((await run()).result.kind).toBe('complete');
  const faults = [{ kind: 'ioError', operation: 'read', offset: 0, length: 2 * mib }];
  writeFileSync(join(folder, 'sda.json'), JSON.stringify({ serial: 'S-sda', faults }));
  const end = await verifyAgain();
  expect(end.result).toMatchObject({ kind: 'failed', type: 'unverified' });
});

test('the step reads new places besides those of the erasure when it samples', async () => {
  addDisk('sda', {}, ['sda'], 64 * mib);
  const verification = create(agent.VerificationSchema, sampled);
  const order = { devices: await plans({ verification }) };
  expect((await run({ order })).result.kind).toBe('complete');
  const [outcome] = (await verifyAgain(verification)).evidence?.devices ?? [];
  const once = Number(outcome?.challengeBlocksWritten) + places;
  expect(Number(outcome?.placesRead)).toBeGreaterThan(1.8 * once);
});

test.each(['discard', 'overwrite'] as const)(
  'after %s a disk that was read whole is sampled, with plausible evidence',
  async (method) => {
    addDisk('sda', { discardSupported: method === 'discard' }, ['sda'], 8 * mib);
    expect((await run()).result.kind).toBe('complete');
    const verification = create(agent.VerificationSchema, sampled);
    const end = await verifyAgain(verification);
    expect(end.result).toEqual({ kind: 'complete' });
    const [ordered] = await plans({ erasedSeed, verification });
    const [found] = end.evidence?.devices ?? [];
    const outcome = create(agent.DeviceOutcomeSchema, found as agent.DeviceOutcome);
    expect(Number(outcome.bytesRead)).toBeLessThan(2 * mib);
    const problems = (change: Partial<agent.DeviceOutcome>) => {
      const changed = create(agent.DeviceOutcomeSchema, { ...outcome, ...change });
      if (ordered === undefined) throw new Error('there is one disk');
      return plausibilityProblems(changed, ordered);
    };
    expect(problems({})).toEqual([]);
    expect(problems({ placesRead: outcome.placesRead - 1n })).toHaveLength(1);
    expect(problems({ bytesWritten: 512n })).toMatchObject([{ count: 'bytesWritten', wanted: 0 }]);
  },
);

test('a verification that would write, or lacks the earlier seed, is refused', async () => {
  addDisk('sda');
  const rewrite = { mode: agent.StepMode.RUN, devices: await plans({ erasedSeed }) };
  const unseeded = { mode: agent.StepMode.CHECK, devices: await plans() };
  for (const order of [rewrite, unseeded]) {
    const end = await run({ order, step: verifyErased });
    expect(end.result).toMatchObject({ kind: 'failed', type: 'invalidArgument' });
  }
});
