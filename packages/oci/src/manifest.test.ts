import fc from 'fast-check';
import { expect, test } from 'vitest';
import { digestOf } from './digest.ts';
import { OciError } from './failure.ts';
import { choosePlatform, parseConfig, parseManifest } from './manifest.ts';

const bytesOf = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));
const digest = digestOf(new Uint8Array());
const layer = (mediaType: string) => ({ mediaType, digest, size: 32 });
const config = { mediaType: 'application/vnd.oci.image.config.v1+json', digest, size: 7 };
const gzip = 'application/vnd.oci.image.layer.v1.tar+gzip';

/** The example of image-spec 1.1, with a layer of each kind. */
const manifest = {
  schemaVersion: 2,
  mediaType: 'application/vnd.oci.image.manifest.v1+json',
  config,
  layers: [
    layer('application/vnd.oci.image.layer.v1.tar'),
    layer(gzip),
    layer('application/vnd.oci.image.layer.v1.tar+zstd'),
    layer('application/vnd.docker.image.rootfs.diff.tar.gzip'),
  ],
};

function problemOf(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    if (error instanceof OciError) return `${error.kind}: ${error.message}`;
    throw error;
  }
  return 'none';
}

test('the reader reads a manifest with the compression of each layer', () => {
  const read = parseManifest(bytesOf(manifest));
  expect(read).toMatchObject({ kind: 'manifest', config: { digest, sizeBytes: 7 } });
  const layers = read.kind === 'manifest' ? read.layers : [];
  expect(layers.map(({ compression }) => compression)).toEqual(['none', 'gzip', 'zstd', 'gzip']);
});

test.each([
  [{ ...manifest, schemaVersion: 1 }, 'malformed: the manifest is not of schema version 2'],
  [{ schemaVersion: 2 }, 'malformed: the manifest names neither layers nor manifests'],
  [{ ...manifest, manifests: [] }, 'or both'],
  [{ ...manifest, config: { ...config, mediaType: 'text/plain' } }, 'this is no image'],
  [{ ...manifest, layers: [layer('text/plain')] }, 'which is not known here'],
  [{ ...manifest, layers: [{ ...layer(gzip), size: -1 }] }, 'has no size'],
  [{ ...manifest, layers: [{ ...layer(gzip), size: 1.5 }] }, 'has no size'],
  [{ ...manifest, layers: [{ ...layer(gzip), digest: 'sha256:x' }] }, 'only sha256 is taken'],
  [{ ...manifest, layers: 'all' }, '"layers" is no list'],
  [{ ...manifest, layers: Array(200).fill(layer(gzip)) }, 'tooLarge: "layers" has 200 items'],
  [[], 'the manifest is no object'],
])('the reader refuses a manifest %#', (value, problem) => {
  expect(problemOf(() => parseManifest(bytesOf(value)))).toContain(problem);
});

test('the reader refuses a manifest cut anywhere', () => {
  const whole = bytesOf(manifest);
  for (let length = 0; length < whole.length; length += 1) {
    expect(problemOf(() => parseManifest(whole.subarray(0, length)))).toMatch(/^malformed/);
  }
});

const entry = (os: string, architecture: string, variant?: string) => ({
  ...layer('application/vnd.oci.image.manifest.v1+json'),
  digest: digestOf(Buffer.from(`${os}${architecture}${variant}`)),
  platform: { os, architecture, variant },
});

test('the reader chooses the first image for linux and the architecture', () => {
  const manifests = [
    entry('windows', 'amd64'),
    entry('linux', 'arm64', 'v9'),
    entry('linux', 'arm64', 'v8'),
    entry('linux', 'amd64'),
    { ...layer('application/vnd.oci.image.manifest.v1+json') },
  ];
  const index = parseManifest(bytesOf({ schemaVersion: 2, manifests }));
  if (index.kind !== 'index') throw new Error('no index');
  expect(choosePlatform(index, 'amd64').digest).toBe(manifests[3]?.digest);
  expect(choosePlatform(index, 'arm64').digest).toBe(manifests[2]?.digest);
  const other = { ...index, manifests: index.manifests.slice(0, 1) };
  expect(problemOf(() => choosePlatform(other, 'amd64'))).toBe(
    'noPlatform: the image is not there for linux/amd64: windows/amd64 is',
  );
});

const imageConfig = {
  os: 'linux',
  architecture: 'amd64',
  config: {
    User: '0',
    Env: ['PATH=/bin', 'A=1=2', 'A=3', '__proto__=x'],
    Entrypoint: ['/bin/check'],
    Cmd: null,
    WorkingDir: '/work',
  },
  rootfs: { type: 'layers', diff_ids: [digest] },
};

test('the reader reads what a configuration says about running the image', () => {
  const read = parseConfig(bytesOf(imageConfig), 1);
  expect(read).toMatchObject({
    user: '0',
    entrypoint: ['/bin/check'],
    command: [],
    directory: '/work',
    diffIds: [digest],
  });
  const names = Object.entries(read.environment);
  expect(names).toEqual([
    ['PATH', '/bin'],
    ['A', '3'],
    ['__proto__', 'x'],
  ]);
});

test.each([
  [{ ...imageConfig, config: { Env: ['=x'] } }, 1, 'not NAME=value'],
  [{ ...imageConfig, config: { Entrypoint: '/bin/sh' } }, 1, '"Entrypoint" is no list'],
  [{ ...imageConfig, config: { Cmd: [1] } }, 1, '"Cmd" holds something that is no text'],
  [{ ...imageConfig, rootfs: {} }, 1, 'the manifest names 1 layers, its configuration 0'],
  [{ ...imageConfig, rootfs: { diff_ids: ['x'] } }, 1, 'no SHA-256'],
])('the reader refuses a configuration %#', (value, layers, problem) => {
  expect(problemOf(() => parseConfig(bytesOf(value), layers))).toContain(problem);
});

test('any JSON is read or refused by our own error', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
      problemOf(() => parseManifest(bytesOf({ schemaVersion: 2, config: a, layers: b })));
      problemOf(() => parseManifest(bytesOf({ schemaVersion: 2, manifests: [a, b] })));
      problemOf(() => parseConfig(bytesOf({ config: a, rootfs: b }), 0));
      problemOf(() => parseConfig(bytesOf({ config: { Env: a, Cmd: b }, rootfs: {} }), 0));
    }),
  );
});
