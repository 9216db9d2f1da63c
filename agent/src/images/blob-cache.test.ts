import {
  appendFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BlobSource, type Digest, digestOf, hexOf, OciError } from '@rackwright/oci';
import { WebBroken } from '@rackwright/platform';
import { callersHashes, nodeLargeFiles } from '@rackwright/platform/node';
import { quietLog } from '@rackwright/platform/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BlobCache } from './blob-cache.ts';

let folder = '';
let nowMs = 0;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rackwright-blobs-'));
  nowMs = 1_000_000;
});

afterEach(() => rm(folder, { recursive: true }));

const bytesOf = (seed: string, length = 10_000): Buffer => Buffer.alloc(length, seed);
const never = new AbortController().signal;

function open(bytesMax = 100_000, files = nodeLargeFiles()): Promise<BlobCache> {
  const clock = { nowMs: () => nowMs, suspendAwareMs: () => nowMs, after: () => () => {} };
  return BlobCache.open({ hashes: callersHashes, files, clock, log: quietLog, folder, bytesMax });
}

interface Served {
  readonly source: BlobSource;
  readonly asked: number[];
}

/** Serves these bytes in pieces of 1,000; `barrier` is awaited before each. */
function served(
  bytes: Uint8Array,
  barrier: (at: number) => Promise<void> = async () => {},
): Served {
  const asked: number[] = [];
  const source: BlobSource = {
    open: async (_, from, signal) => {
      asked.push(from);
      async function* chunks() {
        for (let at = from; at < bytes.length; at += 1_000) {
          await barrier(at);
          if (signal?.aborted === true) throw new WebBroken('given up');
          yield bytes.subarray(at, at + 1_000);
        }
      }
      return { start: from, chunks: chunks(), close: () => {} };
    },
  };
  return { source, asked };
}

async function pin(
  cache: BlobCache,
  bytes: Buffer,
  { source }: Served = served(bytes),
  signal = never,
): Promise<Digest> {
  const digest = digestOf(bytes);
  await cache.pin({ digest, sizeBytes: bytes.length }, source, signal, () => {});
  return digest;
}

test('the cache fetches a blob once, and finds it again after a restart', async () => {
  const bytes = bytesOf('a');
  const first = served(bytes);
  const digest = await pin(await open(), bytes, first);
  const cache = await open();
  await pin(cache, bytes, first);
  expect(first.asked).toEqual([0]);
  const found = cache.find(digest);
  expect(found).toEqual({ path: join(folder, hexOf(digest)), sizeBytes: bytes.length });
  expect((await readFile(found?.path ?? '')).equals(bytes)).toBe(true);
});

test('a blob gets its final name only after all its bytes are durable (B1)', async () => {
  const files = nodeLargeFiles();
  const durable = new Map<string, boolean>();
  const renamed: (boolean | undefined)[] = [];
  const watched: typeof files = {
    ...files,
    openPart: async (path) => {
      const part = await files.openPart(path);
      const changes = (change: () => Promise<void>) => async () => {
        durable.set(path, false);
        await change();
      };
      return {
        ...part,
        write: (bytes) => changes(() => part.write(bytes))(),
        empty: changes(part.empty),
        sync: async () => {
          await part.sync();
          durable.set(path, true);
        },
      };
    },
    rename: async (from, to) => {
      renamed.push(durable.get(from));
      await files.rename(from, to);
    },
  };
  await pin(await open(100_000, watched), bytesOf('a'));
  expect(renamed).toEqual([true]);
});

