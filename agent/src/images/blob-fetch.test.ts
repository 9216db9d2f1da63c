import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BlobSource, digestOf, OciError } from '@rackwright/oci';
import { type LargeFiles, WebBroken } from '@rackwright/platform';
import { callersHashes, nodeLargeFiles } from '@rackwright/platform/node';
import { quietLog } from '@rackwright/platform/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BlobCache } from './blob-cache.ts';
import { cachedManifest } from './cached-manifest.ts';

const bytes = Buffer.from(Array.from({ length: 3_000_000 }, (_, at) => (at * 31) & 0xff));
const digest = digestOf(bytes);
const wanted = { digest, sizeBytes: bytes.length };
const never = new AbortController().signal;

let folder = '';
let waits: number[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rackwright-blob-fetch-'));
  waits = [];
});

afterEach(() => rm(folder, { recursive: true }));

/** Time passes at once, and how much is written down. */
const clock = {
  nowMs: () => 1_000_000,
  suspendAwareMs: () => 0,
  after: (delayMs: number, callback: () => void) => {
    waits.push(delayMs);
    queueMicrotask(callback);
    return () => {};
  },
};

function open(bytesMax = 100_000_000, files: LargeFiles = nodeLargeFiles()): Promise<BlobCache> {
  return BlobCache.open({ hashes: callersHashes, files, clock, log: quietLog, folder, bytesMax });
}

/** Serves `content` up to where it has been let to. */
class BlockedSource implements BlobSource {
  readonly asked: number[] = [];
  readonly #content: Buffer;
  #open = 0;
  #opened = Promise.withResolvers<void>();

  constructor(content: Buffer = bytes) {
    this.#content = content;
  }

  letTo(open: number): void {
    this.#open = open;
    this.#opened.resolve();
    this.#opened = Promise.withResolvers<void>();
  }

