/** An agent that is killed while it fetches an image. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { digestOf, hexOf, plainBlobs } from '@rackwright/oci';
import { callersHashes, nodeClock, nodeLargeFiles, nodeWebClient } from '@rackwright/platform/node';
import { quietLog } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import { BlobCache } from './blob-cache.ts';

const bytes = randomBytes(2_000_000);
const digest = digestOf(bytes);
const pieceBytes = 50_000;

test('a killed fetch leaves no file that counts as the image; the next one continues', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rackwright-killed-'));
  const starts: number[] = [];
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const start = Number(/bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0);
    starts.push(start);
    const range = { 'content-range': `bytes ${start}-${bytes.length - 1}/${bytes.length}` };
    response.writeHead(start === 0 ? 200 : 206, start === 0 ? {} : range);
    for (let at = start; at < bytes.length && !response.destroyed; at += pieceBytes) {
      response.write(bytes.subarray(at, at + pieceBytes));
      // Slow for the first, so that there is time to kill it.
      if (starts.length === 1) await sleep(30);
    }
    response.end();
  };
  const server = createServer((request, response) => void serve(request, response)).listen(
    0,
    '127.0.0.1',
  );
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const script = join(import.meta.dirname, './test-fetch.ts');
  const child = spawn(process.execPath, [script, folder, url, digest, String(bytes.length)], {
    stdio: 'inherit',
  });
  const part = join(folder, `${hexOf(digest)}.part`);
  const sizeOf = (): Promise<number> =>
    stat(part).then(
      ({ size }) => size,
      () => 0,
    );
  await expect.poll(sizeOf, { interval: 5 }).toBeGreaterThanOrEqual(300_000);
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(await readdir(folder)).toEqual([`${hexOf(digest)}.part`]);
  const clock = nodeClock();
  const files = nodeLargeFiles();
  const cache = await BlobCache.open({
    hashes: callersHashes,
    clock,
    log: quietLog,
    files,
    folder,
    bytesMax: 1e8,
  });
  expect(cache.find(digest)).toBeUndefined();
  const wanted = { digest, sizeBytes: bytes.length };
  const never = new AbortController().signal;
  await cache.pin(wanted, plainBlobs(nodeWebClient(), url), never, () => {});
  expect(starts[1]).toBeGreaterThanOrEqual(300_000);
  expect((await readFile(cache.find(digest)?.path ?? '')).equals(bytes)).toBe(true);
  server.close();
  await rm(folder, { recursive: true });
});
