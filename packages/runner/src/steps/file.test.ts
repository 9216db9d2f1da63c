import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import type { DeviceFacts } from '@rackwright/erasure';
import { BmcIdentitySchema } from '@rackwright/messages';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { folderFiles } from '../linux/machine-files.ts';
import {
  type FileContent,
  FileError,
  type MachineFiles,
  type NumberedPartition,
} from '../machine/files.ts';
import { runFile } from './file.ts';
import type { StepContext } from './step.ts';
import { guid, noDevices, runStep } from './steps.fixture.ts';

let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-file-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

function disk(change: Partial<DeviceFacts> = {}): DeviceFacts {
  const region = { name: 'sda', sizeBytes: 1e9, logicalBlockBytes: 512 };
  return {
    name: 'sda',
    transport: 'sata',
    model: 'M',
    serial: 'S-1',
    wwn: 'naa.5',
    firmware: '',
    sizeBytes: 1e9,
    rotational: false,
    removable: false,
    readOnly: false,
    discardSupported: false,
    raidVolume: false,
    holders: [],
    regions: [region],
    partitions: [],
    ...change,
  };
}

const onDisk = { path: '/etc/a', content: 'x', disk: 'S-1', partition: '2', filesystem: 'ext4' };

/** A step with these disks; written content reads back as `readBack` makes it. */
function withDisks(
  devices: readonly DeviceFacts[],
  readBack: (file: FileContent) => FileContent = (file) => file,
) {
  const written: { place: NumberedPartition; path: string }[] = [];
  const files: MachineFiles = {
    ...folderFiles(folder),
    writeOnDisk: async (place, path, file) => {
      written.push({ place, path });
      return readBack(file);
    },
  };
  const change = { devices: { ...noDevices, list: async () => ({ devices, signs: [] }) } };
  const run = async (
    given: Record<string, string>,
    ofBmc: Uint8Array = guid,
    mayBegin?: StepContext['requestBegin'],
  ) => {
    const expectedIdentity = create(BmcIdentitySchema, { guid: ofBmc });
    const asked = mayBegin === undefined ? {} : { requestBegin: mayBegin };
    const order = { destructive: mayBegin !== undefined, expectedIdentity };
    return (await runStep(runFile(files), given, order, { ...change, ...asked }).end).result;
  };
  return { run, written };
}

test('a step writes a file below its root, with its mode, and reads it back', async () => {
  const step = runFile(folderFiles(folder));
  const given = { path: '/etc/motd', content: 'hello\n', mode: '0600' };
  expect((await runStep(step, given).end).result).toEqual({ kind: 'complete' });
  expect(readFileSync(join(folder, 'etc/motd'), 'utf8')).toBe('hello\n');
  expect(statSync(join(folder, 'etc/motd')).mode & 0o7777).toBe(0o600);
  const bytes = { path: '/bytes', content: 'AP8=', encoding: 'base64' };
  expect((await runStep(step, bytes).end).result).toEqual({ kind: 'complete' });
  expect([...readFileSync(join(folder, 'bytes'))]).toEqual([0, 255]);
});

test('the step finds the disk by serial or WWN, and passes the partition on', async () => {
  const { run, written } = withDisks([disk(), disk({ name: 'sdb', serial: 'S-2', wwn: 'naa.6' })]);
  expect(await run(onDisk)).toEqual({ kind: 'complete' });
  expect(await run({ ...onDisk, disk: 'naa.6' })).toEqual({ kind: 'complete' });
  const places = written.map(({ place: { device, partition, filesystem } }) => {
    return `${device.name} ${partition} ${filesystem}`;
  });
  expect(places).toEqual(['sda 2 ext4', 'sdb 2 ext4']);
});

test.each<[string, Partial<DeviceFacts>[], string]>([
  ['is not there', [{ serial: 'S-9', wwn: '' }], 'no disk has the serial or world wide name S-1'],
  ['is there twice', [{}, { name: 'sdb' }], '2 disks say that they are S-1'],
  ['belongs to others too', [{ transport: 'fibreChannel' }], 'S-1 is not written to'],
  ['is in use', [{ holders: ['mount /'] }], 'S-1'],
])('a file step writes to no disk that %s', async (_name, changes, problem) => {
  const { run, written } = withDisks(changes.map((change) => disk(change)));
  expect(await run(onDisk)).toMatchObject({
    type: 'deviceChanged',
    message: expect.stringContaining(problem),
  });
  expect(written).toEqual([]);
});

