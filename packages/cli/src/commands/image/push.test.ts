import { zstdCompressSync } from 'node:zlib';
import { type Digest, digestOf, findHostImage } from '@rackwright/oci';
import { pagesWeb } from '@rackwright/oci/testing';
import { describe, expect, test } from 'vitest';
import { runOver } from '../../command-io.fixture.ts';

const content = Buffer.alloc(300_000, 'disk of a host ');
// Two frames: what a decoder that stops after the first one would not see.
const packed = Buffer.concat([
  zstdCompressSync(content.subarray(0, 100_000)),
  zstdCompressSync(content.subarray(100_000)),
]);
const files = { 'os.raw.zst': packed, 'os.raw': content, k: 'kernel', i: 'initrd', p: 'sesame\n' };

/** A registry that accepts every upload. */
function registry() {
  const manifests: Buffer[] = [];
  const sent: Buffer[] = [];
  const { web, requests } = pagesWeb(({ method, url, body = new Uint8Array() }) => {
    if (method === 'HEAD') return { status: 404 };
    if (url.includes('/manifests/')) manifests.push(Buffer.from(body));
    if (method === 'PUT') return { status: 201 };
    if (body.length > 0) sent.push(Buffer.from(body));
    return { status: 202, headers: { location: '/v2/os/uploads/1' } };
  });
  return { web, requests, manifests, sent };
}

async function imageOf([manifest]: readonly Buffer[]) {
  if (manifest === undefined) throw new Error('no manifest was pushed');
  const { image } = await findHostImage(digestOf(manifest), 'amd64', async () => manifest);
  return { image, digest: digestOf(manifest) };
}

const reference = 'registry.example:5000/os:1';

describe('image push', () => {
  test('pushes a compressed disk with what it is unpacked, and prints its digest', async () => {
    const { web, manifests, sent } = registry();
    const given = ['image', 'push', 'os.raw.zst', reference, '--version', '1.2'];
    const { code, out, err } = await runOver(given, { files, web });
    expect([code, err.includes('pushes os.raw.zst')]).toEqual([0, true]);
    const { image, digest } = await imageOf(manifests);
    expect(out).toBe(`registry.example:5000/os@${digest}\n`);
    expect(image.version).toBe('1.2');
    expect(image.disk).toMatchObject({
      ...{ format: 'raw', compression: 'zstd' },
      ...{ contentBytes: content.length, contentDigest: digestOf(content) },
    });
    expect(sent.some((bytes) => bytes.equals(packed))).toBe(true);
  });

  test('pushes kernel and initrd without a disk', async () => {
    const { web, manifests } = registry();
    const kernel = ['--kernel', 'k', '--initrd', 'i', '--kernel-arguments', 'console=ttyS0'];
    const given = ['image', 'push', 'none', reference, ...kernel];
    expect((await runOver(given, { files, web })).code).toBe(0);
    const { image } = await imageOf(manifests);
    expect(image.disk).toBeUndefined();
    expect(image.netboot).toMatchObject({ kernelArguments: 'console=ttyS0' });
    const initrd: Digest = digestOf(Buffer.from('initrd'));
    expect(JSON.stringify(image.netboot)).toContain(initrd);
  });

  test.each([
    [['none', reference], 'there is nothing to push'],
    [['os.raw', 'registry.example/os'], 'must name a tag'],
    [['missing.raw', reference], 'missing.raw cannot be read'],
    [['os.raw', reference, '--compression', 'gzip'], 'os.raw is no gzip file'],
    [['os.raw', reference, '--initrd', 'i'], '--initrd and --kernel-arguments need --kernel'],
    [['os.raw', reference, '--username', 'robot'], 'give --username and a password'],
  ])('%o is refused, and nothing is sent', async (given, text) => {
    const { web, requests } = registry();
    const { code, err } = await runOver(['image', 'push', ...given], { files, web });
    expect([code, requests]).toEqual([2, []]);
    expect(err).toContain(text);
  });

  test('a registry that refuses is named, and no password is shown', async () => {
    const { web, requests } = pagesWeb(() => ({
      status: 401,
      headers: { 'www-authenticate': 'Basic realm="x"' },
    }));
    const who = ['--username', 'robot', '--password-file', 'p'];
    const given = ['image', 'push', 'os.raw', reference, ...who];
    const { code, err } = await runOver(given, { files, web });
    expect([code, err.includes('not pushed: registry.example:5000')]).toEqual([5, true]);
    expect(err).not.toContain('sesame');
    expect(requests.length).toBeGreaterThan(0);
  });
});
