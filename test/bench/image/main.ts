/**
 * How quickly an image comes onto the disks of hosts: `npm run bench -- image [--mib N]
 * [--writers N] [--rounds N] [--compression zstd|gzip] [--folder PATH] [--memory]`.
 *
 * A packed disk is published to a registry, fetched into a cache by the agent, and written by N
 * processes of the runner off the agent's HTTP, each onto a file past the page cache; one stage
 * after the other, as in a rack. All rates are MB/s of what stands on the disks, of all hosts
 * together, medians of the rounds. Beside each stage stand Debian's tools for what it does, on the
 * same bytes in the same rounds, each of them alone: N at once where ours are N. Writing hashes the
 * file and what it holds, so the tool for that hashes both. What is read back has been over the
 * bytes twice, and is compared with the slowest tool of each pass.
 *
 * A writer unpacks, hashes and writes at once, so N is one for every two processors unless it is
 * said. With more, the tools say less: each of them has all processors for itself. What they reach
 * together is told by the pipe.
 *
 * Ends with 1 when a stage is slower than half of the slowest tool.
 *
 * `--memory`: instead, how much memory 8 GiB take above 1 GiB. Needs 24 GiB of disk, and 8 more for
 * each writer beyond the first.
 */
import { createReadStream, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
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
import { type DeployTimes, deploy, type PublishedImage } from './deploy.ts';
import { judged, lineOf, type Row, type StageRow } from './table.ts';
import {
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

const { values } = parseArgs({
  options: {
    mib: { type: 'string', default: '1024' },
    writers: { type: 'string', default: String(Math.max(1, availableParallelism() >> 1)) },
    rounds: { type: 'string', default: '3' },
    compression: { type: 'string', default: 'zstd' },
    folder: { type: 'string', default: tmpdir() },
    memory: { type: 'boolean', default: false },
  },
});
const [writers, rounds] = [count('writers'), count('rounds')];
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
const disks = Array.from({ length: writers }, (_, index) => join(folder, `disk${index}`));
const registry = await startRegistry(program.path, false);
try {
  if (values.memory) await compareMemory(registry, compression);
  else await compareSpeed(registry, compression, count('mib'));
} finally {
  await registry.close();
  await rm(folder, { recursive: true, force: true });
}

function count(name: 'mib' | 'writers' | 'rounds'): number {
  const number = Number(values[name]);
  if (Number.isSafeInteger(number) && number > 0) return number;
  throw new Error(`--${name} ${values[name]}: must be a whole number above 0`);
}

async function compareSpeed(from: Registry, by: Compression, mib: number): Promise<void> {
  await makeContent(mib);
  const { image, blob } = await publish(from, by, mib, 1);
  const blobUrl = `http://${from.name}/v2/${repository}/blobs/${blob}`;
  for (const disk of disks) await makeDisk(disk, mib);
  const to = join(folder, 'to');
  const tools = toolsFor({ blobUrl, packed, raw, disks, mib, compression: by, to });
  const names = namesFor(by);
  const alone = new Map(
    Object.entries(tools).map(([name, { many }]) => [
      name as ToolName,
      { name: names[name as ToolName], many, rates: [] as number[] },
    ]),
  );
  const times: DeployTimes[] = [];
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, row] of alone) {
      await settle();
      row.rates.push(rate(mib, row.many, await runTool(tools[name], disks)));
      await rm(to, { force: true });
    }
    await settle();
    times.push(await deploy(image, join(folder, 'cache'), disks));
  }
  console.log(`${mib} MiB on each of ${writers} disks, ${statSync(packed).size} bytes packed by`);
  console.log(`${compressions[by].pack}; ${availableParallelism()} processors; ${rounds} rounds.`);
  report(mib, alone, times);
}

/** MB/s of content, as the medians of the rounds; and how many at once. */
function report(
  mib: number,
  alone: ReadonlyMap<ToolName, Row>,
  times: readonly DeployTimes[],
): void {
  console.log(`\n${'alone'.padEnd(43)}N   MB/s`);
  for (const row of alone.values()) console.log(lineOf(row));
  const rows = (...names: readonly ToolName[]): Row[] => names.flatMap((n) => alone.get(n) ?? []);
  const fetching = rows('curl', 'hashFile');
  const writing = rows('unpack', 'hashBoth', 'ddWrite');
  const reading = rows('hashContent', 'ddRead');
  // What is fetched once is for all of them.
  const forAll = fetching.map((row) => ({ ...row, rates: row.rates.map((one) => one * writers) }));
  const stage = (
    name: string,
    many: number,
    seconds: readonly number[],
    ...passes: readonly (readonly Row[])[]
  ): StageRow => ({ name, many, rates: seconds.map((each) => rate(mib, many, each)), passes });
  const of = (which: keyof DeployTimes): number[] => times.map((each) => each[which]);
  const stages = [
    stage('registry → cache', 1, of('fetched'), fetching),
    stage('cache → disks: unpack, hash, write', writers, of('written'), writing),
    stage('disks read back and hashed', writers, of('readBack'), reading),
    stage('all: registry → last disk', writers, of('untilReadBack'), forAll, writing, reading),
  ];
  console.log(`\n${'rackwright'.padEnd(43)}N   MB/s`);
  for (const each of stages) {
    const { line, isQuick } = judged(each);
    console.log(line);
    if (!isQuick) process.exitCode = 1;
  }
}

async function compareMemory(from: Registry, by: Compression): Promise<void> {
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
  return (mib * mebibyte * many) / 1e6 / seconds;
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
