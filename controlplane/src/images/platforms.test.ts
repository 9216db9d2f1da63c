import { digestOf } from '@rackwright/oci';
import { expect, test } from 'vitest';
import { areSamePlatforms, platformsOf } from './platforms.ts';

const digest = (letter: string) => digestOf(Buffer.from(letter));

/** An index that lists these manifests, as a registry has it. */
function indexOf(entries: Readonly<Record<string, string>>, annotations = {}): Uint8Array {
  const mediaType = 'application/vnd.oci.image.manifest.v1+json';
  const manifests = Object.entries(entries).map(([platform, letter]) => {
    const [os = '', architecture = ''] = platform.split('/');
    return { mediaType, size: 100, digest: digest(letter), platform: { os, architecture } };
  });
  const index = { schemaVersion: 2, mediaType: 'application/vnd.oci.image.index.v1+json' };
  return Buffer.from(JSON.stringify({ ...index, manifests, annotations }));
}

const platforms = (entries: Readonly<Record<string, string>>, annotations = {}) => {
  const bytes = indexOf(entries, annotations);
  return platformsOf(digestOf(bytes), bytes);
};

const plain = (letter: string) => ({ '': digest(letter) });

test('an index is what it lists for the platforms of hosts, whatever else it lists', () => {
  const both = { 'linux/amd64': 'a', 'linux/arm64': 'b' };
  expect(platforms(both)).toEqual({ amd64: digest('a'), arm64: digest('b') });
  expect(platforms({ 'linux/amd64': 'a', 'unknown/unknown': 'x' })).toEqual({ amd64: digest('a') });
  expect(platforms({ 'windows/amd64': 'w' })).toEqual({});
  expect(platformsOf(digest('z'), Buffer.from('no JSON'))).toEqual({});
});

test.each([
  ['other annotations', platforms({ 'linux/amd64': 'a' }, { built: 'today' }), true],
  ['other attestations', platforms({ 'linux/amd64': 'a', 'unknown/unknown': 'y' }), true],
  ['another platform beside it', platforms({ 'linux/amd64': 'a', 'linux/arm64': 'b' }), true],
  ['the manifest itself', plain('a'), true],
  ['another manifest', platforms({ 'linux/amd64': 'c' }), false],
  ['another manifest itself', plain('c'), false],
  ['the platform no more', platforms({ 'linux/arm64': 'a' }), false],
  ['nothing that is known', {}, false],
])('an index of one platform is compared with %s', (_what, now, isSame) => {
  expect(areSamePlatforms(platforms({ 'linux/amd64': 'a' }), now)).toBe(isSame);
  if (!isSame) return;
  expect(areSamePlatforms({}, now), 'nothing was known').toBe(false);
});

test('one manifest, and then an index, is the same only where that lists no other', () => {
  expect(areSamePlatforms(plain('a'), platforms({ 'linux/amd64': 'a' }))).toBe(true);
  const more = platforms({ 'linux/amd64': 'a', 'linux/arm64': 'b' });
  expect(areSamePlatforms(plain('a'), more)).toBe(false);
});
