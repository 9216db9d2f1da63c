/**
 * A host's side: `write.ts DISK` puts the image that it is told of onto a disk, which is a file,
 * and says when all of it is written and has been read back.
 */
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { nodeClock, nodeExec, nodeHashes, nodeWebClient } from '@rackwright/platform/node';
import {
  type ImageFile,
  openDirect,
  patientLimits,
  provisionDisk,
  unxz,
  webSource,
} from '@rackwright/runner';

export interface WriterOrder {
  readonly url: string;
  readonly image: ImageFile;
}

export type WriterReply = 'ready' | 'readBack';

const [path = ''] = process.argv.slice(2);
const say = (said: WriterReply): void => void process.send?.(said);
const open = await openDirect(path, nodeExec(undefined, 'ours'));
const disk = { open, sizeBytes: statSync(path).size, blockBytes: 512 };
const order = once(process, 'message');
say('ready');
const [{ url, image }] = (await order) as [WriterOrder];

const parts = {
  ...{ unxz, hashes: nodeHashes(), limits: patientLimits(nodeClock()) },
  requestBegin: async () => ({ kind: 'granted' }) as const,
};
const source = webSource(nodeWebClient(), url);
const never = new AbortController().signal;
const end = await provisionDisk({ image, grow: false }, source, disk, () => {}, never, parts);
await open.close();
if (end.kind === 'failed') throw new Error(`${end.fault}: ${end.message}`);
say('readBack');
// Until it is ended, so that its memory can be told.
await once(process, 'disconnect');