describe('what a dead agent left', () => {
  test('is continued, and has no name before it is complete', async () => {
    const bytes = bytesOf('a');
    await writeFile(join(folder, `${hexOf(digestOf(bytes))}.part`), bytes.subarray(0, 4_321));
    const cache = await open();
    expect(cache.find(digestOf(bytes))).toBeUndefined();
    const rest = served(bytes);
    const digest = await pin(cache, bytes, rest);
    expect(rest.asked).toEqual([4_321]);
    expect((await readFile(cache.find(digest)?.path ?? '')).equals(bytes)).toBe(true);
    expect(await readdir(folder)).toEqual([hexOf(digest)]);
  });

  test.each([
    ['torn', (path: string) => writeFile(path, Buffer.alloc(5_000, 'x'))],
    ['torn at its end', (path: string) => appendFile(path, Buffer.alloc(100))],
    ['too long', (path: string) => writeFile(path, Buffer.alloc(20_000, 'a'))],
    ['full of zeros', (path: string) => truncate(path, 10_000)],
  ])('is begun anew when it is %s', async (_, damage) => {
    const bytes = bytesOf('a');
    const path = join(folder, `${hexOf(digestOf(bytes))}.part`);
    await writeFile(path, bytes.subarray(0, 4_000));
    await damage(path);
    const cache = await open();
    const digest = await pin(cache, bytes);
    expect((await readFile(cache.find(digest)?.path ?? '')).equals(bytes)).toBe(true);
  });

  test('is fetched again when its bytes have changed on the disk', async () => {
    const bytes = bytesOf('a');
    const digest = await pin(await open(), bytes);
    await writeFile(join(folder, hexOf(digest)), Buffer.from(bytes).fill('b', 5_000, 5_001));
    const again = served(bytes);
    const cache = await open();
    await pin(cache, bytes, again);
    expect(again.asked).toEqual([0]);
    expect((await readFile(cache.find(digest)?.path ?? '')).equals(bytes)).toBe(true);
  });
});

test('a blob with another digest is refused, and none of its bytes stays in use', async () => {
  const bytes = bytesOf('a');
  const cache = await open();
  const wrong = served(Buffer.from(bytes).fill('b', 9_999));
  await expect(pin(cache, bytes, wrong)).rejects.toMatchObject({ kind: 'digestMismatch' });
  expect(cache.find(digestOf(bytes))).toBeUndefined();
  // The next one begins at its beginning.
  const right = served(bytes);
  await pin(cache, bytes, right);
  expect(right.asked).toEqual([0]);
});

describe('the limit', () => {
  test('is kept by dropping the blob that was unused for the longest time', async () => {
    const cache = await open(30_000);
    const [a, b, c, d] = [bytesOf('a'), bytesOf('b'), bytesOf('c'), bytesOf('d')];
    for (const each of [a, b, c]) {
      nowMs += 1_000;
      cache.unpin(await pin(cache, each));
    }
    nowMs += 1_000;
    cache.unpin(await pin(cache, a));
    await pin(cache, d);
    const there = [a, b, c, d].map((each) => cache.find(digestOf(each)) !== undefined);
    expect(there).toEqual([true, false, true, true]);
    expect(await readdir(folder)).toHaveLength(3);
  });

  test('a blob that can never fit drops no other blob', async () => {
    const cache = await open(30_000);
    const [pinned, free, large] = [bytesOf('a'), bytesOf('b'), bytesOf('c', 20_001)];
    await pin(cache, pinned);
    cache.unpin(await pin(cache, free));
    await expect(pin(cache, large)).rejects.toThrow('full of images that are in use');
    expect(cache.find(digestOf(free))).toBeDefined();
    cache.unpin(digestOf(pinned));
    await pin(cache, large);
    expect(cache.find(digestOf(free))).toBeUndefined();
  });

  test('is kept by dropping the blob of lowest preference, whenever it was used', async () => {
    const cache = await open(30_000);
    const [first, second, third] = [bytesOf('a'), bytesOf('b'), bytesOf('c')];
    for (const bytes of [first, second, third]) {
      nowMs += 1_000;
      cache.unpin(await pin(cache, bytes));
    }
    cache.prefer([digestOf(first), digestOf(second)]);
    expect(cache.roomBytes).toBe(10_000);
    const digest = await pin(cache, bytesOf('d', 20_000));
    expect(cache.roomBytes).toBe(0);
    cache.unpin(digest);
    expect(cache.roomBytes).toBe(20_000);
    const here = [first, second, third].map((bytes) => cache.find(digestOf(bytes)) !== undefined);
    expect(here).toEqual([false, true, false]);
  });

  test('is kept when all blobs are in use: the next fetch waits', async () => {
    const cache = await open(20_000);
    const [a, b, c] = ['a', 'b', 'c'].map((seed) => bytesOf(seed)) as [Buffer, Buffer, Buffer];
    await pin(cache, a);
    const digest = await pin(cache, b);
    await expect(pin(cache, c)).rejects.toMatchObject({
      kind: 'unreachable',
      message: expect.stringContaining('full of images that are in use'),
    });
    cache.unpin(digest);
    await pin(cache, c);
    expect(cache.find(digest)).toBeUndefined();
  });

  test('counts parts, and holds at the next start', async () => {
    await writeFile(join(folder, `${'0'.repeat(64)}.part`), bytesOf('x', 15_000));
    const cache = await open(20_000);
    await pin(cache, bytesOf('a'));
    expect(await readdir(folder)).toEqual([hexOf(digestOf(bytesOf('a')))]);
    await open(5_000);
    expect(await readdir(folder)).toEqual([]);
  });
});

