import { describe, expect, test } from 'vitest';
import { type Digest, digestOf } from '../digest.ts';
import type { Architecture } from '../manifest.ts';
import { findHostImage } from './find.ts';
import { declaredBy, diskCompressions, diskFormats, mediaTypeOf, roleOf } from './media-type.ts';

const content = digestOf(Buffer.from('content'));
const [one, two, three] = ['1', '2', '3'].map((text) => digestOf(Buffer.from(text))) as [
  Digest,
  Digest,
  Digest,
];
const diskType = 'application/vnd.rackwright.disk.v1';
const layer = (mediaType: string, digest = one, annotations?: Record<string, unknown>) => ({
  ...{ mediaType, digest, size: 100 },
  ...(annotations === undefined ? {} : { annotations }),
});
const titled = (title: string, mediaType = 'application/octet-stream') =>
  layer(mediaType, one, { 'org.opencontainers.image.title': title });
const artifact = (layers: readonly unknown[], more = {}) => ({
  ...{ schemaVersion: 2, artifactType: diskType, layers },
  config: { mediaType: 'application/vnd.oci.empty.v1+json', digest: two, size: 2 },
  ...more,
});

/** A registry of manifests: answers the digest of the last one. */
function registryOf(...manifests: readonly ((digests: readonly Digest[]) => object)[]) {
  const blobs = new Map<Digest, Buffer>();
  const digests: Digest[] = [];
  for (const make of manifests) {
    const bytes = Buffer.from(JSON.stringify(make(digests)));
    const digest = digestOf(bytes);
    digests.push(digest);
    blobs.set(digest, bytes);
  }
  const root = digests.at(-1) ?? one;
  return (architecture: Architecture = 'amd64') =>
    findHostImage(root, architecture, async (digest) => blobs.get(digest) ?? Buffer.alloc(0));
}

const index = (...manifests: readonly object[]) => ({ schemaVersion: 2, manifests });
const manifestType = 'application/vnd.oci.image.manifest.v1+json';
const indexType = 'application/vnd.oci.image.index.v1+json';
const entry = (digest: Digest | undefined, architecture: string, more = {}) => ({
  ...{ mediaType: manifestType, digest, size: 10 },
  platform: { os: 'linux', architecture },
  ...more,
});

test('media types of ours say format and compression, there and back', () => {
  for (const format of diskFormats) {
    for (const compression of diskCompressions) {
      const role = { role: 'disk', format, compression } as const;
      expect(roleOf(mediaTypeOf(role))).toEqual(role);
    }
  }
  for (const role of ['kernel', 'initrd'] as const) {
    expect(roleOf(mediaTypeOf({ role }))).toEqual({ role });
  }
  expect(mediaTypeOf({ role: 'disk', format: 'raw', compression: 'zstd' })).toBe(
    'application/vnd.rackwright.disk.v1.raw+zstd',
  );
});

test.each([
  ['machine.x86_64.qemu.qcow2.zst', 'application/zstd', { format: 'qcow2', compression: 'zstd' }],
  ['disk.raw', 'application/octet-stream', { format: 'raw' }],
  ['disk.raw.xz', '', { format: 'raw', compression: 'xz' }],
  ['disk.IMG.GZ', '', { compression: 'gzip' }],
  ['disk.img', 'application/gzip', { compression: 'gzip' }],
  ['raw', 'application/x.disk+zstd', { compression: 'zstd' }],
  ['disk', 'application/octet-stream', {}],
])('the file %j of type %j is declared %j', (name, mediaType, declared) => {
  expect(declaredBy(name, mediaType)).toEqual(declared);
});

describe('an image of ours', () => {
  const annotations = {
    'dev.rackwright.content.size': '2000',
    'dev.rackwright.content.digest': content,
  };

  test('says all about its disk', async () => {
    const more = { annotations: { 'org.opencontainers.image.version': '12.9' } };
    const find = registryOf(() =>
      artifact([layer(`${diskType}.raw+zstd`, one, annotations)], more),
    );
    expect((await find()).image).toEqual({
      version: '12.9',
      disk: {
        ...{ format: 'raw', compression: 'zstd', architecture: undefined },
        blob: { mediaType: `${diskType}.raw+zstd`, digest: one, sizeBytes: 100 },
        ...{ contentBytes: 2_000, contentDigest: content },
      },
    });
  });

  test('may be a kernel and its ramdisks, or all three', async () => {
    const kernelArguments = { 'dev.rackwright.kernel.arguments': 'console=ttyS0' };
    const kernel = layer('application/vnd.rackwright.kernel.v1', one, kernelArguments);
    const initrds = [two, three].map((digest) =>
      layer('application/vnd.rackwright.initrd.v1', digest),
    );
    const netboot = (await registryOf(() => artifact([kernel, ...initrds]))()).image;
    expect(netboot).toMatchObject({
      netboot: {
        kernel: { digest: one },
        initrds: [{ digest: two }, { digest: three }],
        kernelArguments: 'console=ttyS0',
      },
    });
    expect(netboot.disk).toBeUndefined();
    const all = registryOf(() => artifact([kernel, initrds[0], layer(`${diskType}.qcow2`, three)]));
    expect((await all()).image).toMatchObject({ netboot: {}, disk: { format: 'qcow2' } });
  });

  const raw = layer(`${diskType}.raw`);
  const kernel = layer('application/vnd.rackwright.kernel.v1');
  const initrd = layer('application/vnd.rackwright.initrd.v1');
  test.each([
    ['two disks', [raw, raw], 'has 2 disks'],
    ['two kernels', [kernel, kernel], '2 kernels'],
    ['nine ramdisks', [kernel, ...Array(9).fill(initrd)], '9 ramdisks'],
    ['a ramdisk alone', [initrd], 'a ramdisk and no kernel'],
    ['a layer of another kind', [raw, titled('x')], 'application/octet-stream'],
    [
      'a size that is none',
      [layer(`${diskType}.raw`, one, { 'dev.rackwright.content.size': '-1' })],
      'is no number of bytes',
    ],
    [
      'a digest that is none',
      [layer(`${diskType}.raw`, one, { 'dev.rackwright.content.digest': 'md5:00' })],
      'is no SHA-256',
    ],
    [
      'a line break for its kernel',
      [layer(kernel.mediaType, one, { 'dev.rackwright.kernel.arguments': 'a\nb' })],
      '2048 plain characters',
    ],
    ['an annotation that is no text', [layer(`${diskType}.raw`, one, { x: 1 })], 'no text'],
  ])('an image with %s is refused', async (_, layers, text) => {
    const find = registryOf(() => artifact(layers));
    await expect(find()).rejects.toMatchObject({
      kind: 'malformed',
      message: expect.stringContaining(text),
    });
  });
});

