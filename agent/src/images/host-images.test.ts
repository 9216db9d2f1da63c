import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  digestOf,
  hexOf,
  type LayerRole,
  parseDigest,
  type WrittenLayer,
  writeHostIndex,
  writeHostManifest,
} from '@rackwright/oci';
import { type Page, pagesWeb, rangePage } from '@rackwright/oci/testing';
import { callersHashes, nodeLargeFiles } from '@rackwright/platform/node';
import { quietLog } from '@rackwright/platform/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BlobCache } from './blob-cache.ts';
import { type FromWeb, type HostImageProgress, HostImages } from './host-images.ts';

let folder = '';

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rackwright-host-images-'));
});

afterEach(() => rm(folder, { recursive: true }));

const never = new AbortController().signal;
const disk = Buffer.alloc(20_000, 'disk');
const kernel = Buffer.alloc(5_000, 'kernel');
const initrd = Buffer.alloc(7_000, 'initrd');
const layerOf = (bytes: Buffer, role: LayerRole): WrittenLayer => ({
  ...{ digest: digestOf(bytes), sizeBytes: bytes.length, role },
});
const raw = layerOf(disk, { role: 'disk', format: 'raw' });
const manifest = writeHostManifest({
  version: '12.9',
  layers: [raw, layerOf(kernel, { role: 'kernel' }), layerOf(initrd, { role: 'initrd' })],
});
const index = writeHostIndex([
  { digest: digestOf(manifest), sizeBytes: manifest.length, architecture: 'arm64' },
]);
const blobs = new Map(
  [disk, kernel, initrd, manifest, index].map((each) => [digestOf(each), each]),
);
const url = 'https://images.example.org/disk.raw';

async function setUp(
  bytesMax = 100_000,
  page: (url: string) => Page | undefined = () => undefined,
) {
  const { web, requests } = pagesWeb((request) => {
    const own = page(request.url);
    if (own !== undefined) return own;
    const name = request.url.split('/').at(-1) ?? '';
    const bytes =
      request.url === url ? disk : blobs.get(parseDigest(name) ?? digestOf(new Uint8Array()));
    if (bytes === undefined) return { status: 404 };
    const { headers = {}, ...answer } = rangePage(bytes, request.headers['range']);
    return { ...answer, headers: { ...headers, 'content-length': String(bytes.length) } };
  });
  const clock = { nowMs: () => 0, suspendAwareMs: () => 0, after: () => () => {} };
  const files = nodeLargeFiles();
  const cache = await BlobCache.open({
    hashes: callersHashes,
    files,
    clock,
    log: quietLog,
    folder,
    bytesMax,
  });
  const admission = { atOnceMax: 1, waitingMax: 10 };
  const images = new HostImages({ cache, web, admission, retryDelaysMs: [] });
  const told: HostImageProgress[] = [];
  return { cache, images, requests, told, tell: (each: HostImageProgress) => told.push(each) };
}

const wanted = (digest = digestOf(index), needs: 'disk' | 'netboot' = 'disk') => ({
  from: {
    ...({ kind: 'registry', plainHttp: false, credential: undefined, mirrors: [] } as const),
    reference: `registry.example.org/os/debian@${digest}`,
  },
  ...({ architecture: 'arm64', needs } as const),
});
const byUrl = (changes: Partial<FromWeb> = {}) => ({
  from: { kind: 'web', url, credential: undefined, digest: raw.digest, ...changes } as const,
  ...({ architecture: 'arm64', needs: 'disk' } as const),
});

test('an image is found through its index, and only what is needed of it is fetched', async () => {
  const { cache, images, requests, told, tell } = await setUp();
  const pinned = await images.pin('h1', wanted(), never, tell);
  expect(pinned.image).toMatchObject({
    ...{ version: '12.9', disk: { format: 'raw', architecture: 'arm64' } },
  });
  expect(requests.map(({ url: each }) => new URL(each).pathname)).toEqual([
    `/v2/os/debian/manifests/${digestOf(index)}`,
    `/v2/os/debian/manifests/${digestOf(manifest)}`,
    `/v2/os/debian/blobs/${raw.digest}`,
  ]);
  expect(told.at(-1)).toEqual({ phase: 'fetching', fetchedBytes: 20_000, allBytes: 20_000 });
  pinned.release();
  await images.prefetch(wanted(digestOf(index), 'netboot'), never, tell);
  for (const bytes of [kernel, initrd]) {
    expect(cache.find(digestOf(bytes))?.sizeBytes).toBe(bytes.length);
  }
  expect(requests).toHaveLength(5);
});

test('a disk image named by URL is fetched once, under its declared digest', async () => {
  const { cache, images, requests, tell } = await setUp();
  const ask = byUrl({ format: 'raw', compression: 'zstd', contentBytes: 5 });
  const pinned = await images.pin('h', ask, never, tell);
  expect(pinned.image.disk).toMatchObject({ format: 'raw', compression: 'zstd', contentBytes: 5 });
  pinned.release();
  expect(cache.find(raw.digest)?.sizeBytes).toBe(20_000);
  await images.prefetch(ask, never, tell);
  expect(requests.map(({ method }) => method)).toEqual(['HEAD', 'GET']);
});

