import { describe, expect, test } from 'vitest';
import { commandIn, missingIn, toDoLines } from './explained.ts';

const cause = (text: string) => ({ $typeName: 'rackwright.v1.Cause' as const, text });

describe('an explanation of a host that is stuck', () => {
  test.for([
    ['the BMC', [], ['give it power'], undefined],
    ['', ['it does not answer'], ['give it power'], undefined],
    ['', [], ['give it power'], 'it does not say why'],
    ['', ['  '], ['give it power'], 'it does not say why'],
    ['the BMC', ['it does not answer'], [], 'it does not say what to do'],
    ['the BMC', ['it does not answer'], [' '], 'it does not say what to do'],
    ['', [], [], 'it says neither why nor what to do'],
  ] as const)(
    'an explanation with blocker "%s", causes %j and ways out %j is judged: %s',
    (row) => {
      const [blocker, causes, unblock, missing] = row;
      const explanation = { blocker, causes: causes.map(cause), unblock: [...unblock] };
      expect(missingIn(explanation)).toBe(missing);
    },
  );
});

test('the demo reads the lines that say what to do out of what the command prints', () => {
  const output = [
    'hosts/h1: verifying has been given up',
    '  because it says yes and does nothing',
    '  to do: reset or replace it',
    '  to do: then: rackwright host verify h1',
    '  last seen: to do: nothing',
  ].join('\n');
  expect(toDoLines(output)).toEqual(['reset or replace it', 'then: rackwright host verify h1']);
});

test.for([
  ['then: rackwright host verify h1', ['host', 'verify', 'h1']],
  [
    'correct it: rackwright credential update c1 --username USER',
    ['credential', 'update', 'c1', '--username', 'admin'],
  ],
  ['rackwright host release-hold h1, then wait', ['host', 'release-hold', 'h1']],
  ['or correct its address: rackwright host update h1 --bmc ADDRESS', undefined],
  ['or correct its address: rackwright host update h1 --bmc ADDRESS:8443', undefined],
  ['reset or replace it', undefined],
] as const)('a person who reads "%s" types %j', ([line, args]) => {
  expect(commandIn(line, { USER: 'admin' })).toEqual(args);
});
