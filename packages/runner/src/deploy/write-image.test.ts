/** The step on disks made of files, with an image that a web server serves as agents do. */
import { create, type MessageInitShape, toJson } from '@bufbuild/protobuf';
import { SourceBroken } from '@rackwright/disk-image';
import {
  asRunNumber,
  BmcIdentitySchema,
  deploymentIdOf,
  FirstBootFormat,
} from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import * as runner from '@rackwright/messages/runner';
import { callersHashes, nodeClock, nodeWebClient } from '@rackwright/platform/node';
import { boundResult, resultToWire } from '@rackwright/results';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fileDisks } from '../linux/file-disks.ts';
import { softwareImageTools } from '../linux/image-tools.ts';
import { DeviceError } from '../machine/block-devices.ts';
import type { StepContext, StepResult } from '../steps/step.ts';
import { guid, runStep } from '../steps/steps.fixture.ts';
import {
  addDisk,
  contentOf,
  diskImage,
  mib,
  removeDisks,
  type ServedImages,
  seedText,
  serveImages,
  sha256,
} from './deploy.fixture.ts';
import type { ImageTools } from './image-tools.ts';
import { writeImage } from './write-image.ts';

const image = diskImage();
/** More than the reader is ahead of the writer. */
const largeImage = diskImage(9 * mib);
const url = 'http://10.0.0.1:80/phone-home/u-7/secret';
const sda = { serial: 'S-sda', wwn: 'naa.5000000000000001' };
let folder = '';
let images: ServedImages;

beforeEach(async () => {
  folder = addDisk('sda', sda);
  images = await serveImages(image, largeImage);
});

afterEach(() => {
  images.close();
  removeDisks(folder);
});

test('no image is written onto a disk that came after the host was inspected', async () => {
  const plan = (serial: string) => create(agent.DevicePlanSchema, { device: { serial } });
  const end = await write({ order: { devices: [plan('S-other')] } });
  expect(end.result).toMatchObject({ kind: 'failed', type: 'deviceChanged', disksUntouched: true });
  expect(contentOf(folder, 'sda').includes('PATTERN!')).toBe(true);
  const known = await write({ order: { devices: [plan('S-other'), plan('S-sda')] } });
  expect(known.result.kind).toBe('complete');
});

interface Change {
  readonly file?: MessageInitShape<typeof runner.ImageFileSchema>;
  readonly deployment?: MessageInitShape<typeof agent.DeploymentSchema>;
  readonly order?: { [Name in keyof agent.RunStep]?: agent.RunStep[Name] | undefined };
  readonly context?: Partial<StepContext>;
  readonly place?: Partial<ImageTools>;
}

function fileOf(bytes: Uint8Array): MessageInitShape<typeof runner.ImageFileSchema> {
  return { digest: `sha256:${sha256(bytes)}`, sizeBytes: BigInt(bytes.length) };
}

function write(change: Change = {}): Promise<StepResult> {
  const usual = softwareImageTools(nodeWebClient(), nodeClock(), callersHashes);
  const place: ImageTools = { ...usual, architecture: 'amd64', ...change.place };
  const file = fileOf(image);
  const deployment = create(agent.DeploymentSchema, {
    ...{ id: deploymentIdOf('u', asRunNumber(7)), hostName: 'h1' },
    ...change.deployment,
  });
  const expectedIdentity = create(BmcIdentitySchema, { guid });
  const order = { mode: agent.StepMode.RUN, expectedIdentity, deployment };
  return runStep(
    writeImage(place),
    {},
    {},
    {
      order: Object.assign(create(agent.RunStepSchema, order), change.order),
      devices: fileDisks(folder, nodeClock()),
      imageEndpoint: images.endpoint,
      imageFile: create(runner.ImageFileSchema, { ...file, ...change.file }),
      phoneHomeUrl: url,
      ...change.context,
    },
  ).end;
}

function writtenIn({ result }: StepResult): agent.WrittenImage | undefined {
  if (result.kind === 'retryAfter') return undefined;
  return result.observations?.writtenImage;
}

