import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { digestOf, hexOf } from '@rackwright/oci';
import {
  type Page,
  pagesWeb,
  rangePage,
  type WrittenImage,
  writeImage,
  writeIndex,
  writeTar,
} from '@rackwright/oci/testing';
import { callersHashes, nodeLargeFiles } from '@rackwright/platform/node';
import { quietLog } from '@rackwright/platform/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { BlobCache } from './blob-cache.ts';
import { Images } from './images.ts';

let folder = '';

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rackwright-images-'));
});

afterEach(() => rm(folder, { recursive: true }));

const layer = writeTar([{ name: 'bin/tool', content: 'x'.repeat(5_000) }]);

/** Images over a registry that has this one. */
async function setUp(
  image: WrittenImage,
  bytesMax = 100_000,
  page: (path: string) => Page | undefined = () => undefined,
) {
  const { web, requests } = pagesWeb(({ url, headers }) => {
    const own = page(url);
    if (own !== undefined) return own;
    const digest = url.split('/').at(-1) ?? '';
    const bytes = image.blobs.get(digest as typeof image.manifest);
    return bytes === undefined ? { status: 404 } : rangePage(bytes, headers['range']);
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
  const images = new Images({ cache, web, architecture: 'amd64' });
  const told: string[] = [];
  const fetch = (digest: string = image.manifest) =>
    images.fetch(
      {
        reference: `registry.example.org/tools/x@${digest}`,
        plainHttp: false,
        credential: undefined,
      },
      new AbortController().signal,
      (bytes, all) => told.push(`${bytes}/${all}`),
    );
  return { fetch, images, requests, told };
}

test('the cache brings all blobs of an image, once, and serves them by their digests', async () => {
  const image = writeImage([layer], { compression: 'none' });
  const { fetch, images, requests, told } = await setUp(image);
  const pinned = await fetch();
  expect(requests.map(({ url }) => new URL(url).pathname)).toEqual([
    `/v2/tools/x/manifests/${image.manifest}`,
    `/v2/tools/x/blobs/${image.config}`,
    `/v2/tools/x/blobs/${image.layers[0]}`,
  ]);
  for (const [digest, bytes] of image.blobs) {
    expect(images.blob(hexOf(digest))?.sizeBytes).toBe(bytes.length);
  }
  const all = (image.blobs.get(image.config)?.length ?? 0) + layer.length;
  expect(told.at(-1)).toBe(`${all}/${all}`);
  for (const name of ['', 'x', '../journal', '0'.repeat(64)]) {
    expect(images.blob(name)).toBeUndefined();
  }
  pinned.release();
  (await fetch()).release();
  expect(requests).toHaveLength(3);
});

test('the cache takes from an index the image for its runners', async () => {
  const image = writeImage([layer]);
  const index = writeIndex({ arm64: writeImage([], { architecture: 'arm64' }), amd64: image });
  const digest = digestOf(index);
  const { fetch, images } = await setUp(image, 100_000, (url) =>
    url.endsWith(digest) ? { body: index } : undefined,
  );
  await fetch(digest);
  expect(images.blob(hexOf(image.manifest))).toBeDefined();
  const other = writeIndex({ arm64: image });
  const named = digestOf(other);
  const wrong = await setUp(image, 100_000, (url) =>
    url.endsWith(named) ? { body: other } : undefined,
  );
  await expect(wrong.fetch(named)).rejects.toThrow('not there for linux/amd64: linux/arm64 is');
});

test('an image that does not fit the cache is refused before it is fetched', async () => {
  const image = writeImage([layer], { compression: 'none' });
  const { fetch, requests } = await setUp(image, 3_000);
  await expect(fetch()).rejects.toMatchObject({
    kind: 'tooLarge',
    message: expect.stringContaining('the agent keeps at most 3000 (imageCacheBytesMax)'),
  });
  expect(requests).toHaveLength(1);
});

test('the cache refuses an image of another architecture, or without a digest', async () => {
  const { fetch, images } = await setUp(writeImage([layer], { architecture: 'arm64' }));
  await expect(fetch()).rejects.toThrow('the image is for linux/arm64');
  const wanted = { reference: 'registry.example.org/x:tag', plainHttp: false };
  const signal = new AbortController().signal;
  const tagged = images.fetch({ ...wanted, credential: undefined }, signal, () => {});
  await expect(tagged).rejects.toThrow('named by no digest');
});

test('the cache holds nothing of an image that could not be had', async () => {
  const image = writeImage([layer], { compression: 'none' });
  const { fetch, images } = await setUp(image, 12_000, (url) =>
    url.endsWith(image.layers[0] ?? '') ? { status: 503 } : undefined,
  );
  await expect(fetch()).rejects.toMatchObject({ kind: 'unreachable' });
  expect(images.blob(hexOf(image.config))).toBeDefined();
});