describe('several who want one blob', () => {
  test('share one fetch, and are told its progress', async () => {
    const bytes = bytesOf('a');
    const one = served(bytes);
    const cache = await open();
    const heard: number[] = [];
    const wanted = { digest: digestOf(bytes), sizeBytes: bytes.length };
    await Promise.all(
      [1, 2, 3].map(() => cache.pin(wanted, one.source, never, (count) => heard.push(count))),
    );
    expect(one.asked).toEqual([0]);
    expect(heard.filter((count) => count === bytes.length)).toHaveLength(3);
  });

  test('go on when one of them gives up; the last one stops it', async () => {
    const bytes = bytesOf('a');
    const barrier = Promise.withResolvers<void>();
    const slow = served(bytes, (at) => (at >= 3_000 ? barrier.promise : Promise.resolve()));
    const cache = await open();
    const [first, second] = [new AbortController(), new AbortController()];
    const pins = [first, second].map(({ signal }) => pin(cache, bytes, slow, signal));
    const outcomes = Promise.allSettled(pins);
    first.abort();
    await expect(pins[0]).rejects.toMatchObject({ kind: 'cancelled' });
    barrier.resolve();
    await expect(pins[1]).resolves.toBe(digestOf(bytes));
    await outcomes;
    const other = bytesOf('b');
    const stuck = Promise.withResolvers<void>();
    const never = served(other, (at) => (at >= 3_000 ? stuck.promise : Promise.resolve()));
    const only = new AbortController();
    const lost = pin(cache, other, never, only.signal);
    only.abort();
    await expect(lost).rejects.toMatchObject({ kind: 'cancelled' });
    stuck.resolve();
    // A caller that arrives while it ends gets the blob from a fetch of its own.
    await pin(cache, other);
    expect(cache.find(digestOf(other))).toBeDefined();
  });

  const kinds = ['unauthorized', 'forbidden'] as const;
  test.each(kinds)('are not refused for the registry of the first one (%s)', async (kind) => {
    const bytes = bytesOf('a');
    const cache = await open();
    const asked: string[] = [];
    const refused = Promise.withResolvers<void>();
    const refusing: BlobSource = {
      open: async () => {
        asked.push('first');
        await refused.promise;
        throw new OciError(kind, 'not for you');
      },
    };
    const [own, other] = [served(bytes), served(bytes)];
    const outcomes = Promise.allSettled(
      [{ source: refusing, asked: [] }, own, other].map((each) => pin(cache, bytes, each)),
    );
    await expect.poll(() => asked).toEqual(['first']);
    refused.resolve();
    const ends = (await outcomes).map(({ status }) => status);
    expect(ends).toEqual(['rejected', 'fulfilled', 'fulfilled']);
    expect([...own.asked, ...other.asked]).toEqual([0]);
  });
});

