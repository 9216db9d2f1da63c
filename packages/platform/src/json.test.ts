import { expect, test } from 'vitest';
import { parsedJson } from './json.ts';

test('the parser returns the value of a JSON text, and undefined for any other text', () => {
  expect(parsedJson('{"a":[1,null,"x"]}')).toEqual({ a: [1, null, 'x'] });
  expect(parsedJson('null')).toBeNull();
  expect(parsedJson('false')).toBe(false);
  for (const text of ['', '{', 'undefined', '{"a":1} x', "{'a':1}"]) {
    expect(parsedJson(text), text).toBeUndefined();
  }
});
