import { expect, test } from 'vitest';
import { describeGraph, findDead, findEscapes, importsOf } from './imports.ts';

test('the check finds imports of every form', () => {
  const text = [
    "import { a } from 'a';",
    "import type {\n  B,\n} from 'b';",
    "import 'c';",
    "export * from './d.ts';",
    "const e = await import('e');",
    "// import { f } from 'f';",
    " * import { g } from 'g';",
    "const h = 'import from elsewhere';",
    'const i = "await import(\'i\')";',
  ].join('\n');
  expect(importsOf(text).map(({ specifier }) => specifier)).toEqual(['a', 'b', 'c', './d.ts', 'e']);
  expect(importsOf(text)[1]?.line).toBe(4);
});

test('the check finds a relative import that leaves its workspace', () => {
  const text = "import { a } from '../../bytes/src/reader.ts';";
  expect(findEscapes({ path: 'packages/dhcp/src/packet.ts', text })).toMatchObject([{ line: 1 }]);
  const own = "import { a } from '../src/reader.ts';";
  expect(findEscapes({ path: 'packages/dhcp/ramdisk/a.ts', text: own })).toEqual([]);
  const parser = "import { a } from '../../../packages/bytes/src/reader.ts';";
  expect(findEscapes({ path: 'test/fuzz/targets/a.ts', text: parser })).toEqual([]);
  expect(findEscapes({ path: 'test/lab/targets/a.ts', text: parser })).toHaveLength(1);
});

test('the check draws workspaces, tests apart, with what they import', () => {
  const graph = describeGraph([
    {
      path: 'packages/dhcp/src/a.ts',
      text: "import { b } from '@rackwright/bytes';\nimport { c } from './c.ts';",
    },
    {
      path: 'packages/dhcp/src/a.test.ts',
      text: "import { a } from '@rackwright/dhcp';\nimport 'vitest';\nimport 'node:os';",
    },
    {
      path: 'agent/src/main.ts',
      text: [
        "import { n } from '@rackwright/platform/node';",
        "import { x } from '@a/b/c';",
        "import 'node:fs';",
      ].join('\n'),
    },
    { path: 'test/lab/main.ts', text: "import { a } from '@rackwright/agent';" },
  ]);
  expect(graph).toBe(
    'agent → @a/b node:fs platform/node\ndhcp (tests) → vitest\ndhcp → bytes\ntest → agent\n',
  );
});

test('the check finds a file that nothing imports, names or starts', () => {
  const files = [
    { path: 'agent/src/main.ts', text: "import { a } from './a.ts';" },
    { path: 'agent/src/a.ts', text: "new URL('./worker.ts', import.meta.url)" },
    { path: 'agent/src/worker.ts', text: "new URL('child.ts', import.meta.url)" },
    { path: 'agent/src/child.ts', text: '' },
    { path: 'agent/src/dead.ts', text: '' },
    { path: 'agent/src/index.ts', text: '' },
    { path: 'agent/src/other.ts', text: '' },
    { path: 'agent/src/a.test.ts', text: '' },
  ];
  const mentions = [
    { path: 'agent/package.json', text: '{"exports": {".": "./src/index.ts"}}' },
    { path: '.ci/run', text: 'node agent/src/other.ts' },
  ];
  expect(findDead(files, mentions).map(({ path }) => path)).toEqual(['agent/src/dead.ts']);
});
