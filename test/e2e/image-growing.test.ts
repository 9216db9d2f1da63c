/**
 * A runner that writes an image while the agent still fetches it: whatever becomes of registry,
 * agent and runner, the disk boots nothing before all of the image was proved, both read to their
 * end or are told why not, and no part of an image is taken for the whole.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync, readSync, writeFileSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { digestOf, hexOf } from '@rackwright/oci';
import { nodeClock, nodeExec, nodeHashes, nodeWebClient } from '@rackwright/platform/node';
import { openDirect, provisionDisk, unxz, webSource } from '@rackwright/runner';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { prepareAgentFolder, startAgentLife } from './image-life.ts';

const mib = 1024 * 1024;
const image = randomBytes(8 * mib);
const digest = digestOf(image);
const half = 4 * mib;
const diskBytes = 12 * mib;
const clock = nodeClock();
let folder = '';
let disk = '';
const closing: (() => unknown)[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rackwright-growing-'));
  disk = join(folder, 'disk');
  await prepareAgentFolder(folder);
  writeFileSync(disk, Buffer.alloc(diskBytes, 'PATTERN!'));
});

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  await rm(folder, { recursive: true });
});

/** Sends half of the image, and then does this; asked again, it sends what is asked for. */
async function startOrigin(then: (response: ServerResponse) => void) {
  const asked: number[] = [];
  const letGo = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    const from = Number(/^bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0);
    const headers = { 'content-length': image.length - from, etag: '"one"' };
    const range = { 'content-range': `bytes ${from}-${image.length - 1}/${image.length}` };
    if (request.method !== 'GET') return void response.writeHead(200, headers).end();
    asked.push(from);
    if (asked.length > 1) {
      response.writeHead(from === 0 ? 200 : 206, from === 0 ? headers : { ...headers, ...range });
      return void response.end(image.subarray(from));
    }
    response.writeHead(200).write(image.subarray(0, half));
    void letGo.promise.then(() => then(response));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return { asked, letGo: letGo.resolve, url: `http://127.0.0.1:${port}/disk.raw` };
}

async function startLife(port = 0) {
  const life = await startAgentLife(folder, port, digest, [10, 10, 10]);
  closing.push(life.end);
  return life;
}

/** As the agent orders it: it is stopped when the image turns out to be none. */
async function provision(port: number, signal: AbortSignal) {
  const open = await openDirect(disk, nodeExec(undefined, 'ours'));
  const source = webSource(
    nodeWebClient(),
    `http://127.0.0.1:${port}/v2/blobs/sha256/${hexOf(digest)}`,
  );
  const pause = (): Promise<void> => new Promise((resolve) => void clock.after(20, resolve));
  const parts = {
    ...{ unxz, hashes: nodeHashes(), limits: { emptyBreaksMax: 1_000, breaksMax: 1_000, pause } },
    requestBegin: async () => ({ kind: 'granted' }) as const,
  };
  const file = { sha256: hexOf(digest), sizeBytes: image.length };
  const target = { open, sizeBytes: diskBytes, blockBytes: 512 };
  const plan = { image: file, grow: false };
  try {
    return await provisionDisk(plan, source, target, () => {}, signal, parts);
  } finally {
    await open.close();
  }
}

function onDisk(from: number, to: number): Buffer {
  const bytes = Buffer.alloc(to - from);
  const file = openSync(disk, 'r');
  readSync(file, bytes, 0, bytes.length, from);
  closeSync(file);
  return bytes;
}

const isImage = (from: number, to: number): boolean =>
  onDisk(from, to).equals(image.subarray(from, to));
const isBlank = (from: number, to: number): boolean => onDisk(from, to).every((byte) => byte === 0);
/** Neither table stands there, and what came is being written. */
const isUnderWay = (): boolean =>
  isBlank(0, mib) && isBlank(diskBytes - mib, diskBytes) && isImage(mib, 2 * mib);
const filesKept = (): Promise<string[]> => readdir(join(folder, 'blobs'));

/** Until the runner writes what has come. */
async function underWay(then: (response: ServerResponse) => void, { stops } = { stops: true }) {
  const origin = await startOrigin(then);
  const life = await startLife();
  const coming = await life.begin(origin.url);
  const stop = new AbortController();
  coming.whole.catch(() => {
    if (stops) stop.abort();
  });
  const ended = provision(life.port, stop.signal);
  const written = 'what has come is written';
  await expect.poll(isUnderWay, { timeout: 30_000, message: written }).toBe(true);
  expect(await filesKept()).toEqual([`${hexOf(digest)}.part`]);
  return { coming, ended, life, origin, stop };
}

/** Once more, and not from the beginning. */
function expectGoneOn(asked: readonly number[]): void {
  expect(asked).toHaveLength(2);
  expect(asked[1]).toBeGreaterThan(mib);
}

test.each<[string, (response: ServerResponse) => void]>([
  ['ends as it should', (response) => response.end(image.subarray(half))],
  ['drops in the middle and comes back', (response) => response.destroy()],
])('a registry that %s: the disk is whole once all was proved', async (what, then) => {
  const { coming, ended, origin } = await underWay(then);
  origin.letGo();
  await coming.whole;
  expect(await ended).toMatchObject({ kind: 'complete' });
  if (what.startsWith('drops')) expectGoneOn(origin.asked);
  else expect(origin.asked).toEqual([0]);
  expect(isImage(0, image.length)).toBe(true);
  expect(await filesKept()).toEqual([hexOf(digest)]);
});

const other = Buffer.alloc(half, 'another');
test.each<[string, string, (response: ServerResponse) => void]>([
  ['sends other bytes', 'digestMismatch', (response) => response.end(other)],
  ['sends too much', 'digestMismatch', (response) => response.end(Buffer.alloc(2 * half, image))],
  ['ends too early', 'truncated', (response) => response.end()],
])('a registry that %s: the disk boots nothing, and both say why', async (_, kind, then) => {
  const { coming, ended, life, origin } = await underWay(then);
  origin.letGo();
  await expect(coming.whole).rejects.toMatchObject({ kind });
  expect(await ended).toMatchObject({ kind: 'failed', begun: true });
  expect(isBlank(0, mib) && isBlank(diskBytes - mib, diskBytes)).toBe(true);
  expect(life.cache.find(digest)).toBeUndefined();
  expect(await filesKept()).toEqual([`${hexOf(digest)}.part`]);
});

test('an agent that dies meanwhile goes on with what it had, and the runner reads on', async () => {
  const dies = (response: ServerResponse): void => void response.destroy();
  const { coming, ended, life, origin } = await underWay(dies, { stops: false });
  await life.end();
  await expect(coming.whole).rejects.toMatchObject({ kind: 'cancelled' });
  const next = await startLife(life.port);
  expect(next.cache.find(digest)).toBeUndefined();
  const again = await next.begin(origin.url);
  await again.whole;
  expect(await ended).toMatchObject({ kind: 'complete' });
  expectGoneOn(origin.asked);
  expect(isImage(0, image.length)).toBe(true);
});

test('a runner that ends meanwhile leaves nothing that boots; the next writes all', async () => {
  const { coming, ended, life, origin, stop } = await underWay((response) =>
    response.end(image.subarray(half)),
  );
  stop.abort();
  expect(await ended).toMatchObject({ kind: 'failed', begun: true });
  expect(isUnderWay()).toBe(true);
  const next = provision(life.port, new AbortController().signal);
  origin.letGo();
  await coming.whole;
  expect(await next).toMatchObject({ kind: 'complete' });
  expect(isImage(0, image.length)).toBe(true);
  expect(origin.asked).toEqual([0]);
});
