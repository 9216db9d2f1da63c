import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { storageDeviceOf } from '@rackwright/erasure';
import { BmcIdentitySchema, Transport } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import { expect, test } from 'vitest';
import { fileDisks } from '../linux/file-disks.ts';
import type { DeviceStage, StepContext } from '../steps/step.ts';
import {
  addDisk,
  checkAfter,
  clock,
  deviceLog,
  folder,
  guid,
  image,
  logExists,
  mib,
  nvme,
  progressText,
  run,
  useFolder,
  verdicts,
} from './erase.fixture.ts';
import { eraseDevicesMetadata } from './step.ts';

useFolder();

test('the step erases by overwrite, discard and format, and proves each', async () => {
  addDisk('sda', { transport: 'sata', discardSupported: false });
  addDisk('vda', { transport: 'virtio' });
  addDisk('nvme0', { ...nvme, regions: [{ name: 'nvme0n1' }, { name: 'nvme0n2' }] }, [
    'nvme0n1',
    'nvme0n2',
  ]);
  const end = await run();
  expect(end.result).toEqual({ kind: 'complete' });
  expect(verdicts(end)).toEqual([1, 1, 1]);
  for (const region of ['sda', 'vda', 'nvme0n1', 'nvme0n2']) {
    expect(image(region).every((byte) => byte === 0)).toBe(true);
  }
  expect(deviceLog('vda').some(({ kind }) => kind === 'discard')).toBe(true);
  expect(end.evidence?.identityWitnesses).toEqual(['uuid']);
  const nvmeOutcome = end.evidence?.devices?.[0];
  expect(nvmeOutcome).toMatchObject({ placesRead: 1024n, challengeBlocksWritten: 128n });
  expect(end.stages.filter((line) => line.startsWith('S-sda'))).toEqual([
    'S-sda begun',
    'S-sda challenged',
    'S-sda erased',
    'S-sda verified',
  ]);
});

test('the step asks before it writes to a device, and writes to none without a yes', async () => {
  for (const name of ['sda', 'sdb', 'sdc', 'sdd', 'sde', 'sdf']) addDisk(name, {}, [name]);
  let asked = 0;
  const mayBegin: StepContext['requestBegin'] = async () => {
    asked += 1;
    return asked <= 4 ? { kind: 'granted' } : { kind: 'over', reason: 'its time is over' };
  };
  const end = await run({ context: { requestBegin: mayBegin } });
  expect(asked).toBe(6);
  expect(end.result).toMatchObject({
    kind: 'failed',
    message: expect.stringContaining('not begun: its time is over'),
  });
  const touched = ['sda', 'sdb', 'sdc', 'sdd', 'sde', 'sdf'].filter((name) => {
    return image(name).every((byte) => byte === 0);
  });
  expect(touched).toHaveLength(4);
});

test('a disk on USB is erased when it is ordered, and left alone when it is not', async () => {
  addDisk('sda', { transport: 'sata' });
  addDisk('sdb', { transport: 'usb' });
  const plan = (serial: string, transport: Transport) => {
    const region = { name: 'sda', sizeBytes: BigInt(2 * mib), logicalBlockBytes: 512 };
    const named = { serial, model: 'file disk', transport };
    const device = { ...named, sizeBytes: BigInt(2 * mib), regions: [region] };
    return create(agent.DevicePlanSchema, { device, method: agent.ErasureMethod.OVERWRITE });
  };
  const [sda, sdb] = [plan('S-sda', Transport.SATA), plan('S-sdb', Transport.USB)];
  const alone = await run({ order: { devices: [sda] } });
  expect(alone.result).toEqual({ kind: 'complete' });
  expect(image('sdb').includes('PATTERN!')).toBe(true);
  expect((await run({ order: { devices: [sda, sdb] } })).result).toEqual({ kind: 'complete' });
  expect(image('sdb').every((byte) => byte === 0)).toBe(true);
});

test('the step says which namespaces a format reaches and nobody can read', async () => {
  const reaches = { formatSupported: true, formatsAllNamespaces: true, hiddenNamespaces: [2, 3] };
  const description = { transport: 'nvme', nvme: reaches, regions: [{ name: 'nvme0n1' }] };
  addDisk('nvme0', description, ['nvme0n1']);
  const end = await run();
  expect(end.result).toEqual({ kind: 'complete' });
  expect(end.evidence?.devices?.[0]?.notExamined).toEqual([
    '2 namespaces that are not attached, such as 2, 3',
  ]);
});

