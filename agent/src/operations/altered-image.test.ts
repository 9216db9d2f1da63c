/**
 * A registry that alters an image on its way, slowly, so that there would have been all the time
 * in the world to write its beginning: no runner is ordered, for it would cost a host its disk.
 */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { agent, DeployProof, writeImageStep } from '@rackwright/messages';
import { digestOf, writeHostManifest } from '@rackwright/oci';
import { callersHashes, nodeClock, nodeLargeFiles, nodeWebClient } from '@rackwright/platform/node';
import { expect, test } from 'vitest';
import { BlobCache, defaultAdmissionLimits, HostImages } from '../images/index.ts';
import { quietLog } from '../runner-gateway/testing.ts';
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

/** Sends nearly all of the disk, and the end when it is let go. */
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

test.for<[string, string, (response: ServerResponse) => void]>([
  [
    'ends with other bytes',
    'imageDigestMismatch',
    (to) => to.end(Buffer.alloc(disk.length - nearlyAll)),
  ],
  ['ends too early', 'imageTruncated', (to) => to.end()],
])('garm-T10: an image that %s comes onto no disk', async ([, type, end]) => {
  const registry = await startRegistry(end);
  const folder = await mkdtemp(join(tmpdir(), 'rackwright-altered-'));
  const [clock, web] = [nodeClock(), nodeWebClient()];
  const files = nodeLargeFiles();
  const cache = await BlobCache.open({
    hashes: callersHashes,
    files,
    clock,
    log: quietLog,
    folder,
    bytesMax: 1e8,
  });
  const admission = defaultAdmissionLimits;
  const images = new HostImages({ cache, web, admission, retryDelaysMs: [] });
  const told: Progress[] = [];
  const ordered: string[] = [];
  const context: OperationContext = {
    ...{ signal: new AbortController().signal, begin: async () => {} },
    continuing: (progress) => {
      told.push(progress);
      // So much would have been written by now.
      if ((progress.percent ?? 0) >= 75) registry.letGo();
    },
    credential: () => Promise.reject(new Error('no credential is needed')),
    ...{ leaseValid: () => true, leaseLeftMs: () => 9_000, frozen: () => '' },
    ...{ remainingMs: () => 60_000, closeGrants: async () => {} },
    openGrant: () => Promise.reject(new Error('no grant is opened')),
  };
  const image = { reference: `${registry.name}/os@${digestOf(manifest)}`, plainHttp: true };
  const deployment = { id: 'h/1', image, deploy: { proof: DeployProof.POWER_ON } };
  const request = create(agent.RunStepSchema, { step: writeImageStep, deployment });
  const operation = create(agent.OperationSchema, { id: 'h/1/2/1', hostUid: 'h' });
  const parts = { images, clock, architecture: 'amd64', phoneHomePath: () => '' } as const;
  const result = await withHostImage(parts, operation, request, 'amd64', context, async () => {
    ordered.push(told.at(-1)?.text ?? '');
    return { kind: 'complete' };
  });
  expect(result).toMatchObject({ kind: 'failed', type });
  expect(ordered).toEqual([]);
  expect(told.map(({ text }) => text)).toContain('fetches the image: 3.1 of 4.0 MB');
  registry.server.close();
  await rm(folder, { recursive: true });
});
