/** Images of hosts: pushed to Debian's docker-registry, resolved there, and fetched for many. */
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  BlobCache,
  defaultAdmissionLimits,
  type FromRegistry,
  type HostImageProgress,
  HostImages,
} from '@rackwright/agent';
import { quietLog } from '@rackwright/agent/testing';
import {
  type Digest,
  digestOf,
  emptyConfig,
  hexOf,
  indexMediaType,
  manifestMediaType,
  RegistryClient,
  RegistryPublisher,
  writeHostIndex,
  writeHostManifest,
} from '@rackwright/oci';
import { callersHashes, nodeClock, nodeLargeFiles, nodeWebClient } from '@rackwright/platform/node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { peer, runPeer } from '../peer.ts';
import { credential, type Registry, startRegistry } from './registry.ts';

const registryProgram = peer('docker-registry');
const skopeo = peer('skopeo');
const missing = [registryProgram, skopeo].find(({ kind }) => kind === 'missing');
const reason = missing?.kind === 'missing' ? missing.reason : undefined;
const repository = 'os/debian';
/** More than one piece of a push. */
const disk = randomBytes(9_000_000);
const web = nodeWebClient();
const never = new AbortController().signal;

let registry: Registry | undefined;
let folder = '';
let first: Digest;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rackwright-host-images-'));
  if (reason !== undefined || registryProgram.kind === 'missing') return;
  registry = await startRegistry(registryProgram.path, true);
  first = await publish(disk, 'stable');
});

afterAll(async () => {
  await registry?.close();
  await rm(folder, { recursive: true });
});

const access = () => ({ registry: registry?.name ?? '', plainHttp: true, credential });

async function* chunksOf(bytes: Uint8Array) {
  for (let at = 0; at < bytes.length; at += 100_000) yield bytes.subarray(at, at + 100_000);
}

/** An index with a disk for each architecture, under a tag. */
async function publish(bytes: Buffer, tag: string): Promise<Digest> {
  const publisher = new RegistryPublisher(web, access());
  const layer = { digest: digestOf(bytes), sizeBytes: bytes.length };
  for (const blob of [bytes, emptyConfig]) {
    const named = { repository, digest: digestOf(blob), sizeBytes: blob.length };
    await publisher.blob(named, chunksOf(blob));
  }
  const role = { role: 'disk', format: 'raw' } as const;
  const content = { contentBytes: bytes.length, contentDigest: digestOf(bytes) };
  const manifest = writeHostManifest({
    ...{ layers: [{ ...layer, ...content, role }], version: `of ${tag}` },
  });
  const digest = await publisher.manifest(repository, manifest, manifestMediaType);
  const index = writeHostIndex([{ digest, sizeBytes: manifest.length, architecture: 'amd64' }]);
  return publisher.manifest(repository, index, indexMediaType, tag);
}

async function open(name: string) {
  await mkdir(join(folder, name), { recursive: true });
  const cache = await BlobCache.open({
    hashes: callersHashes,
    ...{ clock: nodeClock(), log: quietLog, files: nodeLargeFiles(), folder: join(folder, name) },
    bytesMax: 100_000_000,
  });
  const admission = { ...defaultAdmissionLimits, atOnceMax: 2 };
  return { cache, images: new HostImages({ cache, web, admission, retryDelaysMs: [] }) };
}

const wanted = (digest: Digest, changes: Partial<FromRegistry> = {}) => ({
  from: {
    ...({ kind: 'registry', mirrors: [], ...access() } as const),
    ...{ reference: `${registry?.name}/${repository}@${digest}`, ...changes },
  },
  ...({ architecture: 'amd64', needs: 'disk' } as const),
});

test('a pushed image is complete as skopeo sees it, and no blob is sent twice', async (context) => {
  if (reason !== undefined || skopeo.kind === 'missing') return context.skip(reason ?? '');
  const { code, output } = await runPeer(skopeo.path, [
    ...['inspect', '--raw', '--tls-verify=false', '--creds', 'robot:sesame'],
    `docker://${registry?.name}/${repository}:stable`,
  ]);
  expect(code, output).toBe(0);
  expect(digestOf(Buffer.from(output))).toBe(first);
  let isRead = false;
  async function* once() {
    isRead = true;
    yield disk;
  }
  const named = { repository, digest: digestOf(disk), sizeBytes: disk.length };
  await new RegistryPublisher(web, access()).blob(named, once());
  expect(isRead).toBe(false);
});

