/** Documents of a shape that no program of ours makes: each is refused by its path, and why. */
import { expect, test } from 'vitest';
import {
  base64Text,
  boolean,
  byKind,
  canonicalJson,
  integer,
  list,
  matching,
  mustBeCanonical,
  nullable,
  object,
  oneOf,
  parseJson,
  type Shape,
  ShapeError,
  sha256Text,
  text,
  textMap,
  timestamp,
} from './shape.ts';

/** "path: message" of the refusal; "" if there is none. */
function refusal(shape: Shape<unknown>, value: unknown, path = 'at'): string {
  try {
    shape(value, path);
    return '';
  } catch (error) {
    if (!(error instanceof ShapeError)) throw error;
    expect(error.path).toBe(error.message.startsWith(`${error.path}: `) ? error.path : '');
    return error.message;
  }
}

test.each<[string, Shape<unknown>, readonly unknown[], readonly unknown[]]>([
  ['a text', text(3), ['', 'abc'], ['abcd', 1, null, undefined, ['a'], {}]],
  ['a pattern', matching(/^a+$/, 'some a'), ['a'], ['', 'b', 1, ['a'], null]],
  ['a truth value', boolean, [true, false], [0, 1, 'true', null, undefined]],
  ['a whole number', integer(2), [2, 3, 2 ** 53 - 1], [1, 2.5, 2 ** 53, Number.NaN, '2']],
  ['a count', integer(), [0, -0], [-1, Number.POSITIVE_INFINITY]],
  ['a choice', oneOf(['a', null]), ['a', null], ['b', '', undefined, 0]],
  ['a value or none', nullable(text(1)), [null, 'a'], [undefined, 'ab', 0]],
  ['a list', list(boolean, 2), [[], [true], [true, false]], [{}, 'ab', null, [1]]],
  [
    'a map',
    textMap(2, 1),
    [{}, { a: '' }, { a: 'b', c: 'd' }],
    [[], null, 'a', { a: 'bc' }, { a: 1 }],
  ],
  ['an object', object({ a: boolean }), [{ a: true }], [{}, { a: 1 }, { a: true, b: 1 }, [], null]],
  [
    'a SHA-256',
    sha256Text,
    ['0f'.repeat(32)],
    ['0F'.repeat(32), '0f'.repeat(31), `x${'0f'.repeat(32)}`],
  ],
  [
    'base64',
    base64Text,
    ['', 'AAAA', 'AA==', 'AAA='],
    ['A', 'AA', 'AAA', 'AA=A', 'AAAA=', '-AAA', ' AAAA'],
  ],
  [
    'a time',
    timestamp,
    ['2026-01-31T12:00:00.000Z'],
    ['2026-01-31T12:00:00Z', '2026-01-31 12:00:00.000Z', '2026-01-31T12:00:00.000+00:00'],
  ],
])('%s is what it says, and nothing that resembles it', (_, shape, taken, refused) => {
  for (const value of taken) expect([value, refusal(shape, value)]).toEqual([value, '']);
  for (const value of refused) expect(refusal(shape, value)).toMatch(/^at/);
});

test.each<[string, Shape<unknown>, unknown]>([
  ['at: 4 characters, at most 3 allowed', text(3), 'abcd'],
  ['at: a text, not an object', text(3), {}],
  ['at: a text, not a list', text(3), []],
  ['at: a text, not nothing', text(3), undefined],
  ['at: a text, not null', text(3), null],
  [`at: true or false, not "${'x'.repeat(40)}"`, boolean, 'x'.repeat(50)],
  ['at: a whole number of at least 2, not 1', integer(2), 1],
  ['at: 3 items, at most 2 allowed', list(boolean, 2), [true, true, true]],
  ['at[1]: true or false, not 0', list(boolean, 2), [true, 0]],
  ['at: 3 entries, at most 2 allowed', textMap(2, 1), { a: '', b: '', c: '' }],
  ['at.b: 2 characters, at most 1 allowed', textMap(2, 1), { a: '', b: 'bb' }],
  ['at.b: no field of this format', object({ a: boolean }), { b: true }],
  ['at.a: missing', object({ a: boolean }), {}],
  ['at.a: missing', object({ a: boolean }), Object.create({ a: true })],
  ['at.a.b: true or false, not 1', object({ a: object({ b: boolean }) }), { a: { b: 1 } }],
])('a refusal says where and what: %s', (told, shape, value) => {
  expect(refusal(shape, value)).toBe(told);
});

test('a path begins with the first field of the document', () => {
  const shape = object({ a: list(object({ b: boolean }), 9) });
  expect(refusal(shape, { a: [{ b: true }, { b: 1 }] }, '')).toBe('a[1].b: true or false, not 1');
  expect(refusal(shape, { c: 1 }, '')).toBe('c: no field of this format');
  expect(refusal(shape, [], '')).toBe('an object, not a list');
});

test('the output has the field order of its shape, and a map that of its keys', () => {
  const shape = object({ b: boolean, a: textMap(9, 9) });
  const read = shape({ a: { z: '1', y: '2', x: '3' }, b: true }, '');
  expect(JSON.stringify(read)).toBe('{"b":true,"a":{"x":"3","y":"2","z":"1"}}');
});

test('a union is told by the kinds that it has, not by what every object has', () => {
  const shape = byKind({ one: object({ kind: oneOf(['one']), a: boolean }) });
  expect(shape({ kind: 'one', a: true }, 'at')).toEqual({ kind: 'one', a: true });
  for (const kind of ['two', 'toString', 'constructor', 1, undefined, null, ['one']]) {
    expect(refusal(shape, { kind, a: true })).toMatch(/^at\.kind: one of one, not /);
  }
  expect(refusal(shape, { kind: 'one' })).toBe('at.a: missing');
  expect(refusal(shape, null)).toBe('at: an object, not null');
});

const bytesOf = (written: string) => new TextEncoder().encode(written);

test('a text that is no JSON, or no UTF-8, is refused as such', () => {
  const parse = (bytes: Uint8Array) => () => parseJson(bytes, boolean);
  expect(parseJson(bytesOf('true'), boolean)).toBe(true);
  expect(parse(bytesOf('tru'))).toThrow(new ShapeError('', 'no JSON text'));
  expect(parse(bytesOf(''))).toThrow('no JSON text');
  expect(() => parseJson(Uint8Array.of(0x22, 0xff, 0x22), text(9))).toThrow('no JSON text');
  expect(parse(bytesOf('1'))).toThrow('true or false, not 1');
});

test('only one form of a value is canonical, and the first other byte is named', () => {
  const shape = object({ a: boolean });
  const value = { a: true };
  expect(new TextDecoder().decode(canonicalJson(value, shape))).toBe('{\n  "a": true\n}\n');
  const check = (written: string) => () => mustBeCanonical(bytesOf(written), value, shape);
  expect(check('{\n  "a": true\n}\n')).not.toThrow();
  expect(check('{\n  "a": true\n}')).toThrow('not in canonical form from byte 15 on');
  expect(check('{\n  "a": true\n}\n\n')).toThrow('not in canonical form from byte 16 on');
  expect(check('{"a": true}')).toThrow('not in canonical form from byte 1 on');
});