test('no disk of another machine is written, whatever the order says it destroys', async () => {
  const { run, written } = withDisks([disk()]);
  const other = Buffer.from('ff112233445566778899aabbccddeeff', 'hex');
  expect(await run(onDisk, other)).toMatchObject({ type: 'identityMismatch' });
  expect(written).toEqual([]);
});

test('the step asks before it writes on a disk, and writes nothing without a yes', async () => {
  const { run, written } = withDisks([disk()]);
  let asked = 0;
  const granted = async () => {
    asked += 1;
    expect(written).toEqual([]);
    return { kind: 'granted' } as const;
  };
  expect(await run(onDisk, guid, async () => ({ kind: 'over', reason: 'why' }))).toEqual({
    kind: 'failed',
    type: 'cancelled',
    message: 'It wrote nothing: why.',
  });
  expect(await run(onDisk, guid, async () => ({ kind: 'aborted' }))).toMatchObject({
    type: 'cancelled',
  });
  expect(written).toEqual([]);
  expect(await run(onDisk, guid, granted)).toEqual({ kind: 'complete' });
  expect([asked, written.length]).toEqual([1, 1]);
});

test('a file counts as written only if it reads back', async () => {
  const other = withDisks([disk()], (file) => ({ ...file, content: Buffer.from('y') }));
  expect(await other.run(onDisk)).toMatchObject({ kind: 'failed', type: 'unverified' });
  const mode = withDisks([disk()], (file) => ({ ...file, mode: 0o755 }));
  expect(await mode.run(onDisk)).toMatchObject({
    type: 'unverified',
    message: 'The file is not proved: its mode reads back as 0755 instead of 0644.',
  });
  expect(await mode.run({ ...onDisk, filesystem: 'vfat' })).toEqual({ kind: 'complete' });
  const broken = withDisks([disk()], () => {
    throw new FileError('mount: wrong fs type');
  });
  expect(await broken.run(onDisk)).toMatchObject({
    type: 'ioError',
    message: '/etc/a was not written: mount: wrong fs type',
  });
});

test('a machine made of software has no file system on its disks', async () => {
  const order = { expectedIdentity: create(BmcIdentitySchema, { guid }) };
  const { result } = await runStep(runFile(folderFiles(folder)), onDisk, order).end;
  expect(result).toMatchObject({
    type: 'unsupported',
    message: 'the disks of a machine made of software hold no file systems',
  });
});

test.each<[string, Record<string, string>, string]>([
  ['no path', { path: '' }, 'path: must begin with "/"'],
  ['a relative path', { path: 'etc/a' }, 'path: must begin with "/"'],
  ['a path that climbs', { path: '/etc/../../a' }, 'path: must not contain "." or ".."'],
  ['a folder', { path: '/etc/' }, 'path: must name a file'],
  ['a long name', { path: `/${'x'.repeat(300)}` }, 'path: has a name of more than 255 bytes'],
  ['a mode in words', { mode: 'rw-r--r--' }, 'mode: "rw-r--r--" is not octal'],
  ['an encoding', { encoding: 'hex' }, 'encoding: "hex" is not one of text, base64'],
  ['bad base64', { encoding: 'base64', content: 'A' }, 'content: is no base64'],
  ['too much', { content: 'x'.repeat(70_000) }, 'content: has 70000 bytes'],
  ['a partition without a disk', { partition: '1' }, 'disk: is missing'],
  ['a disk without a partition', { disk: 'S-1', filesystem: 'xfs' }, 'partition: must be'],
  ['ntfs', { disk: 'S', partition: '1', filesystem: 'ntfs' }, 'filesystem: "ntfs" is not one of'],
  ['a typo', { contents: '' }, 'unknown arguments contents'],
])('the step refuses %s and writes nothing', async (_name, given, problem) => {
  const step = runFile(folderFiles(folder));
  const { result } = await runStep(step, { path: '/a', content: 'x', ...given }).end;
  expect(result).toMatchObject({
    type: 'invalidArgument',
    message: expect.stringContaining(problem),
  });
  expect(existsSync(join(folder, 'a'))).toBe(false);
});

test('nothing is written on another machine than the one that was meant', async () => {
  const step = runFile(folderFiles(folder));
  const expectedIdentity = create(BmcIdentitySchema, {
    guid: Buffer.from('ff112233445566778899aabbccddeeff', 'hex'),
  });
  const order = { destructive: true, expectedIdentity };
  const { result } = await runStep(step, { path: '/a', content: 'x' }, order).end;
  expect(result).toMatchObject({ type: 'identityMismatch' });
  expect(existsSync(join(folder, 'a'))).toBe(false);
});
