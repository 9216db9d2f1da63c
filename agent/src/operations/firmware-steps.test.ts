import { problemIn, valid } from '@rackwright/platform';
import { expect, test } from 'vitest';
import { firmwareSteps, parseSettings } from './firmware-steps.ts';

test('settings are pairs, and a value may hold "="', () => {
  const settings = new Map([
    ['A', 'B'],
    ['C.1', 'x=y'],
    ['D', ''],
  ]);
  expect(parseSettings('A=B;C.1=x=y;D=')).toEqual(valid(settings));
});

test.each([
  ['', /must be NAME=VALUE/],
  ['A', /"A" is not/],
  ['A=1;', /"" is not/],
  ['=1', /must be/],
  ['__proto__=1', /must be/],
  ['A=\n', /must be/],
  ['A=1;A=2', /names A twice/],
  [Array.from({ length: 65 }, (_, at) => `A${at}=1`).join(';'), /has 65 settings; at most 64/],
])('%j is refused with its reason', (text, reason) => {
  expect(problemIn(parseSettings(text))).toMatch(reason);
});

test('a boot order names different options', () => {
  const step = firmwareSteps.find(({ description }) => description.name === 'bios.set_boot_order');
  expect(step?.problem?.({ first: 'Boot0001;Boot0002' })).toBeUndefined();
  for (const first of ['', 'A;A', 'A;', 'A B']) {
    expect(step?.problem?.({ first })).toMatch(/different boot options/);
  }
});

const update = firmwareSteps.find(({ description }) => description.name === 'firmware.update');
const values = {
  component: 'BIOS',
  version: '2.2',
  uri: 'https://images.example.org/bios-2.2.bin',
};

test.each([
  [{}, undefined],
  [{ component: '' }, /component must be/],
  [{ version: '2\n' }, /version must be/],
  [{ uri: 'https://user:word@images.example.org/b' }, /uri must be a plain/],
  [{ uri: 'https://images.example.org/../b' }, /uri must be a plain/],
])('an update of %j is refused or taken', (changes, reason) => {
  const problem = update?.problem?.({ ...values, ...changes });
  if (reason === undefined) expect(problem).toBeUndefined();
  else expect(problem).toMatch(reason);
});
