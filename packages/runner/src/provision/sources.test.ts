/** The facts that a server of an image gives, and that nothing is left open after it. */
import { gzipSync } from 'node:zlib';
import { type ByteSource, SourceBroken } from '@rackwright/disk-image';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { mib, noise, sha256, TestDisk } from './provision.fixture.ts';

const diskBytes = 4 * mib;
const clusterBytes = 64 * 1024;
let disk: TestDisk;

beforeEach(() => {
  disk = new TestDisk(diskBytes);
});

afterEach(() => disk.remove());

interface Watched {
  readonly source: ByteSource;
  readonly opened: number[];
  closed: number;
}

/**
 * Serves bytes from the requested offset, and counts open reads. `sizeBytes`: the size that it
 * reports.
 */
function watchedSource(bytes: Uint8Array, sizeBytes?: number): Watched {
  const watched: Watched = {
    opened: [],
    closed: 0,
    source: {
      open: async (from) => {
        watched.opened.push(from);
        let isOpen = true;
        return {
          start: from,
          ...(sizeBytes === undefined ? {} : { sizeBytes }),
          chunks: (async function* () {
            for (let at = from; at < bytes.length; at += clusterBytes) {
              yield bytes.subarray(at, at + clusterBytes);
            }
          })(),
          close: () => {
            if (isOpen) watched.closed += 1;
            isOpen = false;
          },
        };
      },
    },
  };
  return watched;
}

/** A qcow2 file of `sizeBytes` with one cluster of content, at the guest's cluster `at`. */
function qcow2(sizeBytes: number, at: number, content: Uint8Array): Buffer {
  const file = Buffer.alloc(4 * clusterBytes);
  const copied = 2n ** 63n;
  file.write('QFI\xfb', 'latin1');
  file.writeUInt32BE(2, 4);
  file.writeUInt32BE(16, 20);
  file.writeBigUInt64BE(BigInt(sizeBytes), 24);
  file.writeUInt32BE(1, 36);
  file.writeBigUInt64BE(BigInt(clusterBytes), 40);
  file.writeBigUInt64BE(BigInt(2 * clusterBytes) | copied, clusterBytes);
  file.writeBigUInt64BE(BigInt(3 * clusterBytes) | copied, 2 * clusterBytes + 8 * at);
  file.set(content, 3 * clusterBytes);
  return file;
}

const isUntouched = (): boolean => disk.read().equals(Buffer.alloc(diskBytes, 'PATTERN!'));

test('an image is too large by what its server says, before anything is written', async () => {
  const image = noise(mib);
  const { source } = watchedSource(image, 5 * mib);
  const end = await disk.provision(image, { source });
  expect(end).toMatchObject({ fault: 'tooLarge', begun: false });
  expect(isUntouched()).toBe(true);
});

test('a qcow2 file yields its contents, and reports progress of its first reading', async () => {
  const content = noise(clusterBytes, 'cluster');
  const file = qcow2(3 * mib, 20, content);
  const whole = Buffer.alloc(3 * mib);
  whole.set(content, 20 * clusterBytes);
  for (const sizeBytes of [file.length, undefined]) {
    disk.fill();
    const told: [number, string][] = [];
    const watched = watchedSource(file, sizeBytes);
    const end = await disk.provision(file, {
      source: watched.source,
      progress: (fraction, what) => told.push([fraction, what]),
    });
    expect(end).toMatchObject({
      kind: 'complete',
      installed: { sizeBytes: 3 * mib, contentSha256: sha256(whole) },
    });
    expect(
      disk
        .read()
        .subarray(0, 3 * mib)
        .equals(whole),
    ).toBe(true);
    const checking = told.filter(([, what]) => what === 'checking the image');
    expect(checking.length).toBeGreaterThan(0);
    expect(checking.at(-1)?.[0]).toBe(sizeBytes === undefined ? 0 : 0.1);
    expect(watched.closed).toBe(watched.opened.length);
  }
});

