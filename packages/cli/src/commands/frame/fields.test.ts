import { expect, test } from 'vitest';
import { textFlag } from '../../flags.ts';
import { field, flagsOf, givenBy, namesOf } from './fields.ts';

const table = {
  title: { ...field(textFlag('Title', 'text'), 'title'), clears: true },
  rateLimit: field(textFlag('Limit', 'number'), 'limits', (text) =>
    text === 'none' ? undefined : { runs: Number(text) },
  ),
  port: field(textFlag('Port', 'number'), 'bmc.lanPort', Number),
};

test('flags, values and paths follow from one entry', () => {
  expect(Object.keys(flagsOf(table))).toEqual(['title', 'rateLimit', 'port']);
  expect(givenBy(table, { rateLimit: '3', port: '623' })).toEqual({
    spec: { limits: { runs: 3 }, bmc: { lanPort: 623 } },
    paths: ['spec.limits', 'spec.bmc.lan_port'],
  });
});

test('a field takes a value away by its word, or by an empty text where the entry says so', () => {
  expect(givenBy(table, { rateLimit: 'none', title: '', port: '' })).toEqual({
    spec: { title: '', limits: undefined },
    paths: ['spec.title', 'spec.limits'],
  });
});

test('a message names the flags as people give them', () => {
  expect(namesOf(table)).toBe('--title, --rate-limit or --port');
  expect(namesOf({ one: 1 })).toBe('--one');
});
