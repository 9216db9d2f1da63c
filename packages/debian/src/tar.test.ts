import { describe, expect, test } from 'vitest';
import { tarArchive, withFolders } from './tar.ts';

const file = (path: string) =>
  ({ kind: 'file', path, mode: 0o644, bytes: Buffer.from('content') }) as const;

describe('a tar archive', () => {
  test('is whole blocks with two empty ones at the end', () => {
    const archive = tarArchive([file('a')], 7);
    expect(archive.length).toBe(512 * 4);
    expect(Buffer.from(archive.subarray(1_024)).every((byte) => byte === 0)).toBe(true);
  });

  test('has a sum in each header that covers the header', () => {
    const header = Buffer.from(tarArchive([file('a')], 7).subarray(0, 512));
    const said = Number.parseInt(header.toString('latin1', 148, 154), 8);
    header.fill(' ', 148, 156);
    expect(header.reduce((sum, byte) => sum + byte, 0)).toBe(said);
  });

  test('refuses a name that does not fit, rather than cut it', () => {
    expect(() => tarArchive([file('x'.repeat(150))], 0)).toThrow('too long for the archive');
  });
});

test('the folders above a file are added, each once and before what is in it', () => {
  const entries = withFolders([file('b/c/d'), file('a'), file('b/e')]);
  expect(entries.map(({ path }) => path)).toEqual(['a', 'b', 'b/c', 'b/c/d', 'b/e']);
});
