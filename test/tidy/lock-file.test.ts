import { expect, test } from 'vitest';
import { findLockFaults } from './lock-file.ts';

const faultsOf = (packages: object): string[] => findLockFaults(JSON.stringify({ packages }));
const sound = { version: '1.0.0', integrity: 'sha512-x' };

test('the check takes a sound lock file', () => {
  const packages = {
    '': { name: 'rackwright' },
    agent: { name: '@rackwright/agent' },
    'node_modules/@rackwright/agent': { resolved: 'agent', link: true },
    'node_modules/pino': sound,
    'node_modules/esbuild': { ...sound, hasInstallScript: true },
  };
  expect(faultsOf(packages)).toEqual([]);
});

test('the check finds an install script', () => {
  const packages = { 'node_modules/a/node_modules/b': { ...sound, hasInstallScript: true } };
  expect(faultsOf(packages)).toEqual([expect.stringContaining('b wants to run a script')]);
});

test('the check finds the address of a registry', () => {
  const packages = { 'node_modules/a': { ...sound, resolved: 'https://registry.example/a.tgz' } };
  expect(faultsOf(packages)).toEqual([expect.stringContaining('a is bound to')]);
});

test('the check finds a package without a hash', () => {
  const packages = { 'node_modules/a': { version: '1.0.0' } };
  expect(faultsOf(packages)).toEqual(['a has no integrity hash']);
});

test('the check takes a package for another system without a hash, but not one for ours', () => {
  const optional = { version: '1.0.0', optional: true };
  const packages = {
    'node_modules/a-darwin-arm64': { ...optional, os: ['darwin'], cpu: ['arm64'] },
    'node_modules/a-linux-x64-musl': { ...optional, os: ['linux'], cpu: ['x64'], libc: ['musl'] },
    'node_modules/a-linux-arm64': { ...optional, os: ['linux'], cpu: ['arm64'] },
  };
  expect(faultsOf(packages)).toEqual(['a-linux-arm64 has no integrity hash']);
});

test('the check finds an optional package without an entry', () => {
  const a = { ...sound, optionalDependencies: { 'a-darwin': '1.0.0' } };
  expect(faultsOf({ 'node_modules/a': a })).toEqual([expect.stringContaining('a-darwin, which a')]);
  const nested = { 'node_modules/a': a, 'node_modules/a/node_modules/a-darwin': sound };
  expect(faultsOf(nested)).toEqual([]);
});
