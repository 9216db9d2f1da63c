import { expect, test } from 'vitest';
import { findNames, findSharedNames } from './names.ts';

const namesIn = (path: string, text: string): string[] =>
  findNames({ path, text }).map(({ line, message }) => `${line} ${message}`);

test.each([
  'packages/dhcp/src/util.ts',
  'packages/dhcp/src/packet-helpers.ts',
  'packages/common/src/packet.ts',
])('the check finds a file called %s', (path) => {
  expect(namesIn(path, '')).toHaveLength(1);
});

test.each([
  'class SessionManager {',
  'const hostInfo = 1;',
  'export function parseData(text: string) {',
  'type CommonOptions = object;',
  'const HOST_INFO = 1;',
  '  readonly #data: string;',
])('the check finds a declaration: %s', (text) => {
  expect(namesIn('packages/dhcp/src/packet.ts', `\n${text}`)).toEqual([
    expect.stringMatching(/^2 /),
  ]);
});

test.each([
  'function refuse(words: string): Error {',
  '  readonly lastWords?: string;',
  'function closedWords(name: string): string {',
  "const words = 'nothing is here';",
  'return { words: `${count} hosts` };',
])('the check finds a text called words: %s', (text) => {
  expect(namesIn('packages/dhcp/src/packet.ts', `\n${text}`)).toEqual([
    expect.stringMatching(/^2 .* is one text/),
  ]);
});

test('the check takes lists of words', () => {
  const text = 'const words: string[] = [];\nfunction use(keyWords: readonly string[]) {}';
  expect(namesIn('packages/dhcp/src/packet.ts', text)).toEqual([]);
});

test('the check takes names that only contain the letters, imports and texts', () => {
  const text = [
    "import { type ErrorInfo, helper } from 'elsewhere';",
    "const utility = 'data';",
    'const database = 1; // info',
  ].join('\n');
  expect(namesIn('packages/dhcp/src/information.ts', text)).toEqual([]);
});

test('the check takes the term of a standard where the standard is spoken', () => {
  expect(namesIn('packages/tftp/src/packet.ts', 'function encodeData() {}')).toEqual([]);
  expect(namesIn('packages/tftp/src/packet.ts', 'function encodeInfo() {}')).toHaveLength(1);
});

test('the check finds a type whose name another file exports, in whatever workspace', () => {
  const files = [
    { path: 'agent/src/a.ts', text: 'export interface Told {}' },
    { path: 'agent/src/b.ts', text: '\nexport type Told = string;' },
    { path: 'controlplane/src/a.ts', text: 'export class Told {}' },
  ];
  const message = expect.stringContaining('agent/src/a.ts');
  expect(findSharedNames(files)).toEqual([
    { path: 'agent/src/b.ts', line: 2, message },
    { path: 'controlplane/src/a.ts', line: 1, message },
  ]);
});

test('the same name may stand in a test, and unexported', () => {
  const files = [
    { path: 'agent/src/a.ts', text: 'export interface Told {}' },
    { path: 'agent/src/a.test.ts', text: 'export interface Told {}' },
    { path: 'agent/src/b.ts', text: 'interface Told {}\nexport type { Told } from "./a.ts";' },
  ];
  expect(findSharedNames(files)).toEqual([]);
});
