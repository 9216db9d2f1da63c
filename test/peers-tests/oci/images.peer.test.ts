/** Our client of registries against Debian's docker-registry. */
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BlobCache, Images } from '@rackwright/agent';
import { quietLog } from '@rackwright/agent/testing';
import { digestOf, hexOf, parseReference, RegistryClient, verifiedBlob } from '@rackwright/oci';
import { writeImage, writeTar } from '@rackwright/oci/testing';
import { callersHashes, nodeClock, nodeLargeFiles, nodeWebClient } from '@rackwright/platform/node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { peer } from '../peer.ts';
import { credential, push, type Registry, startRegistry } from './registry.ts';

const registryProgram = peer('docker-registry');
const skopeo = peer('skopeo');
const missing = [registryProgram, skopeo].find(({ kind }) => kind === 'missing');
const reason = missing?.kind === 'missing' ? missing.reason : undefined;
const repository = 'tools/check';
/** Larger than what one piece or one socket buffer holds. */
const largeBytes = 3_000_000;

const layers = [
  writeTar([
    { name: 'bin/', type: '5' },
    { name: 'bin/tool', content: 'program' },
  ]),
  writeTar([{ name: 'large', content: randomBytes(largeBytes) }]),
];
const image = writeImage(layers);
const [, large = image.config] = image.layers;
const web = nodeWebClient();
const never = new AbortController().signal;

let open: Registry | undefined;
let guarded: Registry | undefined;
let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rackwright-pulled-'));
  if (registryProgram.kind === 'missing' || skopeo.kind === 'missing') return;
  open = await startRegistry(registryProgram.path, false);
  guarded = await startRegistry(registryProgram.path, true);
  for (const registry of [open, guarded]) await push(skopeo.path, registry, repository, image);
});

afterAll(async () => {
  await open?.close();
  await guarded?.close();
  await rm(folder, { recursive: true });
});

function nameOf(registry: Registry | undefined): string {
  if (registry === undefined) throw new Error('the registry is not there');
  return registry.name;
}

async function imagesIn(name: string): Promise<Images> {
  const clock = nodeClock();
  await mkdir(join(folder, name), { recursive: true });
  const cache = await BlobCache.open({
    hashes: callersHashes,
    ...{ clock, log: quietLog, files: nodeLargeFiles(), folder: join(folder, name) },
    bytesMax: 100_000_000,
  });
  return new Images({ cache, web, architecture: 'amd64' });
}

function fetch(images: Images, registry: string, secret: typeof credential | undefined) {
  const reference = `${registry}/${repository}@${image.manifest}`;
  return images.fetch({ reference, plainHttp: true, credential: secret }, never, () => {});
}

test('the agent pulls by digest from a registry that asks nobody who they are', async (context) => {
  if (reason !== undefined) return context.skip(reason);
  const images = await imagesIn('open');
  const pinned = await fetch(images, nameOf(open), undefined);
  for (const [digest, bytes] of image.blobs) {
    const { path = '' } = images.blob(hexOf(digest)) ?? {};
    expect((await readFile(path)).equals(bytes)).toBe(true);
  }
  pinned.release();
});

test('the agent pulls with a password, and says what is wrong without it', async (context) => {
  if (reason !== undefined) return context.skip(reason);
  const images = await imagesIn('guarded');
  await expect(fetch(images, nameOf(guarded), undefined)).rejects.toMatchObject({
    kind: 'unauthorized',
    message: expect.stringContaining('without a credential: 401 (UNAUTHORIZED'),
  });
  const wrong = { ...credential, password: 'simsalabim' };
  await expect(fetch(images, nameOf(guarded), wrong)).rejects.toMatchObject({
    kind: 'unauthorized',
    message: expect.not.stringContaining('simsalabim'),
  });
  (await fetch(images, nameOf(guarded), credential)).release();
  expect(images.blob(hexOf(large))?.sizeBytes).toBe(image.blobs.get(large)?.length);
});

test('the agent goes on with a blob in its middle, by a range', async (context) => {
  if (reason !== undefined) return context.skip(reason);
  const bytes = image.blobs.get(large) ?? Buffer.alloc(0);
  const access = { registry: nameOf(open), plainHttp: true, credential: undefined };
  const source = new RegistryClient(web, access).blobs(repository);
  const blob = await source.open(large, 1_234_567, undefined);
  expect(blob.start).toBe(1_234_567);
  blob.close();
  async function* already() {
    yield bytes.subarray(0, 2_000_000);
  }
  const parts: Uint8Array[] = [];
  const wanted = { digest: large, sizeBytes: bytes.length };
  for await (const part of verifiedBlob(source, wanted, { already: already() })) parts.push(part);
  expect(Buffer.concat(parts).equals(bytes.subarray(2_000_000))).toBe(true);
  // And so does the cache with what a dead agent left.
  const images = await imagesIn('resumed');
  await writeFile(join(folder, 'resumed', `${hexOf(large)}.part`), bytes.subarray(0, 2_500_000));
  (await fetch(images, nameOf(open), undefined)).release();
  const { path = '' } = images.blob(hexOf(large)) ?? {};
  expect((await readFile(path)).equals(bytes)).toBe(true);
  const left = bytes.length - 2_500_000;
  expect(open?.log()).toMatch(new RegExp(`"GET [^"]*${hexOf(large)}[^"]*" 206 ${left} `));
});

test('the agent finds no image of another digest or repository', async (context) => {
  if (reason !== undefined) return context.skip(reason);
  const images = await imagesIn('missing');
  for (const name of [
    `${repository}@${digestOf(Buffer.from('another'))}`,
    `tools/other@${image.manifest}`,
  ]) {
    const reference = `${nameOf(open)}/${name}`;
    expect(parseReference(reference).kind).toBe('ok');
    const wanted = { reference, plainHttp: true, credential: undefined };
    await expect(images.fetch(wanted, never, () => {})).rejects.toMatchObject({ kind: 'notFound' });
  }
});

test('the agent refuses what a damaged registry sends', async (context) => {
  if (reason !== undefined) return context.skip(reason);
  const registry = open;
  if (registry === undefined) throw new Error('the registry is not there');
  const bytes = image.blobs.get(large) ?? Buffer.alloc(0);
  const file = registry.blobFile(hexOf(large));
  const images = await imagesIn('damaged');
  await writeFile(file, Buffer.from(bytes).fill(0, 1_000_000, 1_000_100));
  await expect(fetch(images, registry.name, undefined)).rejects.toMatchObject({
    kind: 'digestMismatch',
  });
  expect(images.blob(hexOf(large))).toBeUndefined();
  await writeFile(file, bytes);
  (await fetch(images, registry.name, undefined)).release();
});

test('the agent calls a registry that is away unreachable', async (context) => {
  if (reason !== undefined) return context.skip(reason);
  if (registryProgram.kind === 'missing') return;
  const gone = await startRegistry(registryProgram.path, false);
  await gone.close();
  const images = await imagesIn('away');
  await expect(fetch(images, gone.name, undefined)).rejects.toMatchObject({ kind: 'unreachable' });
});
