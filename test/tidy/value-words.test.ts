import { expect, test } from 'vitest';
import { isTestCode, isTypeScript, readSources, repositoryPaths } from './sources.ts';
import { findValueWords, namesThatStay } from './value-words.ts';

const code = readSources(repositoryPaths().filter(isTypeScript));

test('no function, field or local has a name with a word that the glossary replaces', () => {
  expect(code.flatMap(findValueWords)).toEqual([]);
});

test.each([
  ['const told = 1;', 'told'],
  ['function placeOf(text: string) {', 'placeOf'],
  ['  readonly #standing = new Map();', 'standing'],
  ['  #stood(): boolean {', 'stood'],
  ['let lookedAtMs = 0;', 'lookedAtMs'],
  ['class LookingUp {', 'LookingUp'],
  ['const isPlaced = true;', 'isPlaced'],
  ['function sightingOf(host: Host) {', 'sightingOf'],
  ['  queuePlaces: number;', 'queuePlaces'],
  ['const run = (where: Rack | Fleet) => 1;', 'where'],
  ['const { world, ...others } = read();', 'world'],
  ['items.map((door) => door.port);', 'door'],
  ['  async #lookAt(key: string): Promise<void> {', 'lookAt'],
  ["  readonly what: 'read' | 'write';", 'what'],
])('a replaced word is found in %s', (text, name) => {
  const [finding] = findValueWords({ path: 'agent/src/some.ts', text });
  expect(finding?.message).toContain(`"${name}"`);
});

test.each([
  ['a member of another object', 'message.place.told();'],
  ['a key of an object literal', 'log.warn({ where: address, what: kind }, text);'],
  ['a text', "const words = 'what the host told';"],
  ['a comment', '// where the door is'],
  ['a longer word', 'const replaced = returned + outlook + outstanding + foresight;'],
  ['an exception', 'const { queuePlace } = message;'],
])('no replaced word is found in %s', (_, text) => {
  expect(findValueWords({ path: 'agent/src/some.ts', text })).toEqual([]);
});

test('a replaced word is found in markup only where it is a name', () => {
  const found = (text: string) => findValueWords({ path: 'packages/console/src/some.tsx', text });
  expect(found('  <p>Say what counts, then look at it.</p>')).toEqual([]);
  expect(found('export function Loading({ what }: Props) {')).toHaveLength(1);
});

test('a test may use every word', () => {
  expect(findValueWords({ path: 'agent/src/some.test.ts', text: 'const told = 1;' })).toEqual([]);
});

test('each name that stays is one that production code uses', () => {
  const production = code.filter(({ path }) => !isTestCode(path));
  const unused = namesThatStay.filter(({ name, path: files = /^/ }) => {
    const used = new RegExp(`\\b${name}\\b`);
    return !production.some(({ path, text }) => files.test(path) && used.test(text));
  });
  expect(unused).toEqual([]);
});
