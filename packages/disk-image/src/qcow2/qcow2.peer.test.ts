/** qcow2 files as QEMU's own tool makes them. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, type TestContext, test } from 'vitest';
import type { Ranges } from '../ranges.ts';
import { openQcow2 } from './reader.ts';

const mib = 1024 * 1024;
let folder = '';
let missing: string | undefined;
let raw: Buffer;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-qcow2-'));
  try {
    execFileSync('qemu-img', ['--version'], { stdio: 'pipe' });
  } catch {
    missing = 'no qemu-img';
  }
  // Noise, text, and holes; the end is within a cluster.
  raw = Buffer.alloc(12 * mib + 512);
  let state = createHash('sha256').update('seed').digest();
  for (let at = 0; at < 2 * mib; at += state.length) {
    state = createHash('sha256').update(state).digest();
    state.copy(raw, at);
  }
  raw.fill('all work and no play ', 5 * mib + 100, 7 * mib);
  raw.fill('end', 12 * mib);
  writeFileSync(join(folder, 'raw'), raw);
});

afterAll(() => rmSync(folder, { recursive: true }));

function qemuImg(...args: string[]): void {
  execFileSync('qemu-img', args, { cwd: folder, stdio: 'pipe' });
}

function fileOf(bytes: Uint8Array): Ranges {
  return {
    sizeBytes: bytes.length,
    read: async (offset, length) => {
      if (offset + length > bytes.length) throw new Error('beyond the end');
      return bytes.subarray(offset, offset + length);
    },
    close: async () => {},
  };
}

async function contentOf(bytes: Uint8Array): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of (await openQcow2(fileOf(bytes))).content()) {
    parts.push(part.kind === 'bytes' ? new Uint8Array(part.bytes) : new Uint8Array(part.length));
  }
  return Buffer.concat(parts);
}

function skipWithout(context: TestContext): void {
  if (missing !== undefined) context.skip(missing);
}

test.for<[string, string[]]>([
  ['plain', []],
  ['version 2', ['-o', 'compat=0.10']],
  ['small clusters', ['-o', 'cluster_size=512']],
  ['large clusters', ['-o', 'cluster_size=2M']],
  ['zlib', ['-c']],
  ['zlib in version 2', ['-c', '-o', 'compat=0.10,cluster_size=4k']],
  ['zstd', ['-c', '-o', 'compression_type=zstd']],
  ['zero clusters', ['-S', '0']],
  ['allocated beforehand', ['-o', 'preallocation=metadata']],
  ['lazy refcounts', ['-o', 'lazy_refcounts=on,refcount_bits=64']],
])('the reader reads what QEMU wrote: %s', async ([name, options], context) => {
  skipWithout(context);
  const file = `${name.replaceAll(' ', '-')}.qcow2`;
  qemuImg('convert', '-O', 'qcow2', ...options, 'raw', file);
  const found = await contentOf(readFileSync(join(folder, file)));
  expect(found.equals(raw)).toBe(true);
});

test('the reader reads zero clusters that hide what is below', async (context) => {
  skipWithout(context);
  qemuImg('convert', '-O', 'qcow2', 'raw', 'zeroed.qcow2');
  const command = ['-f', 'qcow2', '-c', 'write -z 0 1M', '-c', 'write -P 7 8M 64k', 'zeroed.qcow2'];
  execFileSync('qemu-io', command, { cwd: folder, stdio: 'pipe' });
  const expected = Buffer.from(raw);
  expected.fill(0, 0, mib).fill(7, 8 * mib, 8 * mib + 65_536);
  const found = await contentOf(readFileSync(join(folder, 'zeroed.qcow2')));
  expect(found.equals(expected)).toBe(true);
});

test('the reader refuses an unsupported feature by its name', async (context) => {
  skipWithout(context);
  qemuImg('convert', '-O', 'qcow2', 'raw', 'base.qcow2');
  const secret = ['--object', 'secret,id=s,data=geheim'];
  const encrypted = ['-o', 'encrypt.format=aes,encrypt.key-secret=s'];
  const files: [string, () => void, string][] = [
    [
      'a backing file',
      () => qemuImg('create', '-f', 'qcow2', '-b', 'base.qcow2', '-F', 'qcow2', 'one'),
      'a backing file',
    ],
    [
      'external data',
      () => qemuImg('create', '-f', 'qcow2', '-o', 'data_file=outside', 'one', '1M'),
      'an external data file',
    ],
    [
      'subclusters',
      () => qemuImg('create', '-f', 'qcow2', '-o', 'extended_l2=on', 'one', '1M'),
      'extended L2 entries',
    ],
    [
      'encryption',
      () => qemuImg('create', '-f', 'qcow2', ...secret, ...encrypted, 'one', '1M'),
      'encrypted',
    ],
  ];
  for (const [name, make, text] of files) {
    rmSync(join(folder, 'one'), { force: true });
    make();
    const opening = openQcow2(fileOf(readFileSync(join(folder, 'one'))));
    await expect(opening, name).rejects.toMatchObject({
      fault: 'unsupported',
      message: expect.stringContaining(text),
    });
  }
});

test('a broken header is refused with our own error, whatever broke in it', async (context) => {
  skipWithout(context);
  qemuImg('convert', '-O', 'qcow2', '-c', '-o', 'cluster_size=64k', 'raw', 'whole.qcow2');
  const whole = readFileSync(join(folder, 'whole.qcow2'));
  const unknown = Buffer.from(whole);
  unknown.writeUInt32BE(1 << 20, 76);
  await expect(openQcow2(fileOf(unknown))).rejects.toThrow(/unknown feature 20/);
  const dirty = Buffer.from(whole);
  dirty.writeUInt32BE(1, 76);
  await expect(openQcow2(fileOf(dirty))).rejects.toThrow(/not closed as it should/);
  // Every field of the header, one after the other.
  const outcomes = new Set<string>();
  for (let at = 0; at < 112; at += 4) {
    const changed = Buffer.from(whole);
    changed.writeUInt32BE(0x0fed_cba9, at);
    outcomes.add(
      await contentOf(changed).then(
        () => 'read',
        (error: unknown) => (error as Error).name,
      ),
    );
  }
  outcomes.delete('read');
  outcomes.delete('Error');
  expect([...outcomes]).toEqual(['ImageError']);
});
