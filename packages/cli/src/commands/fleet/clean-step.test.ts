import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { OwnCleanStepSchema } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { rulesText } from '../../output/own-step.ts';
import { changeOf, withChange } from './clean-step.ts';

const image = 'registry.example.org/tools/check@sha256:00';
const other = create(OwnCleanStepSchema, { name: 'other', image });
const before = create(OwnCleanStepSchema, {
  ...{ name: 'check', image, priority: 40, arguments: ['--all'], environment: { A: 'b' } },
  ...{ directory: '/tmp', timeout: durationFromMs(90_000), onFailure: 'continue' },
});

test('the fields of a step that no flag names stay, and so does its place', () => {
  const said = changeOf({ retries: 2, timeout: '5m', environment: ['A=c', 'D=e'] });
  const [changed, last] = withChange([before, other], 'check', said);
  expect(last).toBe(other);
  expect(changed).toMatchObject({
    ...{ name: 'check', image, priority: 40, arguments: ['--all'], retries: 2 },
    ...{ environment: { A: 'c', D: 'e' }, timeout: { seconds: 300n }, onFailure: 'continue' },
  });
  expect(before.retries).toBe(0);
});

test('the word none takes a field back, and a new step begins with its flags', () => {
  const none = { argument: ['none'], environment: ['none'], directory: 'none', timeout: 'none' };
  const [taken] = withChange([before], 'check', changeOf(none));
  expect(taken).toMatchObject({ arguments: [], environment: {}, directory: '' });
  expect(taken?.timeout).toBeUndefined();
  const [, made] = withChange([before], 'new', changeOf({ image, idempotent: true }));
  expect(made).toMatchObject({ name: 'new', image, idempotent: true });
});

test('a time and a pair that cannot be read are told', () => {
  expect(() => changeOf({ timeout: 'soon' })).toThrow('--timeout');
  expect(() => changeOf({ environment: ['A'] })).toThrow('--environment');
});

test('the behaviour after a failure is shown in few words', () => {
  expect(rulesText(other)).toBe('fail');
  expect(rulesText(before)).toBe('continue, timed out: fail');
  const same = { retries: 2, onFailure: 'hold', onTimeout: 'hold' };
  expect(rulesText(create(OwnCleanStepSchema, same))).toBe('hold after 2 more');
});