test('a tag costs one request until it moves', async (context) => {
  if (reason !== undefined) return context.skip(reason);
  const client = new RegistryClient(web, access());
  const found = await client.resolve(repository, 'stable');
  expect(found).toMatchObject({ kind: 'found', digest: first });
  const before = registry?.log().match(/manifests\/stable/g)?.length ?? 0;
  expect(await client.resolve(repository, 'stable', first)).toEqual({ kind: 'unchanged' });
  await publish(randomBytes(1_000), 'moving');
  const moved = await client.resolve(repository, 'moving', first);
  expect(moved.kind).toBe('found');
  await expect(client.resolve(repository, 'none')).rejects.toMatchObject({ kind: 'notFound' });
  await expect.poll(() => registry?.log()).toMatch(/"HEAD [^"]*manifests\/stable[^"]*" 304 /);
  expect(registry?.log().match(/manifests\/stable/g)?.length).toBeGreaterThan(before);
});

test('many hosts get one fetch, in turns, and all of it is right', async (context) => {
  if (reason !== undefined) return context.skip(reason);
  const { cache, images } = await open('many');
  const told: HostImageProgress[] = [];
  const hosts = ['h1', 'h2', 'h3', 'h4', 'h5'].map(async (host) => {
    const pinned = await images.pin(host, wanted(first), never, (progress) => told.push(progress));
    pinned.release();
    return pinned.image;
  });
  const [image] = await Promise.all(hosts);
  expect(image).toMatchObject({
    version: 'of stable',
    disk: { format: 'raw', contentBytes: disk.length, architecture: 'amd64' },
  });
  expect(told).toContainEqual({ phase: 'queued', position: 3 });
  expect(told).toContainEqual({
    ...{ phase: 'fetching', fetchedBytes: disk.length, allBytes: disk.length },
  });
  const parts: Uint8Array[] = [];
  for await (const part of cache.read(digestOf(disk))) parts.push(part);
  expect(Buffer.concat(parts).equals(disk)).toBe(true);
  // Without credentials the first request for it is refused.
  const served = registry
    ?.log()
    .match(new RegExp(`"GET [^"]*blobs/${digestOf(disk)}[^"]*" 200 `, 'g'));
  expect(served).toHaveLength(1);
});

test('only images that are here are served while the registry is away', async (context) => {
  if (reason !== undefined || registryProgram.kind === 'missing') return context.skip(reason ?? '');
  const { images } = await open('many');
  // Nobody listens there.
  const away = { ...access(), registry: '127.0.0.1:9' };
  const reference = `127.0.0.1:9/${repository}@${first}`;
  const pinned = await images.pin('h1', wanted(first, { ...away, reference }), never, () => {});
  pinned.release();
  const other = digestOf(Buffer.from('another'));
  const lost = wanted(other, { ...away, reference: `127.0.0.1:9/${repository}@${other}` });
  await expect(images.pin('h1', lost, never, () => {})).rejects.toMatchObject({
    kind: 'unreachable',
  });
});

test('a mirror that has altered the disk is passed over', async (context) => {
  if (reason !== undefined || registryProgram.kind === 'missing') return context.skip(reason ?? '');
  const mirror = await startRegistry(registryProgram.path, false);
  try {
    const open_ = { registry: mirror.name, plainHttp: true, credential: undefined, prefix: '' };
    const publisher = new RegistryPublisher(web, open_);
    const layer = { repository, digest: digestOf(disk), sizeBytes: disk.length };
    await publisher.blob(layer, chunksOf(disk));
    await writeFile(
      mirror.blobFile(hexOf(digestOf(disk))),
      Buffer.from(disk).fill(0, 5e6, 5e6 + 9),
    );
    const { cache, images } = await open('mirrored');
    const digests = await images.prefetch(wanted(first, { mirrors: [open_] }), never, () => {});
    expect(digests).toContain(digestOf(disk));
    expect(cache.find(digestOf(disk))?.sizeBytes).toBe(disk.length);
    expect(mirror.log()).toMatch(new RegExp(`"GET [^"]*${digestOf(disk)}[^"]*" 200 `));
  } finally {
    await mirror.close();
  }
});

test('an image of another architecture, or without a kernel, is refused', async (context) => {
  if (reason !== undefined) return context.skip(reason);
  const { images } = await open('refused');
  const arm = { ...wanted(first), architecture: 'arm64' } as const;
  await expect(images.prefetch(arm, never, () => {})).rejects.toMatchObject({
    kind: 'noPlatform',
    message: expect.stringContaining('linux/amd64 is'),
  });
  const netboot = { ...wanted(first), needs: 'netboot' } as const;
  await expect(images.prefetch(netboot, never, () => {})).rejects.toThrow('has no kernel');
});
