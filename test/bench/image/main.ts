/**
 * How quickly an image comes onto the disks of hosts: `npm run bench -- image [--mib N]
 * [--writers N,N] [--rounds N] [--compression zstd|gzip] [--folder PATH] [--memory]`.
 *
 * A packed disk is published to a registry, fetched into a cache by the agent, and written by N
 * processes of the runner off the agent's HTTP, each onto a file past the page cache and read back.
 * The disks are written while the image comes into the cache, as in a rack. All rates are MB/s of
 * what stands on the disks, of all hosts together, medians of the rounds.
 *
 * Beside it, in the same rounds on the same bytes, stand Debian's tools: each of them alone, N at
 * once where ours are N, and all of them in one pipe: curl, both hashes, unpack, dd. The pipe keeps
 * no image, and reads nothing back. Ends with 1 where ours reach less of the pipe than the floor:
 * with one writer all of it, with more 70 % of what so many pipes reach together. Processor time is
 * what the machine's other work changes least.
 *
 * `--memory`: instead, how much memory 8 GiB take above 1 GiB. Needs 24 GiB of disk, and 8 more for
 * each writer beyond the first.
 */

import { createReadStream, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type Digest,
  digestOf,
  emptyConfig,
  manifestMediaType,
  parseDigest,
  RegistryPublisher,
  writeHostManifest,
} from '@rackwright/oci';
import { nodeWebClient } from '@rackwright/platform/node';
import { type Registry, startRegistry } from '../../peers-tests/oci/registry.ts';
import { peer } from '../../peers-tests/peer.ts';
import { programArguments, wholeArgument } from '../../program-arguments.ts';
import { type DeployTimes, deploy, type PublishedImage } from './deploy.ts';
import { judged, lineOf, type Row } from './table.ts';
import {
  type Bytes,
  type Compression,
  compressions,
  namesFor,
  runTool,
  shell,
  type ToolName,
  toolsFor,
} from './tools.ts';

const mebibyte = 1024 * 1024;
const repository = 'bench';
const memoryMibMax = 32;

const { values } = programArguments({
  options: {
    mib: { type: 'string', default: '1024' },
    writers: { type: 'string', default: '1,2' },
    rounds: { type: 'string', default: '3' },
    compression: { type: 'string', default: 'zstd' },
    folder: { type: 'string', default: tmpdir() },
    memory: { type: 'boolean', default: false },
  },
});
const rounds = wholeArgument('--rounds', values.rounds);
const writerCounts = values.writers.split(',').map((each) => wholeArgument('--writers', each));
const compression = Object.keys(compressions).find(
  (each): each is Compression => each === values.compression,
);
if (compression === undefined) {
  throw new Error(
    `--compression ${values.compression}: one of ${Object.keys(compressions).join(', ')}`,
  );
}
const program = peer('docker-registry');
if (program.kind === 'missing') throw new Error(program.reason);
const folder = await mkdtemp(join(values.folder, 'rackwright-bench-image-'));
const [raw, packed] = [join(folder, 'raw'), join(folder, 'packed')];
const allDisks = Array.from({ length: Math.max(...writerCounts) }, (_, index) =>
  join(folder, `disk${index}`),
);
const registry = await startRegistry(program.path, false);
try {
  if (values.memory) await compareMemory(registry, compression);
  else await compareSpeed(registry, compression, wholeArgument('--mib', values.mib));
} finally {
  await registry.close();
  await rm(folder, { recursive: true, force: true });
}

async function compareSpeed(from: Registry, by: Compression, mib: number): Promise<void> {
  await makeContent(mib);
  const { image, blob } = await publish(from, by, mib, 1);
  const blobUrl = `http://${from.name}/v2/${repository}/blobs/${blob}`;
  for (const disk of allDisks) await makeDisk(disk, mib);
  console.log(`${mib} MiB on each disk, ${statSync(packed).size} bytes packed by`);
  console.log(`${compressions[by].pack}; ${availableParallelism()} processors; ${rounds} rounds.`);
  for (const many of writerCounts) {
    const disks = allDisks.slice(0, many);
    const bytes = { blobUrl, packed, raw, disks, mib, compression: by, to: join(folder, 'to') };
    const { tools, pipe, fetched, written, ours } = await measure(image, bytes);
    console.log(`\n${`${many} at once`.padEnd(42)}  N   MB/s  ${' '.repeat(14)}  ms/MB`);
    for (const row of [...tools, pipe, fetched, written, ours]) console.log(lineOf(row));
    const { lines, isQuick } = judged(ours, pipe, tools);
    for (const line of lines) console.log(line);
    if (!isQuick) process.exitCode = 1;
  }
}

interface Measured {
  readonly tools: readonly Row[];
  readonly pipe: Row;
  readonly fetched: Row;
  readonly written: Row;
  readonly ours: Row;
}

/** A row whose rounds are still to come. */
interface Rounds extends Row {
  readonly rates: number[];
  readonly cpu: number[];
}

