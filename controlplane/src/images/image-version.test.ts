import { digestOf, OciError, writeHostIndex, writeHostManifest } from '@rackwright/oci';
import { expect, test } from 'vitest';
import { versionOf } from './image-version.ts';

const disk = {
  digest: digestOf(Buffer.from('disk')),
  sizeBytes: 4,
  role: { role: 'disk' },
} as const;
const image = (version?: string): Buffer =>
  writeHostManifest({ layers: [disk], ...(version === undefined ? {} : { version }) });

const indexOf = (child: Buffer): Buffer =>
  writeHostIndex([{ digest: digestOf(child), sizeBytes: child.length, architecture: 'amd64' }]);

const nobody = () => Promise.reject(new Error('nothing is to be read'));

test('the version of a manifest is what it says, and nothing else is read', async () => {
  expect(await versionOf(image('12.4'), nobody)).toBe('12.4');
  expect(await versionOf(image(), nobody)).toBe('');
  expect(await versionOf(Buffer.from('no manifest'), nobody)).toBe('');
});

test('the version of an index that says none is that of the first image in it', async () => {
  const child = image('12.4');
  const asked: string[] = [];
  const read = (digest: string) => {
    asked.push(digest);
    return Promise.resolve(child);
  };
  expect(await versionOf(indexOf(child), read)).toBe('12.4');
  expect(asked).toEqual([digestOf(child)]);
});

test('an image that its registry does not give leaves the version out', async () => {
  const away = () => Promise.reject(new OciError('unreachable', 'nobody answers'));
  expect(await versionOf(indexOf(image('12.4')), away)).toBe('');
});