test('the step accepts the noise that a cryptographic erase leaves', async () => {
  const crypto = { transport: 'nvme', nvme: { cryptoEraseSupported: true } };
  addDisk('nvme0', { ...crypto, regions: [{ name: 'nvme0n1' }] }, ['nvme0n1']);
  const end = await run();
  expect(end.result).toEqual({ kind: 'complete' });
  expect(end.evidence?.devices?.[0]?.method).toBe(agent.ErasureMethod.NVME_FORMAT_CRYPTO);
});

test.each<[string, object]>([
  ['discard', { discardSupported: true }],
  ['format', nvme],
  ['format', { transport: 'nvme', nvme: { cryptoEraseSupported: true } }],
])('the step finds and names a disk that lies about its %s', async (operation, description) => {
  addDisk('good');
  addDisk('bad', { ...description, faults: [{ kind: 'lying', operation }] });
  const end = await run();
  expect(end.result).toMatchObject({ kind: 'failed', type: 'notErased' });
  expect(end.result).toMatchObject({
    message: expect.stringMatching(/^1 of 2 devices is not proved erased: S-bad \(bad\): /),
  });
  expect(verdicts(end)).toEqual([agent.VerdictKind.NOT_ERASED, agent.VerdictKind.ERASED]);
});

test('a lying disk passes only with the verdict switched off, and evidence says so', async () => {
  addDisk('bad', { faults: [{ kind: 'lying', operation: 'discard' }] });
  const end = await run({ context: { verdictSwitchedOff: true } });
  expect(end.result).toEqual({ kind: 'complete' });
  expect(verdicts(end)).toEqual([agent.VerdictKind.SWITCHED_OFF]);
});

test('the step overwrites the end that a discard by whole units leaves, and says so', async () => {
  const regions = [{ name: 'vda', discardGranularity: 64 * 1024 }];
  addDisk('vda', { regions }, ['vda'], 2 * mib + 12 * 1024);
  const end = await run();
  expect(end.result).toEqual({ kind: 'complete' });
  expect(image('vda').every((byte) => byte === 0)).toBe(true);
  const zeroed = deviceLog('vda').filter(({ kind }) => kind === 'zero');
  expect(zeroed[0]).toMatchObject({ offset: 2 * mib, length: 12 * 1024 });
  expect(end.evidence?.devices?.[0]?.method).toBe(agent.ErasureMethod.DISCARD);
  expect(end.evidence?.devices?.[0]?.log).toContainEqual('vda: 12288 bytes at its end overwritten');
});

test('the step notices a disk that drops writes before it erases anything', async () => {
  addDisk('bad', { discardSupported: false, faults: [{ kind: 'lying', operation: 'write' }] });
  const end = await run();
  expect(end.result).toMatchObject({ kind: 'failed', type: 'ioError' });
  expect(verdicts(end)).toEqual([agent.VerdictKind.UNVERIFIED]);
});

test('one disk of ten that fails is named while nine are erased', async () => {
  for (let at = 0; at < 9; at++) addDisk(`d${at}`, {}, undefined, 64 * 1024);
  const fault = { kind: 'ioError', operation: 'discard', offset: 0, length: 512 };
  addDisk('d9', { faults: [fault] }, undefined, 64 * 1024);
  const end = await run();
  expect(end.result).toMatchObject({ kind: 'failed', type: 'ioError' });
  expect(end.result).toMatchObject({ message: expect.stringContaining('1 of 10') });
  expect(end.result).toMatchObject({ message: expect.stringContaining('S-d9 (d9)') });
  expect(verdicts(end)).toEqual([...Array.from({ length: 9 }, () => 1), 3]);
});

test('the step is unverified when a place cannot be read', async () => {
  const fault = { kind: 'ioError', operation: 'read', offset: mib, length: 4096 };
  addDisk('bad', { faults: [fault] });
  writeFileSync(join(folder, 'bad.img'), Buffer.alloc(2 * mib));
  const end = await run({ order: checkAfter('erased', 'S-bad') });
  expect(end.result).toMatchObject({ kind: 'failed', type: 'unverified' });
});