test('a disk image named by URL is fetched again when its file was cut short', async () => {
  const before = await setUp();
  await before.images.prefetch(byUrl(), never, before.tell);
  await truncate(before.cache.find(raw.digest)?.path ?? '', 15_000);
  const { cache, images, tell } = await setUp();
  const pinned = await images.pin('h', byUrl(), never, tell);
  expect(pinned.image.disk?.blob.sizeBytes).toBe(20_000);
  expect(cache.find(raw.digest)?.sizeBytes).toBe(20_000);
  pinned.release();
  // Nothing stays pinned.
  const other = Buffer.alloc(100_000, 'o');
  const source = { open: async () => ({ start: 0, chunks: pieces(other), close: () => {} }) };
  const wants = { digest: digestOf(other), sizeBytes: other.length };
  await cache.pin(wants, source, never, () => {});
});

test('a waiting host gets its position, then the slot that another host releases', async () => {
  const { images, tell, told } = await setUp();
  const first = await images.pin('h1', wanted(), never, tell);
  const second = images.pin('h2', wanted(), never, tell);
  const third = images.pin('h3', wanted(), never, tell);
  expect(told).toContainEqual({ phase: 'queued', position: 2 });
  first.release();
  (await second).release();
  (await third).release();
  // Letting go twice lets nobody else in.
  first.release();
  const pinned = await images.pin('h1', wanted(), never, tell);
  const stop = new AbortController();
  const waiting = images.pin('h2', wanted(), stop.signal, tell);
  stop.abort();
  await expect(waiting).rejects.toThrow('given up');
  pinned.release();
});

test('a lost image is incomplete, and complete again once it is pinned again', async () => {
  const { cache, images, tell } = await setUp();
  const pinned = await images.pin('h1', wanted(), never, tell);
  pinned.giveBackSlot();
  expect(await pinned.isWhole()).toBe(true);
  await rm(cache.find(raw.digest)?.path ?? '');
  expect(await pinned.isWhole()).toBe(false);
  const again = await images.pin('h1', wanted(), never, tell);
  expect([await pinned.isWhole(), await again.isWhole()]).toEqual([true, true]);
});

test('a pinned image stays, and a released image makes room', async () => {
  const { cache, images, tell } = await setUp(22_000);
  const pinned = await images.pin('h1', wanted(), never, tell);
  const other = Buffer.alloc(15_000, 'o');
  blobs.set(digestOf(other), other);
  const source = { open: async () => ({ start: 0, chunks: pieces(other), close: () => {} }) };
  const fetch = () =>
    cache.pin({ digest: digestOf(other), sizeBytes: other.length }, source, never, () => {});
  await expect(fetch()).rejects.toThrow('full of images that are in use');
  pinned.release();
  await fetch();
  expect(cache.find(raw.digest)).toBeUndefined();
});

async function* pieces(bytes: Uint8Array) {
  yield bytes;
}

describe('what cannot be had leaves nothing pinned', () => {
  const named = (reference: string) => ({ ...wanted(), from: { ...wanted().from, reference } });
  test.each([
    ['a tag', 'malformed', named('r.example.org/x:1')],
    ['nonsense', 'malformed', named('///')],
    ['a URL with a user', 'malformed', byUrl({ url: 'https://a:b@images.example.org/x' })],
    ['what the registry does not have', 'notFound', wanted(digestOf(Buffer.from('x')))],
    ['another architecture', 'noPlatform', { ...wanted(), architecture: 'amd64' as const }],
    ['a kernel at a URL', 'malformed', { ...byUrl(), needs: 'netboot' as const }],
    ['what is larger than the cache', 'tooLarge', wanted()],
  ])('%s is refused, and pins nothing', async (_, kind, ask) => {
    const bytesMax = kind === 'tooLarge' ? 19_000 : 40_000;
    const { images, tell, cache } = await setUp(bytesMax);
    await expect(images.pin('h1', ask, never, tell)).rejects.toMatchObject({ kind });
    // The next one is admitted.
    await expect(images.pin('h2', ask, never, tell)).rejects.toMatchObject({ kind });
    // It fits only where nothing else has to stay.
    const other = Buffer.alloc(bytesMax, 'o');
    const source = { open: async () => ({ start: 0, chunks: pieces(other), close: () => {} }) };
    await cache.pin({ digest: digestOf(other), sizeBytes: bytesMax }, source, never, () => {});
  });

  test('a disk that differs from its name is refused, and pins nothing', async () => {
    const { cache, images, tell } = await setUp(100_000, (place) =>
      place.includes('/blobs/') ? { body: Buffer.alloc(20_000, 'bad') } : undefined,
    );
    for (const host of ['h1', 'h2']) {
      const pinned = images.pin(host, wanted(), never, tell);
      await expect(pinned).rejects.toMatchObject({ kind: 'digestMismatch' });
    }
    expect(cache.find(raw.digest)).toBeUndefined();
  });
});

test('a host that releases an image ends its fetch if no other host wants it', async () => {
  const { cache, images, tell } = await setUp();
  const stop = new AbortController();
  const pinned = images.pin('h1', wanted(), stop.signal, (progress) => {
    if (progress.phase === 'fetching') stop.abort();
  });
  await expect(pinned).rejects.toThrow('given up');
  const again = await images.pin('h1', wanted(), never, tell);
  expect(cache.find(raw.digest)).toBeDefined();
  again.release();
});

test('a leftover of an earlier life does not count as the begun image', async () => {
  await writeFile(join(folder, `${hexOf(raw.digest)}.part`), disk.subarray(0, 12_000));
  const { images, tell, told } = await setUp(100_000, (place) =>
    place.includes('/blobs/') ? { status: 404 } : undefined,
  );
  const begun = images.begin('h1', wanted(), never, tell);
  await expect(begun).rejects.toMatchObject({ kind: 'notFound' });
  expect(told).toContainEqual({ phase: 'fetching', fetchedBytes: 12_000, allBytes: 20_000 });
});
