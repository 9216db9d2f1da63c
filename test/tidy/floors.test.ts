import { expect, test } from 'vitest';
import { findStairs } from './floors.ts';

const faults = (path: string, specifier: string): number =>
  findStairs({ path, text: `import { a } from '${specifier}';` }).length;

test.each([
  ['controlplane/src/host/pass/a.ts', '../run/b.ts'],
  ['controlplane/src/host/run/a.ts', '../machine.ts'],
  ['controlplane/src/host/run/a.ts', '../index.ts'],
  ['controlplane/src/host/run/steps/a.ts', '../engine.ts'],
  ['controlplane/src/host/machine.ts', './shell/reconcile.ts'],
  ['controlplane/src/host/run/a.ts', '../nowhere/b.ts'],
  ['controlplane/src/host/nowhere/a.ts', '../pass/b.ts'],
  ['controlplane/src/rack/a.ts', '../host/api/b.ts'],
  ['controlplane/src/pool/facts/a.ts', '../decide/b.ts'],
  ['controlplane/src/agents/hello/a.ts', '../stream/b.ts'],
  ['controlplane/src/host/shell/a.ts', '../../agents/index.ts'],
  ['controlplane/src/secrets/a.ts', '../discovery/b.ts'],
  ['controlplane/src/retention/a.ts', '../config.ts'],
  ['controlplane/src/backup/a.ts', '../control-plane.ts'],
  ['controlplane/src/nowhere/a.ts', '../records/index.ts'],
  ['agent/src/session/a.ts', '../operations/b.ts'],
  ['agent/src/images/deeper/a.ts', '../../session/b.ts'],
])('the check finds in %s the way up to %s', (path, specifier) => {
  expect(faults(path, specifier)).toBe(1);
});

test.each([
  ['controlplane/src/host/run/a.ts', '../pass/b.ts'],
  ['controlplane/src/host/run/a.ts', './b.ts'],
  ['controlplane/src/host/run/a.ts', './steps/b.ts'],
  ['controlplane/src/host/run/a.test.ts', '../shell/reconcile.ts'],
  ['controlplane/src/host/index.ts', './shell/reconcile.ts'],
  ['controlplane/src/host/pass/a.ts', '../../steps/index.ts'],
  ['controlplane/src/pool/facts/a.ts', '../../host/index.ts'],
  ['controlplane/src/pool/api/a.ts', '../../workflow/api/b.ts'],
  ['controlplane/src/backup/a.ts', '../config.ts'],
  ['controlplane/src/main.ts', './control-plane.ts'],
  ['controlplane/src/index.ts', './services/index.ts'],
  ['agent/src/operations/a.ts', '../images/deeper/b.ts'],
  ['agent/src/core.ts', './operations/b.ts'],
])('the check lets %s import %s', (path, specifier) => {
  expect(faults(path, specifier)).toBe(0);
});
