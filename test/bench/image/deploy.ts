/** One image from the registry through the cache onto the disks of N hosts, by the clock. */
import { rm } from 'node:fs/promises';
import { type Digest, type DiskImage, hexOf } from '@rackwright/oci';
import type { ImageFile } from '@rackwright/runner';
import { Part } from './part.ts';
import type { RackOrder, RackReply } from './rack.ts';
import type { WriterOrder, WriterReply } from './write.ts';

export interface PublishedImage {
  readonly registry: string;
  readonly repository: string;
  /** Of the manifest. */
  readonly digest: Digest;
}

/** Seconds; of several hosts the slowest counts. */
export interface DeployTimes {
  readonly fetched: number;
  /** Written, and read back meanwhile. */
  readonly written: number;
  /** From the beginning until all disks were read back. */
  readonly untilReadBack: number;
  /** Processor time of agent and hosts for that. */
  readonly cpuSeconds: number;
  readonly rackPeakMib: number;
  readonly writerPeakMib: number;
}

type Rack = Part<RackOrder, RackReply>;
type Writer = Part<WriterOrder, WriterReply>;

/** As in a rack: hosts write the image as it comes. */
export async function deploy(
  { registry, repository, digest }: PublishedImage,
  cacheFolder: string,
  disks: readonly string[],
): Promise<DeployTimes> {
  const rack: Rack = new Part('rack.ts', [cacheFolder, registry, repository, digest]);
  const writers = disks.map((disk): Writer => new Part('write.ts', [disk]));
  try {
    const { port } = await expectSaid(rack, 'serves');
    for (const writer of writers) await expectWord(writer, 'ready');
    const parts = [rack, ...writers];
    const cpuSeconds = (): number => parts.reduce((sum, part) => sum + part.cpuSeconds(), 0);
    const before = cpuSeconds();
    const startedMs = performance.now();
    rack.tell({ hosts: disks.length });
    const { disk } = await expectSaid(rack, 'begun');
    const url = `http://127.0.0.1:${port}/v2/blobs/sha256/${hexOf(disk.blob.digest)}`;
    const told = { url, image: fileOf(disk) };
    const writing = Promise.all(writers.map((writer) => write(writer, told, startedMs)));
    await expectSaid(rack, 'whole');
    const fetched = since(startedMs);
    const hosts = await writing;
    const most = (of: (host: HostTimes) => number): number => Math.max(...hosts.map(of));
    return {
      fetched,
      written: most(({ written }) => written),
      untilReadBack: most(({ untilReadBack }) => untilReadBack),
      cpuSeconds: cpuSeconds() - before,
      rackPeakMib: rack.peakMib(),
      writerPeakMib: Math.max(...writers.map((writer) => writer.peakMib())),
    };
  } finally {
    await Promise.all([rack, ...writers].map((part) => part.stop()));
    await rm(cacheFolder, { recursive: true, force: true });
  }
}

type HostTimes = Pick<DeployTimes, 'written' | 'untilReadBack'>;

async function write(writer: Writer, told: WriterOrder, startedMs: number): Promise<HostTimes> {
  const toldMs = performance.now();
  writer.tell(told);
  await expectWord(writer, 'readBack');
  return { written: since(toldMs), untilReadBack: since(startedMs) };
}

function since(startedMs: number): number {
  return (performance.now() - startedMs) / 1_000;
}

/** As the agent tells the runner of it. */
function fileOf({ blob, contentBytes, contentDigest, format, compression }: DiskImage): ImageFile {
  return {
    ...{ sha256: hexOf(blob.digest), sizeBytes: blob.sizeBytes },
    ...(format === undefined ? {} : { format }),
    ...(compression === undefined ? {} : { compression }),
    ...(contentBytes === undefined ? {} : { contentSizeBytes: contentBytes }),
    ...(contentDigest === undefined ? {} : { contentSha256: hexOf(contentDigest) }),
  };
}

async function expectSaid<Kind extends RackReply['kind']>(
  rack: Rack,
  kind: Kind,
): Promise<Extract<RackReply, { readonly kind: Kind }>> {
  const said = await rack.said();
  if (said.kind !== kind) throw new Error(`the rack says ${said.kind} instead of ${kind}`);
  return said as Extract<RackReply, { readonly kind: Kind }>;
}

async function expectWord(writer: Writer, word: WriterReply): Promise<void> {
  const said = await writer.said();
  if (said !== word) throw new Error(`a writer says ${said} instead of ${word}`);
}
