/**
 * An agent that dies while it fetches an image that a runner already reads: the next life goes on
 * with what is there, and so does the runner. Its end here is a cut in mid-fetch; that a killed
 * process leaves no more behind is shown in agent/src/images/kill.slow.test.ts.
 */
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  BlobCache,
  defaultAdmissionLimits,
  HostImages,
  Images,
  startBoot,
  type WantedHostImage,
} from '@rackwright/agent';
import { quietLog } from '@rackwright/agent/testing';
import { readFrom } from '@rackwright/disk-image';
import { digestOf } from '@rackwright/oci';
import type { Log } from '@rackwright/platform';
import {
  nodeClock,
  nodeDisk,
  nodeHttp,
  nodeLargeFiles,
  nodeUdp,
  nodeWebClient,
} from '@rackwright/platform/node';
import { webSource } from '@rackwright/runner';
import { afterAll, beforeAll, expect, test } from 'vitest';

const bytes = Buffer.from(Uint8Array.from({ length: 3_000_000 }, (_, at) => (at * 31) ^ (at >> 8)));
const half = 1_500_000;
const digest = digestOf(bytes);
const clock = nodeClock();
const web = nodeWebClient();
let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rackwright-image-restart-'));
  await mkdir(join(folder, 'blobs'));
  for (const name of ['vmlinuz', 'initrd']) await writeFile(join(folder, name), 'x');
});

afterAll(() => rm(folder, { recursive: true }));

/** Where the image comes from: its first half at once, the rest when it is let go. */
async function startOrigin() {
  const asked: number[] = [];
  const waiting: (() => void)[] = [];
  let isLetGo = false;
  const answer = (response: ServerResponse, from: number): void => {
    asked.push(from);
    const range = { 'content-range': `bytes ${from}-${bytes.length - 1}/${bytes.length}` };
    const headers = { 'content-length': bytes.length - from, etag: '"one"' };
    response.writeHead(from === 0 ? 200 : 206, from === 0 ? headers : { ...headers, ...range });
    if (from < half) response.write(bytes.subarray(from, half));
    const rest = (): void => void response.end(bytes.subarray(Math.max(from, half)));
    if (isLetGo) rest();
    else waiting.push(rest);
  };
  const server = createServer((request, response) => {
    const from = Number(/^bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0);
    if (request.method === 'GET') answer(response, from);
    else response.writeHead(200, { 'content-length': bytes.length }).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const letGo = (): void => {
    isLetGo = true;
    for (const rest of waiting.splice(0)) rest();
  };
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return { asked, close, letGo, url: `http://127.0.0.1:${port}/disk.raw` };
}

/** One life of the agent, as far as images go. */
async function startLife(port: number) {
  const refused: string[] = [];
  const warn: Log['warn'] = (fields) => void refused.push(JSON.stringify(fields));
  const place = { files: nodeLargeFiles(), folder: join(folder, 'blobs') };
  const cache = await BlobCache.open({ ...place, clock, log: quietLog, bytesMax: 10_000_000 });
  const images = new Images({ cache, web, architecture: 'amd64' });
  const admission = defaultAdmissionLimits;
  const hostImages = new HostImages({ cache, web, admission, retryDelaysMs: [] });
  const files = ['vmlinuz', 'initrd'].map((name) => ({ name, path: join(folder, name) }));
  const names = { kernel: 'vmlinuz', initrd: 'initrd', kernelArguments: [] };
  const boot = await startBoot(
    {
      interfaces: [{ serverAddress: '127.0.0.1', dhcp: { mode: 'off' } }],
      tftp: { address: '127.0.0.1', port: 0 },
      http: { address: '127.0.0.1', port },
      ...{ loaders: {}, loaderFiles: [], files },
      runner: { ...names, agentPort: 7443, fingerprint: '00'.repeat(32) },
    },
    {
      ...{ udp: nodeUdp(), http: nodeHttp(), disk: nodeDisk(), clock },
      log: { ...quietLog, warn },
      memory: () => ({ snapshot: { generation: 1, hosts: [] }, grants: [] }),
      onNetboot: () => {},
      imageBlob: (hex) =>
        images.blob(hex) ?? images.growing(hex) ?? (images.isBegun(hex) ? 'later' : undefined),
    },
  );
  const stop = new AbortController();
  const hold = (url: string) => {
    const from = { kind: 'web', url, digest, credential: undefined } as const;
    const wanted: WantedHostImage = { from, architecture: 'amd64', needs: 'disk' };
    return hostImages.hold('h', wanted, stop.signal, () => {});
  };
  const end = async (): Promise<void> => {
    stop.abort();
    await boot.close();
  };
  return { end, hold, port: boot.httpPort, refused };
}

/** What the runner does with it: reads from the start to the end, patiently. */
function startRunner(port: number) {
  const source = webSource(web, `http://127.0.0.1:${port}/v2/blobs/${digest.replace(':', '/')}`);
  const patience = { emptyBreaksMax: 1_000, breaksMax: 1_000 };
  const pause = (): Promise<void> => new Promise((resolve) => void clock.after(20, resolve));
  const never = new AbortController().signal;
  const read = { bytes: 0 };
  const whole = (async () => {
    const pieces: Uint8Array[] = [];
    const limits = { ...patience, pause };
    for await (const piece of readFrom(source, 0, bytes.length, never, limits)) {
      pieces.push(piece);
      read.bytes += piece.length;
    }
    return Buffer.concat(pieces);
  })();
  return { read, whole };
}

test('an image is read on and fetched on where it was after the agent has died', async () => {
  const origin = await startOrigin();
  const first = await startLife(0);
  const held = await first.hold(origin.url);
  const { read, whole } = startRunner(first.port);
  await expect.poll(() => read.bytes, { timeout: 20_000 }).toBeGreaterThan(0);
  await first.end();
  await expect(held.whole).rejects.toThrow();

  const second = await startLife(first.port);
  // Nobody fetches yet, as before the agent has taken its work up again.
  await expect
    .poll(() => second.refused.some((line) => line.includes('"status":503')), { timeout: 20_000 })
    .toBe(true);
  origin.letGo();
  const again = await second.hold(origin.url);
  await again.whole;
  expect(digestOf(await whole)).toBe(digest);
  const [begun, goneOn, ...more] = origin.asked;
  expect(begun).toBe(0);
  expect(goneOn).toBeGreaterThan(0);
  expect(more).toEqual([]);
  again.release();
  await second.end();
  origin.close();
});
