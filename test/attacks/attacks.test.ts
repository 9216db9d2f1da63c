/** Every row of the table of attacks is a test that is there and runs. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { tiersOf } from '../tiers.ts';
import { problemsOf, rowsOf, whyNot } from './table.ts';

const root = join(import.meta.dirname, '../..');
const readme = readFileSync(join(import.meta.dirname, 'README.md'), 'utf8');
const rows = rowsOf(readme);

function read(path: string): string | undefined {
  const file = join(root, path);
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined;
}

test('each row cites tests that are there and run', () => {
  expect(problemsOf(rows, read)).toEqual([]);
});

test('each cited file is run by a tier', () => {
  const paths = new Set(rows.flatMap(({ tests }) => tests.map(({ path }) => path)));
  expect([...paths].filter((path) => tiersOf(path).length !== 1)).toEqual([]);
});

test('every kind of attacker has rows, and there is no other kind', () => {
  expect(new Set(rows.map(({ attacker }) => attacker))).toEqual(
    new Set([
      'machine on the wire',
      'machine at the port for browsers',
      'page of another site',
      'rogue DHCP server',
      'hostile agent',
      'hostile registry',
      'cloned agent',
      'too small a role',
      'stolen token',
      'stolen disk or backup',
    ]),
  );
  expect(rows.length).toBeGreaterThan(40);
});

test('every residual risk says how it is noticed and what a site does about it', () => {
  const section = /^## Residual risks\n([^]*?)(?=^## |$(?![^]))/m.exec(readme)?.[1] ?? '';
  const risks = section.split(/^### /m).slice(1);
  expect(risks.length).toBeGreaterThan(4);
  for (const risk of risks) {
    expect(risk).toContain('- Noticed: ');
    expect(risk).toContain('- A site: ');
  }
});

describe('the check', () => {
  const source = [
    "test('runs', () => {});",
    "test.each<[a: string, () => void]>([['a)', (x) => x > 1]])(",
    "  'runs %s',",
    '  async () => {});',
    "test.skip('is left out', () => {});",
    "test.skipIf(process.env['X'] === '(')('is left out here', () => {});",
    "test.todo('is to come');",
    "describe('a group', () => {});",
    "// test('is a comment', () => {});",
    "test('stands twice', () => {}); it('stands twice', () => {});",
    "expect(text).toBe('a text');",
  ].join('\n');

  test.each(['runs', 'runs %s'])('finds a test: %s', (title) => {
    expect(whyNot(source, title)).toBeUndefined();
  });

  test.each([
    ['is left out', 'it is marked skip'],
    ['is left out here', 'it is marked skipIf'],
    ['is to come', 'it is marked todo'],
    ['a group', 'there is no such test'],
    ['is a comment', 'there is no such test'],
    ['a text', 'there is no such test'],
    ['run', 'there is no such test'],
    ['stands twice', 'there are several of that title'],
  ])('finds none: %s', (title, why) => {
    expect(whyNot(source, title)).toBe(why);
  });

  test('sees a group that is left out', () => {
    const grouped = `describe.skip('g', () => { test('runs', () => {}); });`;
    expect(whyNot(grouped, 'runs')).toBe('its file has a describe.skip');
  });

  test('reads rows, and says what is wrong with them', () => {
    const table = [
      '| attacker | what they try | what comes of it | the test |',
      '|---|---|---|---|',
      '| one | a | b | `x.test.ts: "runs"` |',
      '| | c | d | `x.test.ts: "is gone"`, `y.test.ts: "runs"` |',
      '| two | e | f | by hand |',
      '| two | g | | `x.test.ts: "runs"` |',
    ].join('\n');
    const found = rowsOf(table);
    expect(found.map(({ attacker }) => attacker)).toEqual(['one', 'one', 'two', 'two']);
    expect(problemsOf(found, (path) => (path === 'x.test.ts' ? source : undefined))).toEqual([
      'line 4: x.test.ts: "is gone": there is no such test',
      'line 4: y.test.ts: "runs": there is no such file',
      'line 5: no test is cited',
      'line 6: an empty cell',
    ]);
  });
});
