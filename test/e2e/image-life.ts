/** One life of an agent, as far as images go: its cache, its images of hosts and its HTTP. */
import { mkdir, writeFile } from 'node:fs/promises';
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
import type { Digest } from '@rackwright/oci';
import type { Log } from '@rackwright/platform';
import {
  callersHashes,
  nodeClock,
  nodeDisk,
  nodeHttp,
  nodeLargeFiles,
  nodeUdp,
  nodeWebClient,
} from '@rackwright/platform/node';

/** What it needs to stand in its folder. */
export async function prepareAgentFolder(folder: string): Promise<void> {
  await mkdir(join(folder, 'blobs'));
  for (const name of ['vmlinuz', 'initrd']) await writeFile(join(folder, name), 'x');
}

/** `digest`: of all that it is asked for. */
export async function startAgentLife(
  folder: string,
  port: number,
  digest: Digest,
  retryDelaysMs: number[] = [],
) {
  const [clock, web] = [nodeClock(), nodeWebClient()];
  const refused: string[] = [];
  const warn: Log['warn'] = (fields) => void refused.push(JSON.stringify(fields));
  const place = { files: nodeLargeFiles(), folder: join(folder, 'blobs') };
  const cache = await BlobCache.open({
    hashes: callersHashes,
    ...place,
    clock,
    log: quietLog,
    bytesMax: 100_000_000,
  });
  const images = new Images({ cache, web, architecture: 'amd64' });
  const admission = defaultAdmissionLimits;
  const hostImages = new HostImages({ cache, web, admission, retryDelaysMs });
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
      imageBlob: (hex) => images.served(hex),
    },
  );
  const stop = new AbortController();
  const wantedFrom = (url: string): WantedHostImage => {
    const from = { kind: 'web', url, digest, credential: undefined } as const;
    return { from, architecture: 'amd64', needs: 'disk' };
  };
  const pin = (url: string) => hostImages.pin('h', wantedFrom(url), stop.signal, () => {});
  const begin = (url: string) => hostImages.begin('h', wantedFrom(url), stop.signal, () => {});
  const end = async (): Promise<void> => {
    stop.abort();
    await boot.close();
  };
  return { begin, cache, end, pin, port: boot.httpPort, refused };
}
