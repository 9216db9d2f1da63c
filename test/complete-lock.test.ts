import { expect, test } from 'vitest';
import { completeLock } from './complete-lock.ts';

const lockWith = (optionalDependencies: Record<string, string>, more: object = {}): string =>
  JSON.stringify({
    lockfileVersion: 3,
    packages: { '': {}, 'node_modules/tool': { version: '1.0.0', optionalDependencies }, ...more },
  });

function completed(text: string): Record<string, unknown> {
  return JSON.parse(completeLock(text)).packages;
}

test('the script adds entries that npm left out, with the system of their name', () => {
  const packages = completed(
    lockWith({ 'tool-darwin-arm64': '1.0.0', 'tool-linux-armv7': '1.0.0' }),
  );
  expect(packages['node_modules/tool-darwin-arm64']).toEqual({
    version: '1.0.0',
    cpu: ['arm64'],
    dev: true,
    optional: true,
    os: ['darwin'],
  });
  expect(packages['node_modules/tool-linux-armv7']).toMatchObject({ cpu: ['arm'], os: ['linux'] });
});

test('the script names the C library, so that ours do not take the other', () => {
  const packages = completed(lockWith({ 'tool-linux-x64-musl': '1.0.0' }));
  expect(packages['node_modules/tool-linux-x64-musl']).toMatchObject({ libc: ['musl'] });
});

test('the script leaves present entries, and a complete lock file, unchanged', () => {
  const there = { 'node_modules/tool-win32-x64': { version: '1.0.0', integrity: 'sha512-x' } };
  const text = lockWith({ 'tool-win32-x64': '1.0.0' }, there);
  expect(completed(text)).toMatchObject(there);
  expect(completeLock(completeLock(text))).toBe(completeLock(text));
});

test('the script refuses to invent an entry for a system that we run on', () => {
  const ours = () => completeLock(lockWith({ 'tool-linux-x64-gnu': '1.0.0' }));
  expect(ours).toThrow('tool-linux-x64-gnu is for us');
  expect(() => completeLock(lockWith({ fsevents: '1.0.0' }))).toThrow('cannot tell the system');
});
