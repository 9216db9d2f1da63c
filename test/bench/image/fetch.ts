/**
 * Fetches one blob into a cache of its own and says how long it took and how much memory the
 * process had at most: `fetch.ts FOLDER SOURCE DIGEST BYTES`, SOURCE being a registry's repository
 * ("127.0.0.1:5000/bench") or a URL.
 */
import { mkdirSync, readFileSync } from 'node:fs';
import { BlobCache } from '@rackwright/agent';
import { type Digest, RegistryClient, WebFile } from '@rackwright/oci';
import { nodeClock, nodeLargeFiles, nodeLog, nodeWebClient } from '@rackwright/platform/node';

const [folder = '', from = '', digest = '', bytes = ''] = process.argv.slice(2);
const [registry = '', repository = ''] = from.split('/');
const web = nodeWebClient();
const credential = undefined;
const source = from.includes('://')
  ? new WebFile(web, { url: from, credential })
  : new RegistryClient(web, { registry, plainHttp: true, credential }).blobs(repository);
mkdirSync(folder, { recursive: true });
const cache = await BlobCache.open({
  ...{ clock: nodeClock(), log: nodeLog('error'), files: nodeLargeFiles(), folder },
  bytesMax: 1e12,
});
const wanted = { digest: digest as Digest, sizeBytes: Number(bytes) };
const never = new AbortController().signal;
const startedMs = performance.now();
await cache.hold(wanted, source, never, () => {});
const seconds = (performance.now() - startedMs) / 1_000;
const peakKib = Number(/VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]);
console.log(JSON.stringify({ seconds, peakKib }));