/** What the agent is sent of a failure; the tests of the control plane are fed by it. */
const sent: string[] = [];

function keep(name: string, { result }: StepResult): void {
  const wire = resultToWire(boundResult(result));
  if (wire.case !== 'failed') throw new Error(`${name}: ${wire.case}`);
  sent.push(JSON.stringify([name, toJson(agent.FailedSchema, wire.value)]));
}

const isUntouched = (name: string): boolean =>
  contentOf(folder, name).equals(Buffer.alloc(contentOf(folder, name).length, 'PATTERN!'));

test('an image is written, grown, given its first boot, and read back', async () => {
  const told: string[] = [];
  const end = await write({
    deployment: {
      deploy: { firstBoot: { userData: '#cloud-config\n{}\n', metaData: { role: 'web' } } },
    },
    context: { reportProgress: (percent, text) => told.push(`${percent} ${text}`) },
  });
  expect(end.result).toMatchObject({ kind: 'complete' });
  expect(writtenIn(end)).toMatchObject({
    digest: `sha256:${sha256(image)}`,
    whole: true,
    serial: 'S-sda',
    contentDigest: `sha256:${sha256(image)}`,
    table: 'mbr',
  });
  expect(writtenIn(end)?.partitions.map(({ seed }) => seed)).toEqual([false, true]);
  expect(told.at(-1)).toBe('100 done (sda)');
  expect(new Set(told).size).toBe(told.length);
  const seed = seedText(folder, 'sda', writtenIn(end));
  for (const text of ['{"role":"web","instance-id":"u/7"', 'CIDATA', url, '#cloud-config\n{}']) {
    expect(seed).toContain(text);
  }
});

/** What nothing is written for: the change, the type of the failure, words of it. */
test.for<[string, Change, string, string]>([
  [
    'an order without a deployment',
    { order: { deployment: undefined } },
    'invalidArgument',
    'deployment',
  ],
  ['an order to check', { order: { mode: agent.StepMode.CHECK } }, 'invalidArgument', 'mode'],
  ['a digest that is none', { file: { digest: 'sha256:ab' } }, 'invalidArgument', 'digest'],
  ['an unknown compression', { file: { compression: 'lz4' } }, 'invalidArgument', 'compression'],
  ['an agent without images', { context: { imageEndpoint: '' } }, 'invalidArgument', 'no images'],
  ['no place to phone home to', { context: { phoneHomeUrl: '' } }, 'invalidArgument', 'phone home'],
  [
    'no data for the first boot, and the call home',
    { deployment: { deploy: { firstBoot: { format: FirstBootFormat.NONE } } } },
    'invalidArgument',
    'POWER_ON',
  ],
  [
    'another machine',
    {
      order: {
        expectedIdentity: create(BmcIdentitySchema, { guid: Buffer.from(guid).fill(1, 12) }),
      },
    },
    'identityMismatch',
    'not the host',
  ],
  ['another architecture', { file: { architecture: 'riscv64' } }, 'wrongArchitecture', 'riscv64'],
  [
    'hints that fit no disk',
    { deployment: { rootDisk: { serial: 'other' } } },
    'noRootDisk',
    'no disk fits the hints serial other',
  ],
  [
    'a disk that is kept',
    { deployment: { deploy: { keepDisks: ['0x5000000000000001'] } } },
    'keepDisk',
    'no other disk than what is kept: S-sda',
  ],
  [
    'hints that fit a disk that is kept',
    { deployment: { rootDisk: { serial: 'S-sda' }, deploy: { keepDisks: ['s-SDA'] } } },
    'keepDisk',
    'the hints fit S-sda',
  ],
  [
    'an image larger than the disk',
    { file: { contentBytes: 15n * BigInt(mib), sizeBytes: 0n } },
    'imageTooLarge',
    `it has ${15 * mib} bytes, the disk ${14 * mib}`,
  ],
  ['an image of another kind', { file: { format: 'qcow2' } }, 'badImage', 'qcow2'],
  [
    'firmware that finds nothing',
    { place: { firmware: async () => 'uefi' } },
    'notBootable',
    'UEFI',
  ],
  [
    'an agent that does not let it begin',
    { context: { requestBegin: async () => ({ kind: 'over', reason: 'its time is over' }) } },
    'cancelled',
    'not begun: its time is over',
  ],
])('no disk is written for %s', async ([name, change, type, text]) => {
  const end = await write(change);
  const { result } = end;
  expect(result).toMatchObject({ kind: 'failed', type, message: expect.stringContaining(text) });
  keep(`nothing is written for ${name}`, end);
  expect(result).toHaveProperty('disksUntouched', true);
  expect(result).not.toHaveProperty('observations');
  expect(isUntouched('sda')).toBe(true);
});

