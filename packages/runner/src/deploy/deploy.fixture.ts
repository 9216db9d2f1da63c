/** Disks made of files and a small image with a partition table, for tests of deployments. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type * as agent from '@rackwright/messages/agent';

export const mib = 1024 * 1024;
const sectorBytes = 512;

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Boot code, an MBR with one partition of Linux, and bytes that do not repeat. */
export function diskImage(sizeBytes = 4 * mib): Buffer {
  const image = Buffer.alloc(sizeBytes);
  let state = createHash('sha256').update('image').digest();
  for (let at = mib; at < sizeBytes; at += 64) {
    state = createHash('sha256').update(state).digest();
    state.copy(image, at);
  }
  image.write('boot code');
  image.set([0x55, 0xaa], 510);
  const entry = image.subarray(446, 462);
  entry[4] = 0x83;
  entry.writeUInt32LE(mib / sectorBytes, 8);
  entry.writeUInt32LE((sizeBytes - mib) / sectorBytes, 12);
  return image;
}

/** A disk full of a pattern, in this folder or a new one, which is answered. */
export function addDisk(
  name: string,
  description: object,
  folder = mkdtempSync(join(tmpdir(), 'rackwright-deploy-')),
  sizeBytes = 14 * mib,
): string {
  writeFileSync(join(folder, `${name}.json`), JSON.stringify(description));
  writeFileSync(join(folder, `${name}.img`), Buffer.alloc(sizeBytes, 'PATTERN!'));
  return folder;
}

export function removeDisks(folder: string): void {
  rmSync(folder, { recursive: true });
}

export function contentOf(folder: string, name: string): Buffer {
  return readFileSync(join(folder, `${name}.img`));
}

export interface ServedImages {
  /** "host:port" */
  readonly endpoint: string;
  /** By their SHA-256. */
  readonly blobs: Map<string, Uint8Array>;
  close(): void;
}

/** A web server with the paths of our agents. */
export async function serveImages(...images: readonly Uint8Array[]): Promise<ServedImages> {
  const blobs = new Map(images.map((image) => [sha256(image), image]));
  const server = createServer((request, response) => {
    const bytes = blobs.get(/^\/v2\/blobs\/sha256\/(.*)$/.exec(request.url ?? '')?.[1] ?? '');
    response.writeHead(bytes === undefined ? 404 : 200).end(bytes);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  const { port } = server.address() as AddressInfo;
  return { endpoint: `127.0.0.1:${port}`, blobs, close };
}

/** The content of the first-boot partition. */
export function seedText(
  folder: string,
  name: string,
  written: agent.WrittenImage | undefined,
): string {
  const partition = written?.partitions.find(({ seed }) => seed);
  if (partition === undefined) throw new Error('no seed was written');
  const start = Number(partition.offsetBytes);
  const bytes = contentOf(folder, name).subarray(start, start + Number(partition.sizeBytes));
  return bytes.toString('latin1');
}
