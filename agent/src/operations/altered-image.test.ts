/**
 * A registry that alters an image in transit, and sends it so slowly that its beginning can be
 * written. For a host in service no runner gets an order, because that would cost its disk. A
 * runner that writes the image as it arrives never gets its end. Without the end it makes nothing
 * bootable, and it is stopped.
 */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import {
  agent,
  asRunNumber,
  DeployProof,
  deploymentIdOf,
  writeImageStep,
} from '@rackwright/messages';
import { digestOf, writeHostManifest } from '@rackwright/oci';
import { callersHashes, nodeClock, nodeLargeFiles, nodeWebClient } from '@rackwright/platform/node';
import { quietLog } from '@rackwright/platform/testing';
import type { FinalResult } from '@rackwright/results';
import { expect, test } from 'vitest';
import {
  BlobCache,
  DetachedFetches,
  defaultAdmissionLimits,
  HostImages,
  waitForAbort,
} from '../images/index.ts';
import type { OperationContext, Progress } from '../session/index.ts';
import { withHostImage } from './host-image.ts';

const disk = Buffer.alloc(4_000_000, 'a good disk');
const nearlyAll = 3_500_000;
const digest = digestOf(disk);
const role = { role: 'disk', format: 'raw' } as const;
const manifest = writeHostManifest({
  ...{ version: '13', architecture: 'amd64' },
  layers: [{ digest, sizeBytes: disk.length, role }],
});

/** Sends nearly all of the disk, and the end when the test allows it. */
async function startRegistry(end: (response: ServerResponse) => void) {
  const letGo = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    if (request.url?.includes('/manifests/') === true) return void response.end(manifest);
    response.writeHead(200).write(disk.subarray(0, nearlyAll));
    void letGo.promise.then(() => end(response));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { letGo: letGo.resolve, name: `127.0.0.1:${port}`, server };
}

interface Deployed {
  readonly result: FinalResult;
  /** The bytes that a runner could have read at each of its requests; empty: none was ordered. */
  readonly shown: readonly number[];
  /** Whether the cache has it now. */
  readonly isKept: boolean;
}

async function deploy(
  writeAsFetched: boolean,
  end: (response: ServerResponse) => void,
): Promise<Deployed> {
  const registry = await startRegistry(end);
  const folder = await mkdtemp(join(tmpdir(), 'rackwright-altered-'));
  const [clock, web, files] = [nodeClock(), nodeWebClient(), nodeLargeFiles()];
  const place = { hashes: callersHashes, files, clock, log: quietLog, folder, bytesMax: 1e8 };
  const cache = await BlobCache.open(place);
  const admission = defaultAdmissionLimits;
  const images = new HostImages({ cache, web, admission, retryDelaysMs: [] });
  const shown: number[] = [];
  const continuing = ({ percent = 0 }: Progress): void => {
    // So much would have been written by now.
    if (percent >= 75) registry.letGo();
  };
  const context: OperationContext = {
    ...{ signal: new AbortController().signal, begin: async () => {}, reportProgress: continuing },
    credential: () => Promise.reject(new Error('no credential is needed')),
    ...{ isLeaseValid: () => true, leaseLeftMs: () => 9_000, brake: () => undefined },
    ...{ remainingMs: () => 60_000, closeGrants: async () => {} },
    openGrant: () => Promise.reject(new Error('no grant is opened')),
  };
  const image = { reference: `${registry.name}/os@${digestOf(manifest)}`, plainHttp: true };
  const proof = DeployProof.POWER_ON;
  const deployment = {
    id: deploymentIdOf('h', asRunNumber(1)),
    image,
    deploy: { proof },
    writeAsFetched,
  };
  const request = create(agent.RunStepSchema, { step: writeImageStep, deployment });
  const operation = create(agent.OperationSchema, { id: 'h/1/2/1', hostUid: 'h' });
  const ways = { phoneHomePath: () => '', carriedOn: new DetachedFetches() };
  const parts = { images, clock, architecture: 'amd64', ...ways } as const;
  const run = async (_: unknown, { signal }: OperationContext): Promise<FinalResult> => {
    const coming = cache.coming(digest);
    try {
      for (let at = 0; at < disk.length; at = shown.at(-1) ?? 0) {
        shown.push((await coming?.readable(at, signal)) ?? disk.length);
        if ((shown.at(-1) ?? 0) >= 3_000_000) registry.letGo();
      }
    } catch {
      await waitForAbort(signal);
    }
    return { kind: 'failed', type: 'cancelled', message: 'stopped' };
  };
  const result = await withHostImage(parts, operation, request, 'amd64', context, run);
  const isKept = cache.find(digest) !== undefined;
  registry.server.close();
  await rm(folder, { recursive: true });
  return { result, shown, isKept };
}

const rest = disk.subarray(nearlyAll);
const endings: [string, string, (response: ServerResponse) => void][] = [
  ['ends with other bytes', 'imageDigestMismatch', (to) => to.end(Buffer.alloc(rest.length))],
  ['ends too early', 'imageTruncated', (to) => to.end()],
  ['does not end', 'imageDigestMismatch', (to) => to.end(Buffer.concat([rest, rest]))],
];

test.for(endings)(
  'garm-T10: no host in service loses its disk to an image that %s',
  async (row) => {
    const [, type, end] = row;
    const { result, shown, isKept } = await deploy(false, end);
    expect(result).toMatchObject({ kind: 'failed', type });
    expect([shown, isKept]).toEqual([[], false]);
  },
);

test.for(endings)('garm-T10: an image that %s is shown to its end to nobody', async (row) => {
  const [, type, end] = row;
  const { result, shown, isKept } = await deploy(true, end);
  expect(result).toMatchObject({ kind: 'failed', type });
  expect(shown.length).toBeGreaterThan(1);
  expect(Math.max(...shown)).toBeGreaterThan(3_000_000);
  expect(Math.max(...shown)).toBeLessThanOrEqual(disk.length - 1);
  expect(isKept).toBe(false);
});
