/**
 * A process that fetches one blob into a cache, to be killed while it does:
 * `test-fetch.ts FOLDER URL DIGEST BYTES`.
 */
import { digestOfHex, plainBlobs } from '@rackwright/oci';
import {
  callersHashes,
  nodeClock,
  nodeLargeFiles,
  nodeLog,
  nodeWebClient,
} from '@rackwright/platform/node';
import { BlobCache } from './blob-cache.ts';

const [folder = '', url = '', digest = '', bytes = ''] = process.argv.slice(2);
const cache = await BlobCache.open({
  hashes: callersHashes,
  ...{ clock: nodeClock(), log: nodeLog('error'), files: nodeLargeFiles(), folder },
  bytesMax: 100_000_000,
});
const wanted = { digest: digestOfHex(digest.replace('sha256:', '')), sizeBytes: Number(bytes) };
const never = new AbortController().signal;
await cache.pin(wanted, plainBlobs(nodeWebClient(), url), never, () => {});
