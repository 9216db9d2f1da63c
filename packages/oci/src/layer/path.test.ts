import fc from 'fast-check';
import { expect, test } from 'vitest';
import { OciError } from '../failure.ts';
import { layerTarget, pathParts } from './path.ts';

test.each([
  ['./', { kind: 'root' }],
  ['.', { kind: 'root' }],
  ['a', { kind: 'entry', folder: [], name: 'a' }],
  ['./a//./b/', { kind: 'entry', folder: ['a'], name: 'b' }],
  ['a/..b', { kind: 'entry', folder: ['a'], name: '..b' }],
  ['a/.wh.b', { kind: 'whiteout', folder: ['a'], name: 'b' }],
  ['a/.wh..wh..opq', { kind: 'opaque', folder: ['a'] }],
  ['.wh..wh..opq', { kind: 'opaque', folder: [] }],
  ['.wh..wh.plnk', { kind: 'ignored' }],
])('the name %s leads to its place in the layer', (name, place) => {
  expect(layerTarget(name)).toEqual(place);
});

test.each([
  ['/etc/passwd', 'absolute'],
  ['//etc', 'absolute'],
  ['..', 'with ".."'],
  ['a/../../b', 'with ".."'],
  ['a/..', 'with ".."'],
  ['a\0b', 'NUL'],
  ['.wh...', 'no whiteout'],
  ['.wh.', 'no whiteout'],
  ['.wh..', 'no whiteout'],
  ['.wh.a/b', 'a whiteout'],
  ['a'.repeat(256), 'too long'],
  ['a/'.repeat(2_100), 'too long'],
])('the name %s leads nowhere', (name, why) => {
  expect(() => layerTarget(name)).toThrow(why);
});

test('no name leads out', () => {
  const parts = fc.array(fc.constantFrom('..', '.', '', 'a', '.wh.', '.wh..', 'b'), {
    maxLength: 6,
  });
  fc.assert(
    fc.property(parts, (made) => {
      let found: string[];
      try {
        found = pathParts(made.join('/'));
      } catch (error) {
        expect(error).toBeInstanceOf(OciError);
        return;
      }
      expect(found.some((part) => ['', '.', '..'].includes(part) || part.includes('/'))).toBe(
        false,
      );
    }),
  );
});