test('the step fails for a read-only disk, by name, and erases the others', async () => {
  addDisk('good');
  addDisk('ro', { readOnly: true });
  const end = await run();
  expect(end.result).toMatchObject({
    message: '1 of 2 devices is not proved erased: S-ro (ro): not erased: is read-only',
  });
  expect(verdicts(end)).toEqual([1, 3]);
  expect(logExists('ro')).toBe(false);
});

test('nothing is written when this is another machine', async () => {
  addDisk('vda');
  const guidOfOther = Buffer.from(guid.replace('ff', '00'), 'hex');
  const end = await run({
    order: { expectedIdentity: create(BmcIdentitySchema, { guid: guidOfOther }) },
  });
  expect(end.result).toMatchObject({ kind: 'failed', type: 'identityMismatch' });
  expect(logExists('vda')).toBe(false);
});

test('nothing is written without a witness, unless the host says otherwise', async () => {
  addDisk('vda');
  const nothing = { expectedIdentity: create(BmcIdentitySchema, {}) };
  const end = await run({ order: nothing });
  expect(end.result).toMatchObject({ kind: 'failed', type: 'identityUnproven' });
  expect(logExists('vda')).toBe(false);
  const waived = await run({ order: { ...nothing, allowUnprovenIdentity: true } });
  expect(waived.result).toEqual({ kind: 'complete' });
  expect(waived.evidence?.identityWitnesses).toEqual([]);
});

test.each<[string, () => void, RegExp]>([
  ['is gone', () => rmSync(join(folder, 'sdb.json')), /disk S-sdb of the plan is not there/],
  ['has appeared', () => addDisk('sdc'), /disk S-sdc \(sdc\) is not in the plan/],
  ['is another model', () => addDisk('sdb', { model: 'X' }), /has the model "X"/],
  ['has another size', () => addDisk('sdb', {}, ['sdb'], mib), /size "1048576", not "2097152"/],
])('nothing is written when a disk %s since it was planned', async (_name, afterPlan, message) => {
  addDisk('sda');
  addDisk('sdb');
  const end = await run({ afterPlan });
  expect(end.result).toMatchObject({ kind: 'failed', type: 'deviceChanged' });
  expect(end.result).toMatchObject({ message: expect.stringMatching(message) });
  expect(logExists('sda')).toBe(false);
});

test('nothing is prepared when a disk has appeared since the plan', async () => {
  const hiding = { transport: 'sata', regions: [{ name: 'sda', exposedBytes: mib }] };
  addDisk('sda', hiding);
  const description = readFileSync(join(folder, 'sda.json'), 'utf8');
  const [device] = (await fileDisks(folder, clock).list()).devices;
  if (device === undefined) throw new Error('there is one disk');
  const plan = { device: storageDeviceOf(device), removeHiddenArea: true };
  const { devices } = create(agent.RunStepSchema, { devices: [plan] });
  const end = await run({ order: { devices }, afterPlan: () => addDisk('sdb') });
  expect(end.result).toMatchObject({ kind: 'failed', type: 'deviceChanged' });
  expect(readFileSync(join(folder, 'sda.json'), 'utf8')).toBe(description);
});

test('the step fails without a device, and with a malformed order', async () => {
  expect((await run()).result).toMatchObject({ type: 'noDevices' });
  addDisk('sda');
  const short = { challengeSeed: new Uint8Array(4) };
  expect((await run({ order: short })).result).toMatchObject({ type: 'invalidArgument' });
  const mode = agent.StepMode.UNSPECIFIED;
  expect((await run({ order: { mode } })).result).toMatchObject({ type: 'invalidArgument' });
  expect(logExists('sda')).toBe(false);
});

test('the step has nothing to do where the policy accepts that there is no disk', async () => {
  const allowed = { allowDiskless: true };
  const end = await run({ order: allowed });
  expect(end.result).toEqual({ kind: 'complete' });
  expect(end.evidence?.devices).toEqual([]);
  const late = await run({ order: allowed, afterPlan: () => addDisk('sda') });
  expect(late.result).toMatchObject({ kind: 'failed', type: 'deviceChanged' });
  expect(logExists('sda')).toBe(false);
});

