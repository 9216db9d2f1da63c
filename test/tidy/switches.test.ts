import { expect, test } from 'vitest';
import { findSwitches } from './switches.ts';

const path = 'packages/dhcp/src/packet.ts';

test('the check finds a switch beside other arguments, over several lines as well', () => {
  expect(findSwitches({ path, text: 'read(path, true);' })).toMatchObject([{ line: 1 }]);
  expect(findSwitches({ path, text: 'a;\nthis.#read<T>(\n  path,\n  false,\n);' })).toHaveLength(1);
  expect(findSwitches({ path, text: 'read(false, path);' })).toHaveLength(1);
});

test('the check finds a parameter with the default of a switch, and no option with one', () => {
  expect(
    findSwitches({ path, text: 'function read(path: string, isLast = true) {}' }),
  ).toHaveLength(1);
  expect(findSwitches({ path, text: 'const a = (\n  b: B,\n  c = false,\n) => b;' })).toMatchObject(
    [{ line: 3 }],
  );
  const good = [
    'function read({ isLast = true, to = 1 } = {}) {}',
    'let isRead = true;',
    'for (; ; isFirst = false) a();',
  ];
  for (const text of good) expect(findSwitches({ path, text }), text).toEqual([]);
});

test('the check takes a named option, a value alone, a list, and what others have made', () => {
  const good = [
    'read(path, { isLast: true });',
    'setBusy(true);',
    'const both = [true, false];',
    "seen.set('a', true);",
    'view.setUint16(0, 1, true);',
    "say('read(path, true)');",
    'if (found === true) read(path);',
  ];
  for (const text of good) expect(findSwitches({ path, text }), text).toEqual([]);
});

test('the check takes switches in tests, which name what they try beside it', () => {
  expect(
    findSwitches({ path: 'packages/dhcp/src/packet.test.ts', text: 'read(a, true);' }),
  ).toEqual([]);
});
