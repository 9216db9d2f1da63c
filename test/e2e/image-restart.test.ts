/**
 * An agent that dies while a runner reads an image off it, and whose disk has lost a part of that
 * when it comes back: the next life fetches the rest, and the runner waits for it and reads on.
 * That a killed agent leaves no part of an image for the whole is shown in
 * agent/src/images/kill.slow.test.ts.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rename, rm, truncate } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readFrom } from '@rackwright/disk-image';
import { digestOf, hexOf } from '@rackwright/oci';
import { nodeClock, nodeWebClient } from '@rackwright/platform/node';
import { webSource } from '@rackwright/runner';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { prepareAgentFolder, startAgentLife } from './image-life.ts';

/** More than lies between two sockets. */
const bytes = randomBytes(32_000_000);
const half = 16_000_000;
const digest = digestOf(bytes);
const clock = nodeClock();
const web = nodeWebClient();
let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rackwright-image-restart-'));
  await prepareAgentFolder(folder);
});

afterAll(() => rm(folder, { recursive: true }));

/** Where the image comes from. */
async function startOrigin() {
  const asked: number[] = [];
  const server = createServer((request, response) => {
    const from = Number(/^bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0);
    if (request.method === 'GET') asked.push(from);
    const range = { 'content-range': `bytes ${from}-${bytes.length - 1}/${bytes.length}` };
    const headers = { 'content-length': bytes.length - from, etag: '"one"' };
    response.writeHead(from === 0 ? 200 : 206, from === 0 ? headers : { ...headers, ...range });
    response.end(request.method === 'GET' ? bytes.subarray(from) : undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return { asked, close, url: `http://127.0.0.1:${port}/disk.raw` };
}

/** What the runner does with it: reads from the start to the end, patiently. */
function startRunner(port: number) {
  const source = webSource(web, `http://127.0.0.1:${port}/v2/blobs/${digest.replace(':', '/')}`);
  const patience = { emptyBreaksMax: 1_000, breaksMax: 1_000 };
  const pause = (): Promise<void> => new Promise((resolve) => void clock.after(20, resolve));
  const never = new AbortController().signal;
  const [begun, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const whole = (async () => {
    const pieces: Uint8Array[] = [];
    const limits = { ...patience, pause };
    for await (const piece of readFrom(source, 0, bytes.length, never, limits)) {
      pieces.push(Buffer.from(piece));
      begun.resolve();
      await goOn.promise;
    }
    return Buffer.concat(pieces);
  })();
  return { begun: begun.promise, goOn: goOn.resolve, whole };
}

test('an image that is lost while it is read is fetched on, and read on where it was', async () => {
  const origin = await startOrigin();
  const first = await startAgentLife(folder, 0, digest);
  const pinned = await first.pin(origin.url);
  const runner = startRunner(first.port);
  await runner.begun;
  await first.end();
  pinned.release();
  const path = join(folder, 'blobs', hexOf(digest));
  await rename(path, `${path}.part`);
  await truncate(`${path}.part`, half);

  const second = await startAgentLife(folder, first.port, digest);
  runner.goOn();
  // Nobody fetches yet, as before the agent has taken its work up again.
  await expect
    .poll(() => second.refused, { timeout: 20_000 })
    .toContainEqual(expect.stringContaining('"status":503'));
  const again = await second.pin(origin.url);
  expect(digestOf(await runner.whole)).toBe(digest);
  expect(origin.asked).toEqual([0, half]);
  again.release();
  await second.end();
  origin.close();
});