async function measure(image: PublishedImage, bytes: Bytes): Promise<Measured> {
  const { disks, mib, to } = bytes;
  const tools = toolsFor(bytes);
  const names = namesFor(bytes.compression);
  const roundsOf = (name: string, many: number): Rounds => ({ name, many, rates: [], cpu: [] });
  const rows = new Map<ToolName, Rounds>();
  for (const [name, { many }] of Object.entries(tools)) {
    rows.set(name as ToolName, roundsOf(names[name as ToolName], many));
  }
  const ours = roundsOf('rackwright: registry → disks, read back', disks.length);
  const fetched = roundsOf('  of that: registry → cache', 1);
  const written = roundsOf('  and: begun → disks, read back', disks.length);
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, row] of rows) {
      await settle();
      const { took, cpuSeconds } = await runTool(tools[name], disks);
      row.rates.push(rate(mib, row.many, took));
      row.cpu.push((1_000 * cpuSeconds) / megabytes(mib, row.many));
      await rm(to, { force: true });
    }
    await settle();
    const times = await deploy(image, join(folder, 'cache'), disks);
    ours.rates.push(rate(mib, disks.length, times.untilReadBack));
    ours.cpu.push((1_000 * times.cpuSeconds) / megabytes(mib, disks.length));
    fetched.rates.push(rate(mib, 1, times.fetched));
    written.rates.push(rate(mib, disks.length, times.written));
  }
  const pipe = rows.get('pipe');
  if (pipe === undefined) throw new Error('the tools have no pipe');
  rows.delete('pipe');
  return { tools: [...rows.values()], pipe, fetched, written, ours };
}

async function compareMemory(from: Registry, by: Compression): Promise<void> {
  const disks = allDisks.slice(0, writerCounts[0]);
  const writers = disks.length;
  await makeContent(1024);
  const peaks: DeployTimes[] = [];
  for (const gibibytes of [1, 8]) {
    const mib = gibibytes * 1024;
    const { image } = await publish(from, by, mib, gibibytes);
    await rm(packed);
    for (const disk of disks) await shell(`rm -f ${disk}; fallocate -l ${mib + 2}MiB ${disk}`);
    const times = await deploy(image, join(folder, 'cache'), disks);
    peaks.push(times);
    const speed = rate(mib, writers, times.untilReadBack).toFixed(0);
    const most = `agent at most ${times.rackPeakMib.toFixed(0)} MiB`;
    const each = `a writer at most ${times.writerPeakMib.toFixed(0)} MiB`;
    console.log(`${gibibytes} GiB onto ${writers} disks: ${most}, ${each}; ${speed} MB/s`);
  }
  const who = { agent: 'rackPeakMib', writer: 'writerPeakMib' } as const;
  for (const [name, of] of Object.entries(who)) {
    const [one = 0, eight = 0] = peaks.map((each) => each[of]);
    const more = eight - one;
    const verdict = more <= memoryMibMax ? 'met' : 'TOO MUCH';
    const told = `8 GiB took ${more.toFixed(0)} MiB more than 1 GiB`;
    console.log(`${name}: ${told}; at most ${memoryMibMax}: ${verdict}`);
    if (more > memoryMibMax) process.exitCode = 1;
  }
}

/** MB/s of what stands on the disks. */
function rate(mib: number, many: number, seconds: number): number {
  return megabytes(mib, many) / seconds;
}

function megabytes(mib: number, many: number): number {
  return (mib * mebibyte * many) / 1e6;
}

/** What was written before is not written to the disk at the cost of what is measured next. */
async function settle(): Promise<void> {
  await shell('sync');
}

/** Half noise, half this machine's programs: what compresses neither well nor not at all. */
async function makeContent(mib: number): Promise<void> {
  const half = Math.floor(mib / 2);
  // As often as is needed, and no more: what stops reading does not stop the loop.
  const times = Math.ceil((half * mebibyte) / statSync(process.execPath).size);
  const loop = `for time in $(seq ${times}); do cat ${process.execPath} 2> /dev/null; done`;
  const programs = `{ ${loop} || true; } | head -c ${half}M`;
  await shell(`{ head -c ${mib - half}M /dev/urandom; ${programs}; } > ${raw}`);
}

/** Written once, so that no stage is the first that needs space of the file system. */
async function makeDisk(path: string, mib: number): Promise<void> {
  await shell(`dd if=/dev/zero of=${path} bs=1M count=${mib + 2} conv=fsync status=none`);
}

/** Packs the content so many times over into one file, and pushes that as the image of a host. */
async function publish(
  { name }: Registry,
  by: Compression,
  mib: number,
  times: number,
): Promise<{ readonly image: PublishedImage; readonly blob: Digest }> {
  const content = `for time in $(seq ${times}); do cat ${raw}; done`;
  await shell(`${content} | ${compressions[by].pack} > ${packed}`);
  const contentDigest = digestIn(await shell(`${content} | sha256sum`));
  const layer = { digest: digestIn(await shell(`sha256sum ${packed}`)), ...sizeOf(packed) };
  const access = { registry: name, plainHttp: true, credential: undefined };
  const publisher = new RegistryPublisher(nodeWebClient(), access);
  await publisher.blob({ repository, ...layer }, createReadStream(packed));
  const config = { digest: digestOf(emptyConfig), sizeBytes: emptyConfig.length };
  await publisher.blob({ repository, ...config }, one(emptyConfig));
  const role = { role: 'disk', format: 'raw', compression: by } as const;
  const told = { contentBytes: mib * mebibyte, contentDigest };
  const layers = [{ ...layer, ...told, role }];
  const manifest = writeHostManifest({ layers, version: 'bench', architecture: 'amd64' });
  const digest = await publisher.manifest(repository, manifest, manifestMediaType);
  return { image: { registry: name, repository, digest }, blob: layer.digest };
}

function digestIn(output: string): Digest {
  const digest = parseDigest(`sha256:${output.slice(0, 64)}`);
  if (digest === undefined) throw new Error(`sha256sum: ${output}`);
  return digest;
}

function sizeOf(path: string): { readonly sizeBytes: number } {
  return { sizeBytes: statSync(path).size };
}

async function* one(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