test('a qcow2 file that is not the declared one is found before anything is written', async () => {
  const file = qcow2(3 * mib, 1, noise(clusterBytes));
  const other = sha256(Buffer.from('another'));
  const watched = watchedSource(file);
  const end = await disk.provision(file, { source: watched.source, image: { sha256: other } });
  expect(end).toMatchObject({ fault: 'digestMismatch', begun: false });
  expect(isUntouched()).toBe(true);
  expect(watched.closed).toBe(watched.opened.length);
});

test('a compressed file that is declared as qcow2 is refused at once', async () => {
  const file = gzipSync(noise(mib));
  const watched = watchedSource(file);
  const end = await disk.provision(file, {
    source: watched.source,
    image: { format: 'qcow2', compression: 'gzip' },
  });
  expect(end).toMatchObject({
    fault: 'unsupported',
    message: expect.stringContaining('serve it as qcow2'),
    begun: false,
  });
  expect(watched).toMatchObject({ opened: [0], closed: 1 });
});

test('a qcow2 file that does not fit is given up, and its source is closed', async () => {
  const file = qcow2(5 * mib, 1, noise(clusterBytes));
  const watched = watchedSource(file);
  const end = await disk.provision(file, { source: watched.source });
  expect(end).toMatchObject({ fault: 'tooLarge', begun: false });
  expect(watched.closed).toBe(watched.opened.length);
});

test('the end of the work closes its source, whatever the cause', async () => {
  const image = noise(3 * mib);
  const stop = new AbortController();
  const over = { requestBegin: async () => ({ kind: 'over' as const, reason: 'frozen' }) };
  for (const change of [
    { parts: over },
    { plan: { firmware: 'uefi' as const } },
    { image: { sizeBytes: 5 * mib } },
    { image: { contentSizeBytes: 3 * mib, sizeBytes: 4 * mib } },
    { plan: { seed: { kind: 'noCloud' as const, metaData: '', userData: 'x'.repeat(5 * mib) } } },
    { signal: stop.signal, progress: () => stop.abort() },
    {},
  ]) {
    const watched = watchedSource(image);
    await disk.provision(image, { source: watched.source, ...change });
    expect(watched).toMatchObject({ opened: [0], closed: 1 });
  }
});

test('the format is detected even if a server sends few bytes at a time', async () => {
  const image = noise(2 * mib);
  const file = gzipSync(image);
  const source: ByteSource = {
    open: async () => ({
      start: 0,
      chunks: (async function* () {
        yield file.subarray(0, 1);
        yield file.subarray(1, 2);
        yield file.subarray(2);
      })(),
      close: () => {},
    }),
  };
  expect(await disk.provision(file, { source })).toMatchObject({
    kind: 'complete',
    installed: { contentSha256: sha256(image) },
  });
});

test('a server that breaks too often fails the work, as often as the caller allows', async () => {
  const image = noise(mib);
  const asked: number[] = [];
  const source: ByteSource = {
    open: async (from) => {
      asked.push(from);
      throw new SourceBroken('away');
    },
  };
  const limits = { emptyBreaksMax: 3, breaksMax: 9, pause: async () => {} };
  const end = await disk.provision(image, { source, parts: { limits } });
  expect(end).toMatchObject({ fault: 'unreachable', begun: false });
  expect(asked).toHaveLength(3);
});

test.each([
  ['when its format is known', 1],
  ['when its digest is known', 2],
])('a qcow2 file whose server goes away %s is given up as allowed', async (_, readings) => {
  const file = qcow2(3 * mib, 20, noise(clusterBytes));
  const { source: whole } = watchedSource(file);
  const asked: number[] = [];
  const source: ByteSource = {
    open: async (from, signal) => {
      asked.push(from);
      if (asked.length > readings) throw new SourceBroken('away');
      return whole.open(from, signal);
    },
  };
  const limits = { emptyBreaksMax: 3, breaksMax: 9, pause: async () => {} };
  const end = await disk.provision(file, { source, parts: { limits } });
  expect(end).toMatchObject({ fault: 'unreachable', begun: false });
  expect(asked).toHaveLength(readings + limits.emptyBreaksMax);
  expect(isUntouched()).toBe(true);
});
