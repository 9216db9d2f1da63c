import { expect, test } from 'vitest';
import { findTestOnlyExports } from './exports.ts';

const files = [
  {
    path: 'packages/a/src/a.ts',
    text: [
      'export function used() {}',
      '/** As dead does. */',
      'export function dead() {}',
      'export type Own = string;',
      'const own: Own = "dead";',
      'export const double = own;',
    ].join('\n'),
  },
  {
    path: 'packages/a/src/index.ts',
    text: "export { dead, double, used } from './a.ts';",
  },
  { path: 'agent/src/b.ts', text: "import { used } from '@rackwright/a';\nused();" },
  { path: 'agent/src/b.test.ts', text: 'dead();\ndouble();\nexport const only = 1;' },
];

test('the check finds an export used only by tests, even if re-exported and named in texts', () => {
  const allowed = { 'packages/a/src/a.ts': ['double'] };
  expect(findTestOnlyExports(files, allowed)).toEqual([
    { path: 'packages/a/src/a.ts', line: 3, message: expect.stringContaining('exports dead,') },
  ]);
});

test('the check finds an exception that is not needed any more', () => {
  const allowed = { 'packages/a/src/a.ts': ['dead', 'double', 'used'] };
  expect(findTestOnlyExports(files, allowed)).toEqual([
    { path: 'packages/a/src/a.ts', line: 0, message: expect.stringContaining('used has a use') },
  ]);
});