describe('what was found right in this life', () => {
  const damage = (path: string) => writeFile(path, Buffer.alloc(10_000));

  test.each([
    ['lost', (path: string) => rm(path)],
    ['cut', (path: string) => truncate(path, 9_999)],
    ['written over', damage],
  ])('is fetched again when it was %s since', async (_, harm) => {
    const bytes = bytesOf('a');
    const cache = await open(20_000);
    const digest = await pin(cache, bytes);
    const path = join(folder, hexOf(digest));
    await harm(path);
    const again = served(bytes);
    await Promise.all([pin(cache, bytes, again), pin(cache, bytes, again)]);
    expect(again.asked).toEqual([0]);
    expect((await readFile(path)).equals(bytes)).toBe(true);
    // A caller that pinned the lost blob holds its replacement.
    cache.unpin(digest);
    cache.unpin(digest);
    await pin(cache, bytesOf('b'));
    await expect(pin(cache, bytesOf('c'))).rejects.toThrow('full of images that are in use');
    cache.unpin(digest);
    await pin(cache, bytesOf('c'));
  });

  test('is hashed again only after a reader has reported it as wrong', async () => {
    const bytes = bytesOf('a');
    const cache = await open();
    const digest = await pin(cache, bytes);
    const path = join(folder, hexOf(digest));
    const { mtime } = await stat(path);
    await damage(path);
    await utimes(path, mtime, mtime);
    expect(await cache.pinIfHere(digest)).toBe(true);
    cache.doubt(digest);
    const again = served(bytes);
    await pin(cache, bytes, again);
    expect(again.asked).toEqual([0]);
    expect((await readFile(path)).equals(bytes)).toBe(true);
    cache.doubt(digest);
    await pin(cache, bytes, again);
    expect(again.asked).toEqual([0]);
  });
});

describe('a folder that cannot be used', () => {
  const broken = () => Object.assign(new Error('EIO: i/o error'), { errno: -5, code: 'EIO' });
  const refusal = {
    kind: 'noSpace',
    message: expect.stringMatching(/^the image cache in .* cannot be used: EIO/),
  };

  test('is empty until it can be used, and then has all its blobs again', async () => {
    const bytes = bytesOf('a');
    await pin(await open(), bytes);
    const files = nodeLargeFiles();
    let isBroken = true;
    const list: typeof files.list = async (path) => {
      if (isBroken) throw broken();
      return files.list(path);
    };
    const cache = await open(20_000, { ...files, list });
    const again = served(bytes);
    await expect(pin(cache, bytes, again)).rejects.toMatchObject(refusal);
    expect(cache.find(digestOf(bytes))).toBeUndefined();
    expect(await cache.pinIfHere(digestOf(bytes))).toBe(false);
    isBroken = false;
    // A caller that needs only what is here fetches nothing first.
    expect(await cache.pinIfHere(digestOf(bytes))).toBe(true);
    cache.unpin(digestOf(bytes));
    await pin(cache, bytes, again);
    expect(again.asked).toEqual([]);
  });

  test('ends the fetches into it, and is used again as soon as it can be', async () => {
    const files = nodeLargeFiles();
    let isBroken = true;
    const harmed =
      <Given extends unknown[], Done>(work: (...given: Given) => Promise<Done>) =>
      async (...given: Given): Promise<Done> => {
        if (isBroken) throw broken();
        return work(...given);
      };
    const [openPart, remove] = [harmed(files.openPart), harmed(files.remove)];
    const [old, bytes] = [bytesOf('o'), bytesOf('a')];
    await pin(await open(), old);
    const cache = await open(10_000, { ...files, openPart, remove });
    await expect(pin(cache, bytes)).rejects.toMatchObject(refusal);
    isBroken = false;
    await pin(cache, bytes);
    expect(cache.find(digestOf(bytes))).toBeDefined();
  });

  test('is logged with its error when it cannot be made after a failed fetch', async () => {
    const below = join(folder, 'images');
    const refused = new Error('read-only');
    const told: unknown[] = [];
    const log = { ...quietLog, warn: (...line: unknown[]) => void told.push(line.at(-1)) };
    const clock = { nowMs: () => nowMs, suspendAwareMs: () => nowMs, after: () => () => {} };
    let isReadOnly = false;
    const prepare = async (): Promise<void> => {
      if (isReadOnly) throw refused;
      await mkdir(below, { recursive: true });
    };
    const parts = { files: nodeLargeFiles(), clock, log, bytesMax: 100_000, prepare };
    const cache = await BlobCache.open({ hashes: callersHashes, ...parts, folder: below });
    await rm(below, { recursive: true });
    isReadOnly = true;
    await expect(pin(cache, bytesOf('a'))).rejects.toMatchObject({ kind: 'noSpace' });
    expect(told).toEqual([refused]);
  });

  test('is made when it is missing, also later', async () => {
    const below = join(folder, 'images');
    const clock = { nowMs: () => nowMs, suspendAwareMs: () => nowMs, after: () => () => {} };
    const prepare = async (): Promise<void> => void (await mkdir(below, { recursive: true }));
    await writeFile(below, 'in its place');
    const parts = { files: nodeLargeFiles(), clock, log: quietLog, bytesMax: 100_000 };
    const cache = await BlobCache.open({ hashes: callersHashes, ...parts, folder: below, prepare });
    const bytes = bytesOf('a');
    await expect(pin(cache, bytes)).rejects.toMatchObject({ kind: 'noSpace' });
    await rm(below);
    await pin(cache, bytes);
    await rm(below, { recursive: true });
    await expect(pin(cache, bytes)).rejects.toMatchObject({ kind: 'noSpace' });
    await pin(cache, bytes);
    expect(await readdir(below)).toEqual([hexOf(digestOf(bytes))]);
  });
});