describe('an image of somebody else', () => {
  test('is the one file that its single layer is', async () => {
    const pushed = titled('x.qcow2.xz', 'application/vnd.oci.image.layer.v1.tar');
    expect((await registryOf(() => artifact([pushed]))()).image.disk).toMatchObject({
      ...{ format: 'qcow2', compression: 'xz' },
      blob: { digest: one },
    });
  });

  test('is no disk when its layers are archives, or when there are many', async () => {
    const archive = layer('application/vnd.oci.image.layer.v1.tar+gzip');
    const kind = 'malformed';
    const container = registryOf(() => artifact([archive]))();
    await expect(container).rejects.toMatchObject({
      kind,
      message: expect.stringContaining('a container image, not a disk'),
    });
    const several = registryOf(() => artifact([archive, archive]))();
    await expect(several).rejects.toMatchObject({
      kind,
      message: expect.stringContaining('2 layers of other kinds'),
    });
  });
});

describe('an index', () => {
  const disk = (title: string) => () => artifact([titled(title)]);

  test('leads to the image of the platform, by either of its names', async () => {
    const find = registryOf(disk('a.raw'), disk('b.raw.gz'), ([amd, arm]) =>
      index(entry(amd, 'x86_64'), entry(arm, 'arm64')),
    );
    expect((await find('amd64')).image.disk).toMatchObject({ architecture: 'amd64' });
    expect((await find('arm64')).image.disk).toMatchObject({ compression: 'gzip' });
  });

  test('an index with several files for a platform leads to one that can be written', async () => {
    const typed = (digest: Digest | undefined, disktype: string) =>
      entry(digest, 'x86_64', { annotations: { disktype } });
    const find = registryOf(disk('a.vhdx'), disk('b.qcow2'), disk('c.raw'), ([vhdx, qcow2, raw]) =>
      index(typed(vhdx, 'hyperv'), typed(qcow2, 'qcow2'), typed(raw, 'raw')),
    );
    expect((await find()).image.disk).toMatchObject({ format: 'raw' });
    const other = registryOf(disk('a.vhdx'), ([vhdx]) => index(typed(vhdx, 'hyperv')));
    await expect(other()).rejects.toMatchObject({
      kind: 'noPlatform',
      message: expect.stringContaining('only as "hyperv"'),
    });
  });

  test('may stand in another one, and not in ever more', async () => {
    const nested = (digest: Digest | undefined) => ({ mediaType: indexType, digest, size: 10 });
    const wrap = (digests: readonly Digest[]) => index(nested(digests.at(-1)));
    const first = ([amd]: readonly Digest[]) => index(entry(amd, 'amd64'));
    expect((await registryOf(disk('a.raw'), first, wrap, wrap)()).image.disk).toBeDefined();
    await expect(registryOf(disk('a.raw'), first, wrap, wrap, wrap)()).rejects.toThrow(
      'more than 3 indexes',
    );
  });

  test.each([
    [[entry(one, 'arm64'), entry(two, 'unknown')], 'linux/arm64, linux/unknown is'],
    [[entry(one, 'unknown', { platform: { os: 'unknown', architecture: 'unknown' } })], 'nothing'],
    [[], 'nothing'],
  ])('an index without the platform is refused (%#)', async (entries, text) => {
    await expect(registryOf(() => index(...entries))()).rejects.toMatchObject({
      kind: 'noPlatform',
      message: expect.stringContaining(text),
    });
  });
});

test('an image that says that it is for another platform is refused', async () => {
  const annotations = { 'dev.rackwright.architecture': 'arm64' };
  const find = registryOf(() => artifact([layer(`${diskType}.raw`)], { annotations }));
  expect((await find('arm64')).image.disk).toMatchObject({ architecture: 'arm64' });
  await expect(find('amd64')).rejects.toMatchObject({ kind: 'noPlatform' });
});

test.each([
  ['{"schemaVersion":1,"layers":[]}', 'schema version 2'],
  ['{"schemaVersion":2}', 'neither layers nor manifests'],
  ['{"schemaVersion":2,"layers":[],"manifests":[]}', 'or both'],
  ['not json', 'not JSON'],
])('%s is refused', async (text, problem) => {
  const read = async () => Buffer.from(text);
  await expect(findHostImage(one, 'amd64', read)).rejects.toThrow(problem);
});
