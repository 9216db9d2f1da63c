import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type CpioEntry, cpioArchive, foldersAbove } from './cpio.ts';

const HEADER_BYTES = 110;

/** Reads an archive by the format's description alone, so that the writer does not judge itself. */
function readArchive(bytes: Uint8Array) {
  const buffer = Buffer.from(bytes);
  const found: { name: string; mode: number; owner: number; content: Buffer }[] = [];
  for (let at = 0; ; ) {
    expect(buffer.toString('latin1', at, at + 6)).toBe('070701');
    const field = (n: number): number =>
      Number.parseInt(buffer.toString('latin1', at + 6 + 8 * n, at + 14 + 8 * n), 16);
    const nameAt = at + HEADER_BYTES;
    const name = buffer.toString('utf8', nameAt, nameAt + field(11) - 1);
    const contentAt = (nameAt + field(11) + 3) & ~3;
    if (name === 'TRAILER!!!') return found;
    const content = buffer.subarray(contentAt, contentAt + field(6));
    found.push({ name, mode: field(1), owner: field(2) + field(3), content });
    at = (contentAt + field(6) + 3) & ~3;
  }
}

test('files, folders, links and devices are found again with their modes and owner 0', () => {
  const entries: CpioEntry[] = [
    { kind: 'folder', path: 'dev', mode: 0o755 },
    { kind: 'characterDevice', path: 'dev/console', mode: 0o600, major: 5, minor: 1 },
    { kind: 'file', path: 'init', mode: 0o755, bytes: Buffer.from('#!/bin/sh\n') },
    { kind: 'link', path: 'sh', target: 'busybox' },
  ];
  const found = readArchive(cpioArchive(entries));
  expect(
    found.map((one) => [one.name, one.mode.toString(8), one.owner, one.content.toString()]),
  ).toEqual([
    ['dev', '40755', 0, ''],
    ['dev/console', '20600', 0, ''],
    ['init', '100755', 0, '#!/bin/sh\n'],
    ['sh', '120777', 0, 'busybox'],
  ]);
});

test('content of any length comes back, and equal entries give equal bytes', () => {
  const file = fc.record({
    path: fc.stringMatching(/^[a-z]{1,20}$/),
    bytes: fc.uint8Array({ maxLength: 600 }),
  });
  fc.assert(
    fc.property(fc.array(file, { maxLength: 8 }), (files) => {
      const entries = files.map((one): CpioEntry => ({ kind: 'file', mode: 0o644, ...one }));
      const archive = cpioArchive(entries);
      expect(archive.length % 512).toBe(0);
      expect(readArchive(archive).map((one) => [one.name, [...one.content]])).toEqual(
        files.map((one) => [one.path, [...one.bytes]]),
      );
      expect(Buffer.compare(archive, cpioArchive(entries))).toBe(0);
    }),
  );
});

test('an absolute path is refused', () => {
  expect(() => cpioArchive([{ kind: 'folder', path: '/dev', mode: 0o755 }])).toThrow(
    'must be relative',
  );
});

test('the folders above files come once each, outermost first', () => {
  expect(foldersAbove(['a/b/c', 'a/d', 'e']).map((one) => one.path)).toEqual(['a', 'a/b']);
});
