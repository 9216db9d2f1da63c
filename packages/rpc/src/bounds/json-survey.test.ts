import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jsonDepthMax, surveyJson } from './json-survey.ts';

const wide = { bytesMax: 1_000_000, elementsMax: 1_000_000 };
const of = (text: string, limits = wide) => surveyJson(Buffer.from(text), limits);

/** Values in a parsed JSON text, itself left out. */
function valuesIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const inner: unknown[] = Array.isArray(value) ? value : Object.values(value);
  return inner.reduce((sum: number, each) => sum + 1 + valuesIn(each), 0);
}

describe('the survey of a JSON text', () => {
  test('never counts less than it holds', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), (text) => {
        const found = of(text);
        expect(found).toBeTypeOf('number');
        expect(found).toBeGreaterThanOrEqual(valuesIn(JSON.parse(text)));
      }),
    );
  });

  test('takes brackets and commas in texts for texts, escaped quotes included', () => {
    expect(of(String.raw`{"a":"[[[,,,\"[[,\\"}`)).toBe(1);
  });

  test('ends at the depth that messages may have', () => {
    expect(of('['.repeat(jsonDepthMax))).toBe(jsonDepthMax);
    expect(of('[{"a":'.repeat(jsonDepthMax))).toMatchObject({ limit: 'depth', most: jsonDepthMax });
  });

  test('ends at the number of elements, and at the size, that a method takes', () => {
    expect(of(`[${'1,'.repeat(20)}1]`, { ...wide, elementsMax: 10 })).toEqual({
      ...{ limit: 'elements', found: 11, most: 10 },
    });
    expect(of('[1]', { ...wide, bytesMax: 2 })).toEqual({ limit: 'bytes', found: 3, most: 2 });
  });
});