test('the step writes nothing while the agent does not serve the image yet', async () => {
  images.blobs.clear();
  const { result } = await write();
  expect(result).toMatchObject({ kind: 'retryAfter', reason: 'fault' });
  expect(isUntouched('sda')).toBe(true);
});

test('the step takes the other disk where one is kept, and leaves that alone', async () => {
  addDisk('sdb', { serial: 'S-sdb' }, folder);
  const deploy = { keepDisks: ['S-sda', 'of another host'] };
  const end = await write({ deployment: { deploy } });
  expect(writtenIn(end)).toMatchObject({ serial: 'S-sdb', whole: true });
  expect(isUntouched('sda')).toBe(true);
});

test('the step does not choose between two disks, nor a disk in use or a remote one', async () => {
  addDisk('sdb', { serial: 'S-sdb', holders: ['mount /'] }, folder);
  addDisk('sdc', { serial: 'S-sdc', transport: 'iscsi' }, folder);
  const refused = async (rootDisk: object) => {
    const { result } = await write({ deployment: { rootDisk } });
    expect(result).toMatchObject({ kind: 'failed', type: 'noRootDisk' });
    return result.kind === 'failed' ? result.message : '';
  };
  expect(await refused({})).toContain('2 disks fit without a hint');
  expect(await refused({ serial: 'S-sdb' })).toContain('in use by mount /');
  expect(await refused({ serial: 'S-sdc' })).toContain('no disk fits');
});

/** Faults after the first write: of the served file or of the disk, and the failure. */
test.for<[string, () => void, Change, string, string]>([
  [
    'other bytes than the digest names',
    () => {
      const other = Buffer.from(image);
      other[3 * mib] = (other[3 * mib] ?? 0) ^ 1;
      images.blobs.set(sha256(image), other);
    },
    {},
    'imageDigestMismatch',
    'SHA-256',
  ],
  [
    'a file that ends too early',
    () => void images.blobs.set(sha256(image), image.subarray(0, 3 * mib)),
    { file: { sizeBytes: 0n, contentBytes: BigInt(image.length) } },
    'imageDigestMismatch',
    'SHA-256',
  ],
  [
    'a disk that cannot be written to',
    () => {
      const faults = [{ kind: 'ioError', operation: 'write', offset: 2 * mib, length: 512 }];
      addDisk('sda', { serial: 'S-sda', faults }, folder);
    },
    {},
    'writeError',
    'I/O error',
  ],
  [
    'a disk that forgets what is written',
    () => {
      const faults = [{ kind: 'lying', operation: 'write' }];
      addDisk('sda', { serial: 'S-sda', faults }, folder);
    },
    {},
    'writeError',
    'read back',
  ],
])('the step fails for %s, and says that the disk is lost', async ([name, ...its]) => {
  const [arrange, change, type, text] = its;
  arrange();
  const end = await write(change);
  keep(`the disk is lost by ${name}`, end);
  const message = expect.stringContaining(text);
  expect(end.result).toMatchObject({ kind: 'failed', type, message });
  expect(end.result).toMatchObject({
    message: expect.stringContaining('what the disk S-sda held'),
  });
  expect(writtenIn(end)).toMatchObject({ whole: false, serial: 'S-sda', partitions: [] });
  expect(end.result).not.toHaveProperty('disksUntouched');
});