test('a pinned blob stays even if its time of use cannot be written', async () => {
  const files = nodeLargeFiles();
  let isFailing = false;
  const touch: typeof files.touch = async (...note) => {
    if (isFailing) throw new Error('EIO: utimes');
    await files.touch(...note);
  };
  const cache = await open(20_000, { ...files, touch });
  const digest = await pin(cache, bytesOf('a'));
  isFailing = true;
  const again = served(bytesOf('a'));
  await pin(cache, bytesOf('a'), again);
  expect(again.asked).toEqual([]);
  cache.unpin(digest);
  await pin(cache, bytesOf('b'));
  await expect(pin(cache, bytesOf('c'))).rejects.toThrow('full of images that are in use');
  expect(cache.find(digest)).toBeDefined();
});

describe('a blob on its way', () => {
  test('is read while it comes, and to its end only once its digest is proved', async () => {
    const bytes = bytesOf('a', 3_000_000);
    const digest = digestOf(bytes);
    const letGo = Promise.withResolvers<void>();
    const barrier = (at: number) => (at < 2_500_000 ? Promise.resolve() : letGo.promise);
    const cache = await open(5_000_000);
    const pinning = pin(cache, bytes, served(bytes, barrier));
    await expect.poll(() => cache.coming(digest)).toBeDefined();
    const coming = cache.coming(digest);
    expect(coming?.sizeBytes).toBe(bytes.length);
    const some = (await coming?.readable(0, never)) ?? 0;
    expect(some).toBeLessThan(2_500_000);
    const read = await readFile(coming?.path ?? '');
    expect(read.subarray(0, some).equals(bytes.subarray(0, some))).toBe(true);
    expect(cache.find(digest)).toBeUndefined();
    letGo.resolve();
    expect(await coming?.readable(bytes.length - 1, never)).toBe(bytes.length);
    await pinning;
    expect(cache.coming(digest)).toBeUndefined();
    expect(cache.find(digest)).toBeDefined();
  });

  test('no reader gets the end of a blob whose bytes have another digest', async () => {
    const bytes = bytesOf('a', 3_000_000);
    const digest = digestOf(bytes);
    const cache = await open(5_000_000);
    const letGo = Promise.withResolvers<void>();
    const barrier = (at: number) => (at < 2_500_000 ? Promise.resolve() : letGo.promise);
    const other = Buffer.concat([bytes.subarray(0, 2_999_000), Buffer.alloc(1_000)]);
    const source = served(other, barrier);
    const wanted = { digest, sizeBytes: bytes.length };
    const pinning = cache
      .pin(wanted, source.source, never, () => {})
      .catch((error: unknown) => error);
    await expect.poll(() => cache.coming(digest)).toBeDefined();
    const coming = cache.coming(digest);
    const end = coming?.readable(bytes.length - 1, never);
    letGo.resolve();
    await expect(end).rejects.toThrow('does not come to its end');
    expect(await pinning).toMatchObject({ kind: 'digestMismatch' });
  });
});
