import { expect, test } from 'vitest';
import { findMissingHeader } from './headers.ts';

const path = 'packages/dhcp/src/packet.ts';

test('the check finds a module that declares before it explains', () => {
  expect(findMissingHeader({ path, text: 'const a = 1;\n/** Why. */' })).toHaveLength(1);
  expect(findMissingHeader({ path, text: "import { b } from 'b';\n\nconst a = b;" })).toHaveLength(
    1,
  );
});

test('the check takes a comment at the top, after a hash-bang, or after the imports', () => {
  expect(findMissingHeader({ path, text: '/** Why. */\nconst a = 1;' })).toEqual([]);
  expect(findMissingHeader({ path, text: '#!/usr/bin/env node\n/** Why. */' })).toEqual([]);
  const imports = "import {\n  b,\n} from 'b';\nimport type { C } from 'c';\n\n";
  expect(findMissingHeader({ path, text: `${imports}/** Why. */` })).toEqual([]);
});

test('the check lets tests speak through their names', () => {
  const testPath = 'packages/dhcp/src/packet.test.ts';
  expect(findMissingHeader({ path: testPath, text: 'const a = 1;' })).toEqual([]);
});
