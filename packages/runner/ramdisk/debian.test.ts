import { expect, test } from 'vitest';
import { parseShow, parseTargets, sourceList, withSuite } from './debian.ts';

const TARGETS = [
  'http://mirror.example/debian/|bookworm|main',
  'http://mirror.example/debian/|bookworm|main', // one line for each architecture
  'http://mirror.example/debian/|bookworm-updates|main',
  'http://mirror.example/debian/|bookworm|contrib',
  'http://mirror.example/debian-security/|bookworm-security|main',
  'https://packages.example/tools/|bookworm|main',
  '',
].join('\n');

test('only the main component of Debian itself is taken from the sources of the machine', () => {
  expect(parseTargets(TARGETS).map((one) => `${one.uri} ${one.suite}`)).toEqual([
    'http://mirror.example/debian/ bookworm',
    'http://mirror.example/debian/ bookworm-updates',
    'http://mirror.example/debian-security/ bookworm-security',
  ]);
});

test('another suite comes from the same mirror', () => {
  expect(sourceList(withSuite(parseTargets(TARGETS), 'sid'), '/keys.gpg')).toBe(
    'deb [signed-by=/keys.gpg] http://mirror.example/debian/ sid main\n',
  );
});

test('a machine without a Debian source has none with another suite either', () => {
  expect(withSuite([], 'sid')).toEqual([]);
});

test('the first of several versions of a package counts, which is the candidate of apt', () => {
  const show = [
    'Package: kmod\nVersion: 31-1\nDescription: x\n y\nSHA256: aa',
    'Package: kmod\nVersion: 30-1\nSHA256: bb',
    'Package: zstd\nVersion: 1.5\nSHA256: cc',
  ].join('\n\n');
  expect(parseShow(show)).toEqual([
    { name: 'kmod', version: '31-1', sha256: 'aa' },
    { name: 'zstd', version: '1.5', sha256: 'cc' },
  ]);
});