test('each failure is sent in the form that the control plane’s tests use', async () => {
  await expect(`${sent.join('\n')}\n`).toMatchFileSnapshot('./write-image.ends.jsonl');
});

/**
 * On a disk with room for the large image. Breaks off in the middle, and then is away so often;
 * `gone`: it has the image no more.
 */
function leaving(awayMax: number, gone = false): Partial<ImageTools> & { readonly away: number } {
  const usual = softwareImageTools(nodeWebClient(), nodeClock(), callersHashes);
  addDisk('sda', sda, folder, 32 * mib);
  const state = { away: 0 };
  const sourceAt: ImageTools['sourceAt'] = (at) => ({
    open: async (from, signal) => {
      if (from > 0 && gone) images.blobs.clear();
      else if (from > 0 && state.away < awayMax) {
        state.away += 1;
        throw new SourceBroken('the agent is away');
      }
      const opened = await usual.sourceAt(at).open(from, signal);
      return from > 0 ? opened : { ...opened, chunks: cutAt(opened.chunks, 6 * mib) };
    },
  });
  const limits = { emptyBreaksMax: 2, breaksMax: 4, pause: async () => {} };
  return Object.assign(state, { sourceAt, limits });
}

async function* cutAt(chunks: AsyncIterable<Uint8Array>, at: number) {
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    // The reader owns it.
    yield chunk;
    if (bytes >= at) throw new SourceBroken('the agent has gone');
  }
}

test('the step waits for an agent that is lost midway, and continues where it was', async () => {
  const place = leaving(100);
  const end = await write({ place, file: fileOf(largeImage) });
  expect(writtenIn(end)).toMatchObject({ whole: true, digest: `sha256:${sha256(largeImage)}` });
  expect(place.away).toBe(100);
});

test('an agent that no longer has the image interrupts the step, without a failure', async () => {
  const end = await write({ place: leaving(0, true), file: fileOf(largeImage) });
  expect(end.result).toMatchObject({ kind: 'failed', type: 'interrupted' });
  expect(end.result).not.toHaveProperty('disksUntouched');
  expect(writtenIn(end)).toMatchObject({ whole: false, serial: 'S-sda' });
});

test('the step is stopped at once while it waits for its agent', async () => {
  const stop = new AbortController();
  const limits = {
    ...{ emptyBreaksMax: 2, breaksMax: 4 },
    pause: () => {
      stop.abort();
      return new Promise<void>(() => {});
    },
  };
  const { result } = await write({
    ...{ place: { ...leaving(1), limits }, file: fileOf(largeImage) },
    context: { signal: stop.signal },
  });
  expect(result).toMatchObject({ kind: 'failed', type: 'cancelled' });
});

test('UEFI gets an entry for the image; the step also succeeds if that cannot be set', async () => {
  const efi = diskImage();
  efi[446 + 4] = 0xef;
  images.blobs.set(sha256(efi), efi);
  const file = { digest: `sha256:${sha256(efi)}` };
  const entries: unknown[] = [];
  const addBootEntry: ImageTools['addBootEntry'] = async (entry, position) => {
    entries.push({ ...entry, position });
    return 'Boot0003';
  };
  const uefi: Partial<ImageTools> = { firmware: async () => 'uefi' };
  const good = await write({ file, place: { ...uefi, addBootEntry } });
  expect(writtenIn(good)).toMatchObject({ firmware: 'uefi', bootEntry: 'Boot0003' });
  const partition = { number: 1, type: 'ef' };
  expect(entries).toMatchObject([{ blockBytes: 512, partition, position: 'first' }]);
  await write({ file, place: { ...uefi, addBootEntry }, deployment: { networkFirst: true } });
  expect(entries.at(-1)).toMatchObject({ position: 'afterNetwork' });
  const full = async (): Promise<string> => Promise.reject(new DeviceError('no room'));
  const bad = await write({ file, place: { ...uefi, addBootEntry: full } });
  expect(bad.result).toMatchObject({ kind: 'complete' });
  expect(writtenIn(bad)).toMatchObject({ bootEntry: '', bootEntryProblem: 'no room', whole: true });
});