test('the step checks without writing anything', async () => {
  addDisk('vda');
  expect((await run()).result.kind).toBe('complete');
  const lines = deviceLog('vda').length;
  const end = await run({ order: checkAfter('erased', 'S-vda') });
  expect(end.result).toEqual({ kind: 'complete' });
  expect(end.evidence?.devices?.[0]?.challengeBlocksWritten).toBe(64n);
  const after = deviceLog('vda').slice(lines);
  expect(new Set(after.map(({ kind }) => kind))).toEqual(new Set(['open']));
});

const otherSeed = JSON.stringify({ seed: '00'.repeat(32), devices: { 'S-disk': 'erased' } });
test.each<[string, object, string[]]>([
  ['overwrite', { transport: 'sata', discardSupported: false }, ['disk']],
  ['discard', { transport: 'virtio' }, ['disk']],
  ['format', nvme, ['disk']],
  ['crypto format', { transport: 'nvme', nvme: { cryptoEraseSupported: true } }, ['disk']],
])('a mostly empty disk is never taken for erased by %s', async (_name, description, regions) => {
  const sizeBytes = 64 * mib;
  addDisk('disk', description, regions, sizeBytes);
  // A secret in no sampled place: the disk looks like an erased one.
  const sparse = Buffer.alloc(sizeBytes);
  sparse.write('SECRET', 5 * mib);
  writeFileSync(join(folder, 'disk.img'), sparse);
  for (const lastProgress of ['', 'noise', otherSeed, progressText('begun', 'S-disk')]) {
    const check = { mode: agent.StepMode.CHECK, arguments: { lastProgress } };
    const end = await run({ order: check });
    expect(end.result).toMatchObject({ kind: 'failed', type: 'unverified' });
    expect(end.evidence?.devices?.[0]?.challengeBlocksWritten).toBe(0n);
  }
});

test.each([agent.StepMode.RUN, agent.StepMode.CHECK])(
  'the step waits for a device that is still busy with itself, in mode %d',
  async (mode) => {
    addDisk('nvme0', { ...nvme, busyWith: 'format, 40 % left' });
    const end = await run({ order: { mode } });
    expect(image('nvme0').includes('PATTERN!')).toBe(true);
    expect(end.result).toMatchObject({
      kind: 'retryAfter',
      reason: 'locked',
      message: 'devices are busy: S-nvme0 (nvme0): format, 40 % left',
    });
  },
);

test('a cryptographic erase is checked only against a challenge that was written', async () => {
  addDisk('nvme0', { transport: 'nvme', nvme: { cryptoEraseSupported: true } });
  const check = { mode: agent.StepMode.CHECK };
  expect((await run({ order: check })).result).toMatchObject({ type: 'unverified' });
  expect((await run()).result.kind).toBe('complete');
  expect((await run({ order: check })).result).toMatchObject({ type: 'unverified' });
  const told = await run({ order: checkAfter('challenged', 'S-nvme0') });
  expect(told.result).toEqual({ kind: 'complete' });
});

/** Another disk in place of `name`, full of content that is not ours to erase. */
function swap(name: string, serial: string): void {
  rmSync(join(folder, `${name}.img`));
  addDisk(name, { serial, discardSupported: false });
}

test('the step never writes to a disk that is put in the place of one that waits', async () => {
  const names = Array.from('abcdefghijklmnopqrst', (letter) => `sd${letter}`);
  for (const name of names) addDisk(name, { discardSupported: false });
  const stage = async (identity: string, reached: DeviceStage) => {
    if (identity === 'S-sda' && reached === 'begun') swap('sdt', 'FOREIGN');
  };
  const end = await run({ context: { recordStage: stage } });
  expect(end.result).toMatchObject({ kind: 'failed', type: 'deviceChanged' });
  expect(image('sdt')).toEqual(Buffer.alloc(2 * mib, 'PATTERN!'));
  expect(deviceLog('sdt').filter(({ kind }) => kind !== 'open')).toEqual([]);
  const [foreign] = (end.evidence?.devices ?? []).slice(-1);
  expect(foreign).toMatchObject({ loss: agent.DeviceLoss.CHANGED, challengeBlocksWritten: 0n });
});

