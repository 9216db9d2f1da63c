/** Filters mean what they look like, in every spelling, and are refused with a position. */
import { HostStateSchema } from '@rackwright/messages';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FilterError, type FilterFields, parseFilter } from './index.ts';

interface Thing {
  readonly name: string;
  readonly rack: string;
  readonly state: number;
  readonly on: boolean | undefined;
  readonly cores: number | undefined;
  readonly macs: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  readonly ms: number | undefined;
}

const fields: FilterFields<Thing> = {
  name: { kind: 'text', of: ({ name }) => `things/${name}`, collection: 'things' },
  rack: { kind: 'text', of: ({ rack }) => rack, collection: 'racks', path: 'spec.rack' },
  state: { kind: 'choice', of: ({ state }) => state, choices: HostStateSchema },
  on: { kind: 'flag', of: ({ on }) => on },
  cores: { kind: 'number', of: ({ cores }) => cores },
  macs: { kind: 'texts', of: ({ macs }) => macs, folds: true },
  labels: { kind: 'map', of: ({ labels }) => labels },
  time: { kind: 'time', of: ({ ms }) => ms },
};

const thing: Thing = {
  name: 'web-1',
  rack: 'racks/r1',
  state: 3,
  on: true,
  cores: 8,
  macs: ['52:54:00:00:00:0a'],
  labels: { site: 'fra 1', 'example.com/role': 'web', empty: '' },
  ms: Date.UTC(2026, 0, 31, 12),
};
const bare: Thing = {
  ...{ name: 'x', rack: '', state: 0, on: undefined, cores: undefined },
  ...{ macs: [], labels: {}, ms: undefined },
};

const matches = (filter: string, item = thing) => parseFilter(filter, fields).matches(item);

test.each([
  '',
  '  ',
  'name = web-1',
  'name = things/web-1',
  'name=web*',
  'name = *-1',
  'name = *eb-*',
  '-name = other',
  'name > web-0 AND name < web-2',
  'rack = r1',
  'spec.rack = racks/r1',
  'rack = r*',
  'state = available',
  'state = AVAILABLE',
  'state = HOST_STATE_AVAILABLE',
  'state != new',
  'state:*',
  'on = true AND cores >= 8 AND cores < 8.5',
  'macs:52:54:00:00:00:0A',
  'macs:52:54*',
  'labels.site = "fra 1"',
  "labels.site = 'fra 1'",
  'labels.example.com/role = web',
  'labels:site AND labels:empty AND labels:example.com/role',
  'labels.absent = ""',
  'time >= 2026-01-31T12:00:00Z AND time > 2026-01-31',
  'time < 2026-01-31T14:00:00+01:00',
  '(name = other OR name = web-1) AND NOT (on = false)',
  'NOT name = a AND NOT name = b',
  '((((name = web-1))))',
])('%j matches', (filter) => {
  expect(matches(filter)).toBe(true);
  if (filter.trim() !== '') expect(matches(`NOT (${filter})`)).toBe(false);
});

test.each([
  'state = new',
  'labels:nothing',
  'labels:toString',
  'labels.toString:*',
  'labels.empty:*',
  'name = web',
  'name = WEB-1',
  'macs:52:54:00:00:00:0b',
  'cores > 8',
  'NOT on = true',
])('%j does not match', (filter) => expect(matches(filter)).toBe(false));

test('an unset field equals no value, has no order, and differs from every value', () => {
  for (const filter of ['state = new', 'on = false', 'cores < 1', 'time < 2030-01-01', 'rack:*']) {
    expect([filter, matches(filter, bare)]).toEqual([filter, false]);
  }
  for (const filter of ['state != new', 'on != true', 'NOT cores < 1', 'rack = ""', '-labels:a']) {
    expect([filter, matches(filter, bare)]).toEqual([filter, true]);
  }
});

