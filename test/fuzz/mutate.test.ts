import { seededRandom } from '@rackwright/sim';
import { expect, test } from 'vitest';
import { makeMutator } from './mutate.ts';
import { mutateJson, valueSpans } from './mutate-json.ts';
import { reduce } from './reduce.ts';

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const seed = encode('{"name":"value","list":[1,{"a":null}],"é":true}');

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function inputsOf(seedNumber: number): string[] {
  const mutate = makeMutator({ form: 'json', tokens: [encode('Members')], inputBytesMax: 4_096 });
  const random = seededRandom(seedNumber);
  return Array.from({ length: 500 }, () => Buffer.from(mutate(seed, random, seed)).toString('hex'));
}

test('mutations are the same for the same seed, differ, and are no longer than the limit', () => {
  const first = inputsOf(1);
  expect(inputsOf(1)).toEqual(first);
  expect(inputsOf(2)).not.toEqual(first);
  expect(new Set(first).size).toBeGreaterThan(400);
  expect(Math.max(...first.map((hex) => hex.length / 2))).toBeLessThanOrEqual(4_096);
});

test('a mutation leaves its input as it was', () => {
  const mutate = makeMutator({ form: 'json', tokens: [], inputBytesMax: 4_096 });
  const random = seededRandom(5);
  let input = seed;
  for (let round = 0; round < 200; round += 1) {
    const before = Buffer.from(input).toString('hex');
    const next = mutate(input, random, seed);
    expect(Buffer.from(input).toString('hex')).toBe(before);
    expect(next.constructor).toBe(Uint8Array);
    input = next;
  }
});

test('mutations of JSON leave it JSON, but for those of the whole text', () => {
  const random = seededRandom(3);
  const texts = Array.from({ length: 500 }, () => decode(mutateJson(seed, random, []) ?? seed));
  expect(texts.filter(isJson).length).toBeGreaterThan(450);
  expect(texts.some((text) => text.includes('"__proto__"'))).toBe(true);
});

test('a mutation of lines changes the JSON of one of them', () => {
  const lines = encode('GET /a {"x":1}\nGET /b {"y":2}');
  const random = seededRandom(4);
  for (let round = 0; round < 50; round += 1) {
    expect(decode(mutateJson(lines, random, []) ?? lines)).toMatch(/^GET \/a [^]*\nGET \/b /);
  }
});

test('every value of a JSON text is found, keys apart', () => {
  const text = '{"a":[1,{"b":"x,y"}],"c":{}}';
  const values = valueSpans(text).map(({ from, to }) => text.slice(from, to));
  expect(values).toEqual(['1', '"x,y"', '{"b":"x,y"}', '[1,{"b":"x,y"}]', '{}', text]);
});

test('a reduction keeps what fails, and nothing else', async () => {
  const input = encode('aaaaaaaaaaXbbbbbbbbYcccccccc');
  const fails = async (one: Uint8Array) => /X.*Y/.test(decode(one));
  const limits = { tries: 1_000, goesOn: () => true };
  expect(decode(await reduce(input, fails, limits))).toBe('XY');
  expect(decode(await reduce(encode('XaaaaY'), fails, { ...limits, tries: 0 }))).toBe('XaaaaY');
});
