import { expect, test } from 'vitest';
import { differences } from './compare.ts';

test('the comparison reports each value that differs, with what is there and what will be', () => {
  const before = {
    labels: { role: 'a', 'example.com/x': '1' },
    spec: { on: true, list: ['a', 'b'] },
  };
  const after = { labels: { role: 'b' }, spec: { on: true, list: ['a'], bmc: { port: 1 } } };
  expect(differences(before, after)).toEqual([
    'labels.role: a → b',
    'labels[example.com/x]: 1 → (none)',
    'spec.list[1]: b → (none)',
    'spec.bmc.port: (none) → 1',
  ]);
  expect(differences(before, before)).toEqual([]);
});

test('the comparison reports that an empty object or text comes or goes', () => {
  expect(differences({}, { spec: {} })).toEqual(['spec: (none) → {}']);
  expect(differences(undefined, {})).toEqual([]);
  expect(differences({ name: 'x' }, { name: '' })).toEqual(['name: x → ""']);
});

test('the comparison shows of a long text the lines that differ', () => {
  const text = (middle: string) => `one\ntwo\n${middle}\nfour\n`;
  expect(differences({ source: text('3') }, { source: text('three\nand a half') })).toEqual([
    'source, line 3:',
    '  - 3',
    '  + three',
    '  + and a half',
  ]);
  const long = Array.from({ length: 60 }, (_, at) => `line ${at}`).join('\n');
  const lines = differences(undefined, { source: long });
  expect(lines.at(-1)).toBe('  + … 40 more lines');
});
