import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BlobSource, digestOf, hexOf, OciError } from '@rackwright/oci';
import { type LargeFiles, WebBroken } from '@rackwright/platform';
import { nodeLargeFiles } from '@rackwright/platform/node';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { quietLog } from '../runner-gateway/testing.ts';
import { BlobCache } from './blob-cache.ts';

const bytes = Buffer.from(Array.from({ length: 3_000_000 }, (_, at) => (at * 31) & 0xff));
const digest = digestOf(bytes);
const wanted = { digest, sizeBytes: bytes.length };
const never = new AbortController().signal;
const last = bytes.length - 1;

let folder = '';
let waits: number[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rackwright-growing-'));
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
  return BlobCache.open({ files, clock, log: quietLog, folder, bytesMax });
}

/** Serves `content` up to where it has been let to. */
class GatedSource implements BlobSource {
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
    if (signal?.aborted === true) throw new OciError('unreachable', 'given up');
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

/** Begins a fetch, and waits until what grows can be read. */
async function begin(cache: BlobCache, source: BlobSource, retryDelaysMs: number[] = []) {
  const begun = Promise.withResolvers<void>();
  const whole = cache.hold(wanted, source, never, () => begun.resolve(), retryDelaysMs);
  whole.catch(() => {});
  await begun.promise;
  const growing = cache.growing(digest);
  if (growing === undefined) throw new Error('nothing grows');
  return { growing, whole };
}

async function gathered(
  from: AsyncIterable<Uint8Array> | undefined,
  parts: Uint8Array[] = [],
): Promise<Buffer> {
  if (from === undefined) throw new Error('nothing grows');
  for await (const part of from) parts.push(part);
  return Buffer.concat(parts);
}

const sizeOf = (parts: readonly Uint8Array[]): number =>
  parts.reduce((sum, { length }) => sum + length, 0);

test('a blob is read while it comes, and its last byte only once it is proved', async () => {
  const source = new GatedSource();
  const { growing, whole } = await begin(await open(), source);
  expect(growing.sizeBytes).toBe(bytes.length);
  const parts: Uint8Array[] = [];
  const reading = gathered(growing.read(0, last, never), parts);
  const middle = gathered(growing.read(1_500_000, 1_599_999, never));
  source.letTo(2_500_000);
  // Two of the pieces that are written at once have come.
  await expect.poll(() => sizeOf(parts)).toBe(2 * 1024 * 1024);
  expect((await middle).equals(bytes.subarray(1_500_000, 1_600_000))).toBe(true);
  source.letTo(bytes.length);
  expect((await reading).equals(bytes)).toBe(true);
  await whole;
});

test('a blob that is another never ends for its readers, and they learn it', async () => {
  const other = Buffer.from(bytes).fill(0, 2_999_990, 2_999_991);
  const source = new GatedSource(other);
  const { growing, whole } = await begin(await open(), source);
  const parts: Uint8Array[] = [];
  const reading = gathered(growing.read(0, last, never), parts);
  reading.catch(() => {});
  source.letTo(other.length);
  await expect(whole).rejects.toMatchObject({ kind: 'digestMismatch' });
  await expect(reading).rejects.toBeInstanceOf(OciError);
  expect(sizeOf(parts)).toBeLessThan(bytes.length);
});

test('T10: what a mirror has altered is fetched anew from the next place', async () => {
  const [bad, good] = [new GatedSource(Buffer.alloc(bytes.length, 'x')), new GatedSource()];
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
  const { growing, whole } = await begin(cache, source);
  const reading = gathered(growing.read(0, last, never));
  await expect(reading).rejects.toMatchObject({ kind: 'digestMismatch' });
  const again = cache.growing(digest);
  good.letTo(bytes.length);
  await whole;
  expect((await gathered(again?.read(0, last, never))).equals(bytes)).toBe(true);
  expect([bad.asked, good.asked]).toEqual([[0], [0]]);
});

test('a reader that goes, or a fetch that is given up, ends the reading', async () => {
  const source = new GatedSource();
  const stop = new AbortController();
  const cache = await open();
  const begun = Promise.withResolvers<void>();
  const whole = cache.hold(wanted, source, stop.signal, () => begun.resolve());
  whole.catch(() => {});
  await begun.promise;
  const leaves = new AbortController();
  const one = gathered(cache.growing(digest)?.read(0, last, leaves.signal));
  const other = gathered(cache.growing(digest)?.read(0, last, never));
  other.catch(() => {});
  leaves.abort();
  expect(await one).toHaveLength(0);
  stop.abort();
  await expect(whole).rejects.toThrow('given up');
  await expect(other).rejects.toThrow('its fetch was given up');
  expect(cache.growing(digest)).toBeUndefined();
});

test('what a dead agent left is readable at once', async () => {
  await writeFile(join(folder, `${hexOf(digest)}.part`), bytes.subarray(0, 1_000_000));
  const source = new GatedSource();
  const { growing, whole } = await begin(await open(), source);
  const head = await gathered(growing.read(0, 999_999, never));
  expect(head.equals(bytes.subarray(0, 1_000_000))).toBe(true);
  source.letTo(bytes.length);
  await whole;
  expect(source.asked).toEqual([1_000_000]);
});

describe('a registry that has trouble', () => {
  /** Fails so, one after the other, and then serves. */
  function failing(...errors: readonly OciError[]) {
    const good = new GatedSource();
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

  test('is asked again after a while, for as long as it asks for itself', async () => {
    const { source } = failing(away, new OciError('tooMany', 'slowly', 7_000), away);
    const cache = await open();
    await cache.hold(wanted, source, never, () => {}, [1_000, 2_000, 4_000]);
    expect(waits).toEqual([1_000, 7_000, 4_000]);
  });

  test.each([
    ['more often than was said', [away, away], 1],
    ['for what will not pass', [new OciError('notFound', 'no')], 0],
    ['when it wants to be left alone for hours', [new OciError('tooMany', 'x', 9e6)], 0],
  ])('is not asked %s', async (_, errors, times) => {
    const { source, left } = failing(...errors);
    const cache = await open();
    const holding = cache.hold(wanted, source, never, () => {}, [1_000]);
    await expect(holding).rejects.toBe(errors.at(-1));
    expect(waits).toHaveLength(times);
    expect(left).toHaveLength(0);
    expect(cache.find(digest)).toBeUndefined();
  });
});

describe('a disk that is full', () => {
  const other = Buffer.alloc(500_000, 'o');
  const otherWanted = { digest: digestOf(other), sizeBytes: other.length };

  async function withOther(cache: BlobCache): Promise<void> {
    const source = new GatedSource(other);
    source.letTo(other.length);
    await cache.hold(otherWanted, source, never, () => {});
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
    const source = new GatedSource();
    await expect(cache.hold(wanted, source, never, () => {})).rejects.toMatchObject({
      kind: 'noSpace',
      message: `the image needs 3000000 bytes in ${folder}, whose disk has 2700000 left`,
    });
    expect(source.asked).toEqual([]);
    cache.release(otherWanted.digest);
    source.letTo(bytes.length);
    await cache.hold(wanted, source, never, () => {});
    expect(cache.find(otherWanted.digest)).toBeUndefined();
  });

  test('and fills up in the middle costs what is not held, and then the fetch', async () => {
    const files = nodeLargeFiles();
    let refusals = 0;
    const filling: LargeFiles = {
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
    const cache = await open(100_000_000, filling);
    await withOther(cache);
    const source = new GatedSource();
    source.letTo(bytes.length);
    refusals = 1;
    await expect(cache.hold(wanted, source, never, () => {})).rejects.toMatchObject({
      kind: 'noSpace',
      message: expect.stringContaining('is full of what is in use'),
    });
    cache.release(otherWanted.digest);
    refusals = 1;
    await cache.hold(wanted, source, never, () => {});
    expect(cache.find(otherWanted.digest)).toBeUndefined();
    expect((await gathered(cache.read(digest))).equals(bytes)).toBe(true);
  });
});