  async open(_: unknown, from: number, signal: AbortSignal | undefined) {
    if (signal?.aborted === true) throw new OciError('cancelled', 'given up');
    this.asked.push(from);
    return { start: from, chunks: this.#chunks(from, signal), close: () => {} };
  }

  async *#chunks(from: number, signal: AbortSignal | undefined) {
    const aborted = Promise.withResolvers<never>();
    aborted.promise.catch(() => {});
    signal?.addEventListener('abort', () => aborted.reject(new WebBroken('given up')));
    for (let at = from; at < this.#content.length; ) {
      if (at >= this.#open) {
        await Promise.race([this.#opened.promise, aborted.promise]);
        continue;
      }
      const end = Math.min(at + 65_536, this.#open, this.#content.length);
      yield this.#content.subarray(at, end);
      at = end;
    }
  }
}

async function gathered(from: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of from) parts.push(part);
  return Buffer.concat(parts);
}

test('garm-T10: a blob that a mirror altered is fetched again from the next place', async () => {
  const [bad, good] = [new BlockedSource(Buffer.alloc(bytes.length, 'x')), new BlockedSource()];
  bad.letTo(bytes.length);
  let current: BlobSource = bad;
  const source: BlobSource = {
    open: (...ask) => current.open(...ask),
    elsewhere: () => {
      const isFirst = current === bad;
      current = good;
      return isFirst;
    },
  };
  const cache = await open();
  good.letTo(bytes.length);
  const told: number[] = [];
  await cache.pin(wanted, source, never, (each) => told.push(each));
  expect((await gathered(cache.read(digest))).equals(bytes)).toBe(true);
  expect(told.at(-1)).toBe(bytes.length);
  expect(told.lastIndexOf(0), 'begun anew').toBeGreaterThan(0);
  expect([bad.asked, good.asked]).toEqual([[0], [0]]);
});

describe('a disk that is slow to make durable', () => {
  const large = Buffer.alloc(100 * 1024 * 1024);
  const wantedLarge = { digest: digestOf(large), sizeBytes: large.length };

  /** Takes everything at once; `sync`: the answers to be made durable, one after the other. */
  function filesWith(...syncs: Promise<void>[]): LargeFiles {
    const files = nodeLargeFiles();
    const openPart: LargeFiles['openPart'] = async (path) => {
      const part = await files.openPart(path);
      const sync = (): Promise<void> => syncs.shift() ?? Promise.resolve();
      const acts = { empty: () => part.empty(), close: () => part.close() };
      return { sizeBytes: 0, write: async () => {}, sync, ...acts };
    };
    return { ...files, openPart };
  }

  test('a reader does not wait for the disk; the end of the fetch does', async () => {
    const slow = Promise.withResolvers<void>();
    const source = new BlockedSource(large);
    source.letTo(large.length);
    const cache = await open(1e9, filesWith(slow.promise));
    const told: number[] = [];
    const pinning = cache.pin(wantedLarge, source, never, (each) => told.push(each));
    await expect.poll(() => told.at(-1), { timeout: 20_000 }).toBe(large.length);
    expect(cache.find(wantedLarge.digest)).toBeUndefined();
    slow.resolve();
    await pinning;
    expect(cache.find(wantedLarge.digest)).toBeDefined();
  });

  test('a disk that fails at the last sync ends the fetch before all bytes have come', async () => {
    const full = Object.assign(new Error('EIO'), { code: 'EIO', errno: -5 });
    const refusing = Promise.reject(full);
    refusing.catch(() => {});
    const source = new BlockedSource(large);
    source.letTo(90 * 1024 * 1024);
    const cache = await open(1e9, filesWith(refusing));
    const pinning = cache.pin(wantedLarge, source, never, () => {});
    await expect(pinning).rejects.toMatchObject({ kind: 'noSpace' });
    expect(cache.find(wantedLarge.digest)).toBeUndefined();
  });
});

describe('a registry that has trouble', () => {
  /** Fails so, one after the other, and then serves. */
  function failing(...errors: readonly OciError[]) {
    const good = new BlockedSource();
    good.letTo(bytes.length);
    const left = [...errors];
    const source: BlobSource = {
      open: async (...ask) => {
        const error = left.shift();
        if (error !== undefined) throw error;
        return good.open(...ask);
      },
    };
    return { source, left };
  }

  const away = new OciError('unreachable', 'away');

  test('is asked again after a pause, or after the time that it names', async () => {
    const { source } = failing(
      away,
      new OciError('tooMany', 'slowly', { retryAfterMs: 7_000 }),
      away,
    );
    const cache = await open();
    await cache.pin(wanted, source, never, () => {}, [1_000, 2_000, 4_000]);
    expect(waits).toEqual([1_000, 7_000, 4_000]);
  });

  test.each([
    ['more often than was said', [away, away], 1],
    ['for what will not pass', [new OciError('notFound', 'no')], 0],
    [
      'when it wants to be left alone for hours',
      [new OciError('tooMany', 'x', { retryAfterMs: 9e6 })],
      0,
    ],
  ])('is not asked %s', async (_, errors, times) => {
    const { source, left } = failing(...errors);
    const cache = await open();
    const pinning = cache.pin(wanted, source, never, () => {}, [1_000]);
    await expect(pinning).rejects.toBe(errors.at(-1));
    expect(waits).toHaveLength(times);
    expect(left).toHaveLength(0);
    expect(cache.find(digest)).toBeUndefined();
  });
});

describe('a disk that is full', () => {
  const other = Buffer.alloc(500_000, 'o');
  const otherWanted = { digest: digestOf(other), sizeBytes: other.length };

  async function withOther(cache: BlobCache): Promise<void> {
    const source = new BlockedSource(other);
    source.letTo(other.length);
    await cache.pin(otherWanted, source, never, () => {});
  }

  /** The real files on a disk that takes so many bytes. */
  function small(diskBytes: number): LargeFiles {
    const files = nodeLargeFiles();
    const used = async (): Promise<number> =>
      (await files.list(folder)).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    return {
      ...files,
      freeBytes: async () => Math.max(0, diskBytes - (await used())),
    };
  }

  test('is said to be full, before anything is asked for', async () => {
    const cache = await open(100_000_000, small(3_200_000));
    await withOther(cache);
    const source = new BlockedSource();
    await expect(cache.pin(wanted, source, never, () => {})).rejects.toMatchObject({
      kind: 'noSpace',
      message: `the image needs 3000000 bytes in ${folder}, whose disk has 2700000 left`,
    });
    expect(source.asked).toEqual([]);
    cache.unpin(otherWanted.digest);
    // Nothing is dropped for a blob that would not fit even then.
    const larger = { ...wanted, sizeBytes: 4_000_000 };
    await expect(cache.pin(larger, source, never, () => {})).rejects.toThrow('needs 4000000');
    expect(cache.find(otherWanted.digest)).toBeDefined();
    source.letTo(bytes.length);
    await cache.pin(wanted, source, never, () => {});
    expect(cache.find(otherWanted.digest)).toBeUndefined();
  });

  let refusals = 0;
  function filling(): LargeFiles {
    const files = nodeLargeFiles();
    return {
      ...files,
      openPart: async (path) => {
        const part = await files.openPart(path);
        const write = async (piece: Uint8Array): Promise<void> => {
          if (refusals === 0) return part.write(piece);
          refusals -= 1;
          throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
        };
        return { ...part, write };
      },
    };
  }

  test('a disk that fills up under a manifest takes the manifest at the next write', async () => {
    const cache = await open(100_000_000, filling());
    await withOther(cache);
    cache.unpin(otherWanted.digest);
    refusals = 1;
    const manifest = bytes.slice(0, 100_000);
    const registry = {
      manifest: async () => new Uint8Array(manifest),
      blobs: () => new BlockedSource(),
    };
    const ask = { cache, registry, repository: 'x', signal: never, pinned: [] };
    const found = await cachedManifest(ask, digestOf(manifest));
    expect(Buffer.from(found).equals(manifest)).toBe(true);
  });

  test('a disk that fills up midway costs what is not pinned, and then the fetch', async () => {
    const cache = await open(100_000_000, filling());
    await withOther(cache);
    const source = new BlockedSource();
    source.letTo(bytes.length);
    refusals = 1;
    await expect(cache.pin(wanted, source, never, () => {})).rejects.toMatchObject({
      kind: 'noSpace',
      message: expect.stringContaining('is full of what is in use'),
    });
    cache.unpin(otherWanted.digest);
    refusals = 1;
    await cache.pin(wanted, source, never, () => {});
    expect(cache.find(otherWanted.digest)).toBeUndefined();
    expect((await gathered(cache.read(digest))).equals(bytes)).toBe(true);
  });
});
