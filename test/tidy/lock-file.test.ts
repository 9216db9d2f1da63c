import { expect, test } from 'vitest';
import { findLockFaults } from './lock-file.ts';

const faultsOf = (packages: object): string[] => findLockFaults(JSON.stringify({ packages }));
const sound = { version: '1.0.0', integrity: 'sha512-x' };

test('takes a sound lock file', () => {
  const packages = {
    '': { name: 'rackwright' },
    agent: { name: '@rackwright/agent' },
    'node_modules/@rackwright/agent': { resolved: 'agent', link: true },
    'node_modules/pino': sound,
    'node_modules/esbuild': { ...sound, hasInstallScript: true },
  };
  expect(faultsOf(packages)).toEqual([]);
});

test('finds an install script', () => {
  const packages = { 'node_modules/a/node_modules/b': { ...sound, hasInstallScript: true } };
  expect(faultsOf(packages)).toEqual([expect.stringContaining('b wants to run a script')]);
});

test('finds the address of a registry', () => {
  const packages = { 'node_modules/a': { ...sound, resolved: 'https://registry.example/a.tgz' } };
  expect(faultsOf(packages)).toEqual([expect.stringContaining('a is bound to')]);
});

test('finds a package without a hash', () => {
  const packages = { 'node_modules/a': { version: '1.0.0' } };
  expect(faultsOf(packages)).toEqual(['a has no integrity hash']);
});
