/** B1 on a disk that forgets unsynced writes, with a power cut at any call. */
import { type BlobSource, digestOf, hexOf } from '@rackwright/oci';
import type { Clock } from '@rackwright/platform';
import { callersHashes } from '@rackwright/platform/node';
import { ForgetfulFiles, forgetfulLargeFiles, quietLog } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import { BlobCache } from './blob-cache.ts';

const folder = '/cache';
const pieceBytes = 1024 * 1024;
/** Several pieces: a part of it may be durable when the power goes. */
const blob = Buffer.alloc(3 * pieceBytes + 100, 'an image');
const wanted = { digest: digestOf(blob), sizeBytes: blob.length };
const never = new AbortController().signal;
/** More calls than one fetch makes. */
const callsMax = 40;

const source: BlobSource = {
  open: async (_, from) => ({
    start: from,
    chunks: (async function* () {
      for (let at = from; at < blob.length; at += pieceBytes) {
        yield blob.subarray(at, at + pieceBytes);
      }
    })(),
    close: () => {},
  }),
};
/** A source without any blob. */
const away: BlobSource = { open: () => Promise.reject(new Error('nothing is fetched again')) };

function open(files: ForgetfulFiles): Promise<BlobCache> {
  const clock: Clock = { nowMs: () => 1_000, suspendAwareMs: () => 0, after: () => () => {} };
  const large = forgetfulLargeFiles(files);
  return BlobCache.open({
    hashes: callersHashes,
    files: large,
    clock,
    log: quietLog,
    folder,
    bytesMax: 10 * blob.length,
  });
}

async function pin(files: ForgetfulFiles, from: BlobSource): Promise<boolean> {
  const cache = await open(files);
  return cache
    .pin(wanted, from, never, () => {})
    .then(
      () => true,
      () => false,
    );
}

test('a fetched blob is there whole after a power cut, and not fetched again', async () => {
  const files = new ForgetfulFiles();
  expect(await pin(files, source)).toBe(true);
  files.cutPower();
  expect(await pin(files, away)).toBe(true);
});

test('after any power cut a file with a final name has all bytes of its blob', async () => {
  const pinned: boolean[] = [];
  for (let calls = 0; calls < callsMax; calls += 1) {
    const files = new ForgetfulFiles();
    files.dieAfter(calls);
    pinned.push(await pin(files, source));
    files.cutPower();
    const names = files.list(folder).filter((name) => !name.endsWith('.part'));
    expect(names, `${calls} calls`).toEqual(
      pinned.at(-1) === true ? [hexOf(wanted.digest)] : names,
    );
    for (const name of names) {
      const bytes = await files.readFile(`${folder}/${name}`);
      expect(bytes.equals(blob), `${calls} calls`).toBe(true);
    }
    expect(await pin(files, source), `${calls} calls`).toBe(true);
  }
  expect(new Set(pinned)).toEqual(new Set([false, true]));
});
