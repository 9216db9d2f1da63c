/**
 * The agent's side: its cache, its images of hosts, its HTTP. `rack.ts FOLDER REGISTRY REPOSITORY
 * DIGEST` says where it serves; told how many hosts want the image, it holds it for each of them,
 * and says when it has begun to come, and when it is whole.
 */
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import {
  BlobCache,
  defaultAdmissionLimits,
  defaultRetryDelaysMs,
  HostImages,
  Images,
  startBoot,
} from '@rackwright/agent';
import type { DiskImage } from '@rackwright/oci';
import {
  nodeClock,
  nodeDisk,
  nodeHashes,
  nodeHttp,
  nodeLargeFiles,
  nodeLog,
  nodeUdp,
  nodeWebClient,
} from '@rackwright/platform/node';

export interface RackOrder {
  readonly hosts: number;
}

export type RackReply =
  | { readonly kind: 'serves'; readonly port: number }
  | { readonly kind: 'begun'; readonly disk: DiskImage }
  | { readonly kind: 'whole' };

const cacheBytesMax = 1e12;
const [folder = '', registry = '', repository = '', digest = ''] = process.argv.slice(2);
const [clock, log, web] = [nodeClock(), nodeLog('error'), nodeWebClient()];
const say = (said: RackReply): void => void process.send?.(said);
process.once('disconnect', () => process.exit());

mkdirSync(folder, { recursive: true });
const files = nodeLargeFiles();
const cache = await BlobCache.open({
  hashes: nodeHashes(),
  clock,
  log,
  files,
  folder,
  bytesMax: cacheBytesMax,
});
const told = once(process, 'message');
say({ kind: 'serves', port: await serve() });
const [{ hosts }] = (await told) as [RackOrder];

const admission = { ...defaultAdmissionLimits, atOnceMax: hosts };
const images = new HostImages({ cache, web, admission, retryDelaysMs: defaultRetryDelaysMs });
const pinned = await Promise.all(Array.from({ length: hosts }, (_, index) => pin(`h${index}`)));
const disk = pinned[0]?.image.disk;
if (disk === undefined) throw new Error('the image has no disk');
say({ kind: 'begun', disk });
await Promise.all(pinned.map(({ whole }) => whole));
say({ kind: 'whole' });

function pin(host: string) {
  const access = { registry, plainHttp: true, credential: undefined, mirrors: [] };
  const from = { kind: 'registry', reference: `${registry}/${repository}@${digest}` } as const;
  const wanted = { architecture: 'amd64', needs: 'disk' } as const;
  const never = new AbortController().signal;
  return images.begin(host, { ...wanted, from: { ...access, ...from } }, never, () => {});
}

/** Nothing boots: the kernel is any file. */
async function serve(): Promise<number> {
  const blobs = new Images({ cache, web, architecture: 'amd64' });
  const runner = { kernel: 'kernel', initrd: 'kernel', agentPort: 7443, kernelArguments: [] };
  const { httpPort } = await startBoot(
    {
      interfaces: [{ serverAddress: '127.0.0.1', dhcp: { mode: 'off' } }],
      ...{ tftp: { address: '127.0.0.1', port: 0 }, http: { address: '127.0.0.1', port: 0 } },
      ...{ loaders: {}, loaderFiles: [], files: [{ name: 'kernel', path: process.execPath }] },
      runner: { ...runner, fingerprint: '00'.repeat(32) },
    },
    {
      ...{ udp: nodeUdp(), http: nodeHttp(), disk: nodeDisk(), clock, log },
      memory: () => ({ snapshot: { generation: 1, hosts: [] }, grants: [] }),
      onNetboot: () => {},
      imageBlob: (hex) => blobs.served(hex),
    },
  );
  return httpPort;
}
