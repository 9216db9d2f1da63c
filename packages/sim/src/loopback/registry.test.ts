/** The registry, as the clients of the product see it. */
import { gzipSync } from 'node:zlib';
import {
  digestOf,
  emptyConfig,
  manifestMediaType,
  RegistryClient,
  RegistryPublisher,
  verifiedBlob,
  writeHostManifest,
} from '@rackwright/oci';
import { nodeWebClient } from '@rackwright/platform/node';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type SoftwareRegistry, startSoftwareRegistry } from './registry.ts';

const web = nodeWebClient();
const content = Buffer.alloc(300_000, 'what stands on the disk ');
const file = gzipSync(content, { level: 0 });
let registry: SoftwareRegistry;

beforeEach(async () => {
  registry = await startSoftwareRegistry();
});

afterEach(() => registry.close());

function access() {
  const internal = ['127.0.0.0/8'];
  return { registry: registry.name, plainHttp: true, credential: undefined, internal };
}

async function* once(bytes: Uint8Array) {
  yield bytes;
}

/** Pushes the file as the disk of an image; answers the digest of its manifest. */
async function push(tag: string, bytes = file) {
  const publisher = new RegistryPublisher(web, access());
  const parts = [emptyConfig, bytes];
  for (const part of parts) {
    const blob = { repository: 'os/web', digest: digestOf(part), sizeBytes: part.length };
    await publisher.blob(blob, once(part));
  }
  const role = { role: 'disk', format: 'raw', compression: 'gzip' } as const;
  const layer = { digest: digestOf(bytes), sizeBytes: bytes.length, role };
  const sizeAndDigest = { contentBytes: content.length, contentDigest: digestOf(content) };
  const manifest = writeHostManifest({ layers: [{ ...layer, ...sizeAndDigest }], version: tag });
  return publisher.manifest('os/web', manifest, manifestMediaType, tag);
}

/** The layer that a tag leads to, as an agent follows it. */
async function pull(tag: string) {
  const client = new RegistryClient(web, access());
  const found = await client.resolve('os/web', tag);
  if (found.kind !== 'found') throw new Error('it was not known before');
  const manifest = JSON.parse(Buffer.from(found.bytes).toString()) as {
    layers: [{ digest: ReturnType<typeof digestOf>; size: number }];
  };
  const [{ digest, size: sizeBytes }] = manifest.layers;
  const pieces: Uint8Array[] = [];
  const blobs = client.blobs('os/web');
  for await (const piece of verifiedBlob(blobs, { digest, sizeBytes })) pieces.push(piece);
  return { digest: found.digest, manifest, bytes: Buffer.concat(pieces) };
}

test('pushed images read back; a tag that stays is told apart from one that moves', async () => {
  const digest = await push('1.0');
  expect(registry.digestOf('os/web', '1.0')).toBe(digest);
  const pulled = await pull('1.0');
  expect(pulled.digest).toBe(digest);
  expect(pulled.bytes.equals(file)).toBe(true);
  const client = new RegistryClient(web, access());
  expect(await client.resolve('os/web', '1.0', digest)).toEqual({ kind: 'unchanged' });
  await expect(client.resolve('os/web', '2.0')).rejects.toThrow('has no os/web:2.0');
  await push('1.0', gzipSync(content, { level: 9 }));
  expect(registry.digestOf('os/web', '1.0')).not.toBe(digest);
});

test('the registry continues a download where its reader was', async () => {
  await push('1.0');
  const opened = await new RegistryClient(web, access())
    .blobs('os/web')
    .open(digestOf(file), 100_000, undefined);
  const pieces: Uint8Array[] = [];
  for await (const piece of opened.chunks) pieces.push(piece.slice());
  expect(opened.start).toBe(100_000);
  expect(Buffer.concat(pieces).equals(file.subarray(100_000))).toBe(true);
});

test('the registry refuses a blob under another digest than its own', async () => {
  const publisher = new RegistryPublisher(web, access());
  const lie = { repository: 'os/web', digest: digestOf(emptyConfig), sizeBytes: file.length };
  await expect(publisher.blob(lie, once(file))).rejects.toThrow('answers 400');
  const found = new RegistryClient(web, access()).blobs('os/web');
  await expect(found.open(lie.digest, 0, undefined)).rejects.toThrow('has no blob');
});

test('an image that is cut short differs from its manifest only in its content', async () => {
  const whole = await push('1.0');
  const digest = registry.cutShort('os/web', '1.0', 0.75);
  const pulled = await pull('1.0');
  expect(pulled.digest).toBe(digest);
  expect(digest).not.toBe(whole);
  expect(pulled.bytes.equals(file.subarray(0, Math.floor(file.length * 0.75)))).toBe(true);
  expect(JSON.stringify(pulled.manifest)).toContain(digestOf(content));
});