test.each<[DeviceStage, string]>([
  ['challenged', 'before its method'],
  ['erased', 'before its verdict'],
])('the step ends as vanished when the disk is pulled after "%s"', async (at) => {
  addDisk('sda', { discardSupported: false });
  const stage = async (_identity: string, reached: DeviceStage) => {
    if (reached === at) rmSync(join(folder, 'sda.json'));
  };
  const end = await run({ context: { recordStage: stage } });
  expect(end.result).toMatchObject({ kind: 'failed', type: 'deviceVanished' });
  expect(end.evidence?.devices?.[0]).toMatchObject({ loss: agent.DeviceLoss.VANISHED });
  expect(verdicts(end)).toEqual([agent.VerdictKind.UNVERIFIED]);
});

test('a cancelled overwrite stops', async () => {
  addDisk('sda', { discardSupported: false });
  const cancel = new AbortController();
  const stage = async (_identity: string, reached: DeviceStage) => {
    if (reached === 'challenged') cancel.abort();
  };
  const end = await run({ context: { signal: cancel.signal, recordStage: stage } });
  expect(end.result).toMatchObject({ kind: 'failed', type: 'cancelled' });
  expect(image('sda').includes('PATTERN!')).toBe(true);
  expect(deviceLog('sda').some(({ kind }) => kind === 'zero')).toBe(false);
});

test('a format that is cancelled once its challenge is written never begins', async () => {
  addDisk('nvme0', nvme);
  const cancel = new AbortController();
  const stage = async (_identity: string, reached: DeviceStage) => {
    if (reached === 'challenged') cancel.abort();
  };
  const end = await run({ context: { signal: cancel.signal, recordStage: stage } });
  expect(end.result).toMatchObject({ kind: 'failed', type: 'cancelled' });
  expect(deviceLog('nvme0').some(({ kind }) => kind === 'format')).toBe(false);
  expect(image('nvme0').includes('PATTERN!')).toBe(true);
});

test('nothing is written by a step that is cancelled before it began', async () => {
  addDisk('sda');
  addDisk('nvme0', nvme);
  const end = await run({ context: { signal: AbortSignal.abort() } });
  expect(end.result).toMatchObject({ kind: 'failed', type: 'cancelled' });
  const acts = [...deviceLog('sda'), ...deviceLog('nvme0')].map(({ kind }) => kind);
  expect(new Set(acts)).toEqual(new Set(['open']));
});

test('nothing more is written by a step that a fault of no device has ended', async () => {
  const slow = { kind: 'slow', operation: 'write', delayMs: 20 };
  addDisk('sda', { discardSupported: false, faults: [slow] }, undefined, 8 * mib);
  addDisk('sdb', { discardSupported: false }, undefined, 64 * 1024);
  addDisk('sdc', {}, undefined, 64 * 1024);
  const stage = async (identity: string, reached: DeviceStage) => {
    if (identity === 'S-sdb' && reached === 'challenged') throw new Error('the record is not safe');
  };
  await expect(run({ context: { recordStage: stage } })).rejects.toThrow('the record is not safe');
  const acts = deviceLog('sda').length;
  await new Promise((resolve) => {
    setTimeout(resolve, 200);
  });
  expect(deviceLog('sda')).toHaveLength(acts);
  expect(image('sda').includes('PATTERN!')).toBe(true);
});

test('the metadata step erases metadata only, and leaves the middle alone', async () => {
  addDisk('sda', {}, ['sda'], 8 * mib);
  const end = await run({ step: eraseDevicesMetadata });
  expect(end.result).toEqual({ kind: 'complete' });
  expect(end.evidence?.devices?.[0]?.method).toBe(agent.ErasureMethod.METADATA_ONLY);
  expect(
    image('sda')
      .subarray(0, mib)
      .every((byte) => byte === 0),
  ).toBe(true);
  expect(
    image('sda')
      .subarray(7 * mib)
      .every((byte) => byte === 0),
  ).toBe(true);
  expect(
    image('sda')
      .subarray(4 * mib, 4 * mib + 8)
      .toString(),
  ).toBe('PATTERN!');
});

test('the step logs every act before and after it is done', async () => {
  addDisk('vda');
  await run();
  const lines = deviceLog('vda');
  const begins = lines.filter(({ phase }) => phase === 'begin');
  const ends = lines.filter(({ phase }) => phase === 'end');
  expect(begins.length).toBe(ends.length);
  expect(ends.every(({ outcome }) => outcome === 'ok')).toBe(true);
  expect(begins.filter(({ kind }) => kind === 'write')).toHaveLength(64);
});