test.each([
  ['stat = new', 1, 'no field stat'],
  ['state = shiny', 9, 'available'],
  ['state', 6, 'has to follow'],
  ['state = ', 9, 'a value'],
  ['state = new rack = r1', 13, 'AND, OR or the end'],
  ['state = new and rack = r1', 13, 'AND, OR or the end'],
  ['state = new AND', 16, 'name of a field'],
  ['state = new AND OR', 17, 'name of a field'],
  ['on = true AND state = new OR state = gone', 27, 'parentheses'],
  ['(state = new', 13, '")"'],
  ['state = new)', 12, 'AND, OR or the end'],
  ['state < new', 7, 'no order'],
  ['on = yes', 6, 'true or false'],
  ['cores = eight', 9, 'a number'],
  ['time > yesterday', 8, 'a time'],
  ['time > 2026-02-31', 8, 'a time'],
  ['name = "web', 8, 'never closed'],
  ['name = w*b', 8, 'a star'],
  ['name = *', 8, 'name:*'],
  ['name == web', 7, 'quotation marks'],
  ['name = AND', 8, 'quotation marks'],
  ['name = pools/web', 8, 'things/ID'],
  ['name:web', 5, 'is for lists'],
  ['labels = a', 8, 'labels.KEY'],
  ['macs = 52:54', 6, 'macs:VALUE'],
  ['"web"', 1, 'name of a field'],
  ['é = 1', 1, 'no field é'],
  ['labels.site = "é" AND b = 1', 23, 'no field b'],
  [`${'('.repeat(33)}on = true${')'.repeat(33)}`, 33, '32 deep'],
  ['x'.repeat(2_049), 2_049, '2048'],
])('%j is refused at character %i', (filter, position, what) => {
  expect(() => matches(filter)).toThrow(FilterError);
  try {
    matches(filter);
  } catch (error) {
    expect(error).toMatchObject({ position, message: expect.stringContaining(what) });
  }
});

test('the values that a match requires are listed, and no others', () => {
  const required = (filter: string) => [...parseFilter(filter, fields).required];
  expect(required('rack = r1')).toEqual([['rack', 'racks/r1']]);
  expect(required('on = true AND (spec.rack = "r1" AND cores > 1)')).toEqual([
    ['rack', 'racks/r1'],
  ]);
  for (const filter of ['rack = r*', 'rack != r1', 'NOT rack = r1', 'rack = a OR rack = b']) {
    expect(required(filter)).toEqual([]);
  }
});

type Tree =
  | { readonly leaf: string; readonly value: boolean }
  | { readonly joint: 'AND' | 'OR'; readonly of: readonly Tree[] }
  | { readonly not: Tree };

const leaves = ['name = web-1', 'cores > 8', 'labels.site = "fra 1"', 'macs:*', 'on != true'];
const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small' },
    fc.constantFrom(...leaves).map((leaf) => ({ leaf, value: matches(leaf) })),
    fc.record({
      joint: fc.constantFrom('AND' as const, 'OR' as const),
      of: fc.array(tie('tree'), { minLength: 1, maxLength: 3 }),
    }),
    fc.record({ not: tie('tree') }),
  ),
}));

function written(each: Tree): string {
  if ('leaf' in each) return each.leaf;
  if ('not' in each) return `NOT (${written(each.not)})`;
  return each.of.map((one) => `(${written(one)})`).join(` ${each.joint} `);
}

function valueOf(each: Tree): boolean {
  if ('leaf' in each) return each.value;
  if ('not' in each) return !valueOf(each.not);
  return each.joint === 'AND' ? each.of.every(valueOf) : each.of.some(valueOf);
}

test('a filter means what its tree says', () => {
  fc.assert(
    fc.property(tree, (each) => {
      const text = written(each);
      fc.pre(text.length <= 2_048);
      expect(matches(text)).toBe(valueOf(each));
    }),
  );
});

test('any text is a filter or is refused with a position in it', () => {
  const piece = fc.constantFrom(
    ...['name', 'state', 'labels.', 'rack', ' ', ' ', '=', ':', '!=', '<', '(', ')', '-', '*'],
    ...['"', "'", '\\', 'AND', 'OR', 'NOT', 'new', 'true', '8', '2026-01-01', ',', '\u{1f525}'],
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(piece).map((all) => all.join('')),
      ),
      (text) => {
        try {
          parseFilter(text, fields).matches(thing);
        } catch (error) {
          expect(error).toBeInstanceOf(FilterError);
          expect((error as FilterError).position).toBeLessThanOrEqual([...text].length + 1);
        }
      },
    ),
    { numRuns: 2_000 },
  );
});
