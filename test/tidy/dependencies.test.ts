import { expect, test } from 'vitest';
import { findLooseVersions, findUndeclared, needsOf } from './dependencies.ts';

const files = [
  {
    path: 'packages/dhcp/src/a.ts',
    text: "import { b } from '@rackwright/bytes/sub';\nimport 'node:assert';\nimport './b.ts';",
  },
  {
    path: 'packages/dhcp/src/a.test.ts',
    text: "import { a } from '@rackwright/dhcp';\nimport { test } from 'vitest';",
  },
  { path: 'packages/tftp/src/a.ts', text: "import { p } from 'pino';" },
];
const root = { name: 'rackwright', devDependencies: { vitest: '5.1.0' } };
const needs = needsOf('dhcp', files);

test('the check takes a manifest that declares what is imported', () => {
  const manifest = { name: 'dhcp', dependencies: { '@rackwright/bytes': '0.1.0' } };
  expect(findUndeclared(manifest, needs, root)).toEqual([]);
});

test('the check finds what is imported and not declared, and the reverse', () => {
  const manifest = {
    name: 'dhcp',
    dependencies: { pino: '10.4.0' },
    devDependencies: { yaml: '2.9.1' },
  };
  expect(findUndeclared(manifest, needs, { name: 'rackwright' })).toEqual([
    'dhcp declares pino, and does not import it',
    'dhcp declares yaml, and no test imports it',
    'dhcp imports @rackwright/bytes, and does not declare it',
    'dhcp imports vitest in tests, and does not declare it',
  ]);
});

test('the check finds ranges and versions that differ', () => {
  const manifests = [
    { name: 'a', dependencies: { pino: '10.4.0', nats: 'npm:@nats-io/transport-node@3.4.0' } },
    { name: 'b', dependencies: { pino: '10.3.0', yaml: '^2.9.1' } },
  ];
  expect(findLooseVersions(manifests)).toEqual([
    'b takes pino 10.3.0, others 10.4.0',
    'b takes yaml as ^2.9.1; name one version',
  ]);
});
