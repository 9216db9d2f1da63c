import fc from 'fast-check';
import { expect, test } from 'vitest';
import { digestOf } from './digest.ts';
import { type ImageReference, isRegistry, parseReference } from './reference.ts';

const digest = digestOf(new Uint8Array());

test('the parser reads registry, port, repository, tag and digest', () => {
  expect(parseReference(`registry.example.org:5000/tools/check:v1@${digest}`)).toEqual({
    kind: 'ok',
    reference: {
      registry: 'registry.example.org:5000',
      repository: 'tools/check',
      tag: 'v1',
      digest,
    },
  });
});

test.each([
  ['tools/check', 'must begin with its registry'],
  ['alpine', 'must begin with its registry'],
  ['Registry.example.org/a', 'must begin with its registry'],
  ['registry.example.org:0/a', 'must begin with its registry'],
  ['registry.example.org:70000/a', 'must begin with its registry'],
  ['user@registry.example.org/a', 'a digest that is not'],
  ['-x.example.org/a', 'must begin with its registry'],
  ['registry.example.org/', 'has the repository ""'],
  ['registry.example.org/Tools', 'has the repository "Tools"'],
  ['registry.example.org/a//b', 'has the repository'],
  ['registry.example.org/../b', 'has the repository'],
  ['registry.example.org/a?b', 'has the repository'],
  ['registry.example.org/a:b:c', 'has a tag'],
  ['registry.example.org/a:', 'has a tag'],
  ['registry.example.org/a@sha256:abc', 'a digest that is not'],
  [`registry.example.org/a@${digest.toUpperCase()}`, 'a digest that is not'],
  [`registry.example.org/a@sha512:${'a'.repeat(128)}`, 'a digest that is not'],
  [`registry.example.org/a@${digest}@${digest}`, 'more than one "@"'],
  [`registry.example.org/${'a'.repeat(250)}`, 'has the repository'],
  ['x'.repeat(1_000), 'has 1000 characters'],
])('the parser refuses %s', (text, problem) => {
  expect(parseReference(text)).toEqual({
    kind: 'bad',
    problem: expect.stringContaining(problem),
  });
});

test.each([
  ['localhost', true],
  ['localhost:5000', true],
  ['box:5000', true],
  ['box', false],
  ['10.0.0.1:5000', true],
  ['[fd00::1]:5000', true],
  ['registry.example.org/a', false],
  ['http://registry.example.org', false],
])('the parser takes %s for a registry: %s', (text, is) => {
  expect(isRegistry(text)).toBe(is);
});

/** The text that a reference was read from. */
function formatReference({ registry, repository, tag, digest: named }: ImageReference): string {
  const tagPart = tag === undefined ? '' : `:${tag}`;
  return `${registry}/${repository}${tagPart}${named === undefined ? '' : `@${named}`}`;
}

test('a reference is written as it was read, and any text is read or refused', () => {
  const part = fc.stringMatching(/^[a-z0-9]{1,8}$/);
  const made = fc.tuple(part, fc.array(part, { minLength: 1, maxLength: 4 }));
  fc.assert(
    fc.property(made, ([host, parts]) => {
      const text = `${host}.example.org:5000/${parts.join('/')}:t@${digest}`;
      const result = parseReference(text);
      expect(result.kind === 'ok' && formatReference(result.reference)).toBe(text);
    }),
  );
  fc.assert(
    fc.property(fc.string(), (text) => {
      const result = parseReference(text);
      if (result.kind === 'ok') expect(formatReference(result.reference)).toBe(text);
    }),
  );
});
