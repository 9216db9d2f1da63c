import { expect, test } from 'vitest';
import { findStairs } from './floors.ts';

const faults = (path: string, specifier: string): number =>
  findStairs({ path, text: `import { a } from '${specifier}';` }).length;

test.each([
  ['controlplane/src/host/turn/a.ts', '../run/b.ts'],
  ['controlplane/src/host/run/a.ts', '../machine.ts'],
  ['controlplane/src/host/run/a.ts', '../index.ts'],
  ['controlplane/src/host/machine.ts', './shell/reconcile.ts'],
  ['controlplane/src/host/run/a.ts', '../nowhere/b.ts'],
  ['controlplane/src/host/nowhere/a.ts', '../turn/b.ts'],
  ['controlplane/src/rpc/spec/a.ts', '../host/b.ts'],
])('finds in %s the way up to %s', (path, specifier) => {
  expect(faults(path, specifier)).toBe(1);
});

test.each([
  ['controlplane/src/host/run/a.ts', '../turn/b.ts'],
  ['controlplane/src/host/run/a.ts', './b.ts'],
  ['controlplane/src/host/run/a.test.ts', '../shell/reconcile.ts'],
  ['controlplane/src/host/index.ts', './shell/reconcile.ts'],
  ['controlplane/src/host/turn/a.ts', '../../steps/index.ts'],
  ['controlplane/src/pool/a.ts', '../host/index.ts'],
])('lets %s import %s', (path, specifier) => {
  expect(faults(path, specifier)).toBe(0);
});
