import { expect, test } from 'vitest';
import { findLayerFaults } from './layers.ts';

const faults = (path: string, specifier: string): number =>
  findLayerFaults({ path, text: `import { a } from '${specifier}';` }).length;

test.each([
  ['packages/store/src/a.ts', '@rackwright/controlplane'],
  ['packages/store/src/a.test.ts', '@rackwright/agent'],
  ['agent/src/a.ts', '@rackwright/store'],
  ['agent/src/a.test.ts', '@rackwright/controlplane'],
  ['agent/src/a.ts', '@rackwright/sim'],
  ['controlplane/src/services/a.ts', '@rackwright/dhcp'],
  ['controlplane/src/host/api/a.ts', '@rackwright/rpc'],
  ['packages/messages/src/a.ts', '@rackwright/rpc'],
  ['packages/messages/src/a.ts', 'node:net'],
  ['controlplane/src/main.ts', '@rackwright/bmc'],
  ['packages/cli/src/a.ts', '@rackwright/store'],
  ['packages/bytes/src/a.ts', '@rackwright/results'],
  ['packages/tftp/src/a.ts', 'node:crypto'],
  ['controlplane/src/host/machine.ts', 'node:crypto'],
  ['controlplane/src/host/life/machine-tables.ts', 'node:util'],
  ['controlplane/src/host/run/engine.ts', 'node:util'],
  ['packages/erasure/src/a.ts', 'node:util'],
  ['packages/bmc/src/a.ts', 'node:child_process'],
  ['packages/bmc/src/a.ts', 'node:timers/promises'],
  ['agent/src/journal/a.ts', 'node:fs/promises'],
  ['agent/src/journal/a.ts', '@rackwright/platform/node'],
])('the check finds in %s the import of %s', (path, specifier) => {
  expect(faults(path, specifier)).toBeGreaterThan(0);
});

test.each([
  ['packages/dhcp/src/a.ts', '@rackwright/bytes'],
  ['packages/dhcp/src/a.ts', 'node:assert/strict'],
  ['packages/dhcp/src/a.test.ts', 'node:fs'],
  ['packages/tftp/src/a.test.ts', '@rackwright/sim'],
  ['packages/erasure/src/a.ts', 'node:crypto'],
  ['packages/store/src/sqlite/a.ts', 'node:sqlite'],
  ['packages/platform/src/node/a.ts', 'node:dgram'],
  ['controlplane/src/host/shell/reconcile.ts', '@rackwright/store'],
  ['agent/src/main.ts', '@rackwright/platform/node'],
  ['test/sim/a.test.ts', '@rackwright/agent'],
])('the check lets %s import %s', (path, specifier) => {
  expect(faults(path, specifier)).toBe(0);
});

test('the check lets pure code tell whether a text is an address', () => {
  const finds = (names: string): number =>
    findLayerFaults({ path: 'agent/src/a.ts', text: `import { ${names} } from 'node:net';` })
      .length;
  expect(finds('isIP, isIPv4')).toBe(0);
  expect(finds('isIP, connect')).toBe(1);
});
