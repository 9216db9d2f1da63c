/**
 * Images: a registry, a pool, a rollout that a bad image halts and a good one completes.
 *
 * The file of the bad image ends early. Its digests are right, as its registry has it; so nobody
 * finds out before it is unpacked onto the first host.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { counted, FailureType, HostState } from '@rackwright/messages';
import { runningSystem, systemImage } from '@rackwright/sim/machine';
import { imageDiskModel } from '../fleet.ts';
import { eventually } from '../site/eventually.ts';
import { findSystemOf, holdsImageOf } from '../site/machine.ts';
import {
  notCompleted,
  notHalted,
  type PublishedImage,
  type ReportedHost,
  wrongWith,
} from './deployed.ts';
import { announce, expectThat, type Stage, tell, tellCommand } from './stage.ts';

const pool = 'web';
const repository = 'web';
const imageBytes = 4 * 1024 * 1024;
/** The share of the bad image's file that is kept. */
const keptShare = 0.75;
/** What `pool watch --until current` ends with when the rollout is halted. */
const neverCurrent = 13;
const settledTimeoutMs = 900_000;
const watching = ['pool', 'watch', pool, '--until', 'current'];

/** An image, and the bytes that it is unpacked to. */
interface MadeImage extends PublishedImage {
  readonly content: Buffer;
}

interface Chapter {
  readonly stage: Stage;
  /** Ids of the pool's hosts. */
  readonly members: readonly string[];
  /** Every image that a disk may hold. */
  readonly made: MadeImage[];
}

export async function deployImages(stage: Stage): Promise<void> {
  const takers = stage.fleet.machines.filter(({ takesImages }) => takesImages);
  if (takers.length === 0) return;
  const chapter: Chapter = { stage, members: takers.map(({ name }) => name), made: [] };
  const first = await startPool(chapter);
  await haltRollout(chapter, first);
  await completeRollout(chapter);
}

/** A pool of a few hosts gets its first image. */
async function startPool(chapter: Chapter): Promise<MadeImage> {
  const { stage, members } = chapter;
  const registry = stage.site.registry.name;
  announce(stage, `Images: a registry at ${registry}, and a pool of ${members.join(', ')}.`);
  tell(stage, 'The registry is software, and serves plain HTTP. An image is pushed to it.');
  await type(stage, ['fleet', 'registry', 'set', registry, '--plain-http'], 'hidden');
  const first = await publish(chapter, '1.0');
  tell(stage, 'A label puts a host into the pool; a hint says onto which disk its image comes.');
  for (const name of members) {
    const disk = ['--root-disk', `model=${imageDiskModel}`];
    await type(stage, ['host', 'update', name, '--label', 'role=web', ...disk], 'hidden');
  }
  const image = ['--image', referenceOf(stage, first.version)];
  await type(stage, ['pool', 'create', pool, '--label', 'role=web', ...image], 'hidden');
  await untilCompleted(chapter, first);
  return first;
}

/** One host fails on a bad image; the others are left as they are. */
async function haltRollout(chapter: Chapter, before: MadeImage): Promise<void> {
  const { stage, members } = chapter;
  const { site } = stage;
  announce(stage, 'A bad image: the file of 1.1 ends early, and nobody has noticed.');
  await publish(chapter, '1.1');
  const digest = site.registry.cutShort(repository, '1.1', keptShare);
  await rollOut(stage, '1.1');
  await type(stage, watching, 'shown', neverCurrent);
  const { status } = await site.clients.pools.getPool({ name: `pools/${pool}` });
  const problem = notHalted(status, { digest });
  expectThat(problem === undefined, `a bad image did not halt the rollout: ${problem}`);

  const seen = await Promise.all(members.map((name) => observe(chapter, name)));
  const hit = seen.filter((host) => wrongWith(host, before) !== undefined);
  expectThat(hit.length === 1, `the bad image has hit ${hit.length} hosts, and one was to be`);
  for (const { name } of hit) await explainVictim(stage, name);
  const [broken, whole] = [hit, seen.filter((host) => !hit.includes(host))].map(namesOf);
  tell(stage, `The rollout is halted. Nothing starts on ${broken}; on 1.0 as before: ${whole}.`);
}

function namesOf(hosts: readonly ReportedHost[]): string {
  return hosts.map(({ name }) => name).join(', ') || 'none';
}

/** The cause of the failure has to be shown, and nothing may start from a partly written disk. */
async function explainVictim(stage: Stage, name: string): Promise<void> {
  const { site } = stage;
  const { status } = await site.clients.hosts.getHost({ name: `hosts/${name}` });
  const hasFailed = status?.lastError?.failure?.type === FailureType.IMAGE_TRUNCATED;
  expectThat(hasFailed, `${name} does not say that its image ends early`);
  const { kind } = findSystemOf(site.machine(name));
  expectThat(kind === 'none', `${name} could start from a disk that was written in part`);
  const explained = await type(stage, ['pool', 'explain', pool], 'shown');
  expectThat(explained.includes(name), `the pool does not name ${name}, which has failed`);
}

/** A good image goes onto all of them, the failed one included. */
async function completeRollout(chapter: Chapter): Promise<void> {
  const { stage } = chapter;
  const { registry } = stage.site;
  announce(stage, 'A good image: the file of 1.2 is whole, and the rollout goes on.');
  const good = await publish(chapter, '1.2');
  const before = registry.requests().length;
  await rollOut(stage, good.version);
  await untilCompleted(chapter, good);
  await type(stage, ['pool', 'history', pool], 'shown');
  announce(stage, 'The pool runs 1.2: every disk, read from outside, holds it byte for byte.');
  const reads = registry.requests().slice(before).filter(isDownload).length;
  tell(stage, `Agents keep what they fetch: ${counted(reads, 'download')} from the registry.`);
  expectThat(reads > 0, 'the image came from somewhere else than the registry');
}

/** The digest of a file of an image, not of a manifest. */
function isDownload(request: string): boolean {
  return /^GET \S+\/blobs\/\S+ 20[06]$/.test(request);
}

async function rollOut(stage: Stage, version: string): Promise<void> {
  const args = ['pool', 'update', pool, '--image', referenceOf(stage, version)];
  await type(stage, args, 'hidden');
}

/** Waits until all hosts are on the image, and holds each machine to it. */
async function untilCompleted(chapter: Chapter, wanted: MadeImage): Promise<void> {
  const { stage, members } = chapter;
  const { pools } = stage.site.clients;
  await type(stage, watching, 'shown');
  await eventually(`the pool to be on ${wanted.version}`, settledTimeoutMs, async () => {
    const { status } = await pools.getPool({ name: `pools/${pool}` });
    return notCompleted(status, wanted, members.length) === undefined ? true : undefined;
  });
  for (const name of members) {
    const problem = wrongWith(await observe(chapter, name), wanted);
    expectThat(problem === undefined, `${wanted.version} is not in service: ${problem}`);
  }
}

/** Builds an image and pushes it, as a person would. */
async function publish({ stage, made }: Chapter, version: string): Promise<MadeImage> {
  const { site } = stage;
  const content = systemImage({ name: repository, version }, imageBytes);
  const file = `images/web-${version}.raw.gz`;
  mkdirSync(join(site.folder, 'images'), { recursive: true });
  writeFileSync(join(site.folder, file), gzipSync(content, { level: 1 }));
  const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
  const options = ['--version', version, '--architecture', architecture, '--plain-http'];
  const push = ['image', 'push', file, referenceOf(stage, version), ...options];
  await type(stage, push, 'hidden');
  const digest = site.registry.digestOf(repository, version) ?? '';
  const contentDigest = `sha256:${createHash('sha256').update(content).digest('hex')}`;
  const image = { version, digest, contentDigest, content };
  made.push(image);
  return image;
}

function referenceOf({ site }: Stage, version: string): string {
  return `${site.registry.name}/${repository}:${version}`;
}

/** Runs a command, shows it, and checks its exit code; returns its output. */
async function type(
  stage: Stage,
  args: readonly string[],
  output: 'shown' | 'hidden',
  wantedCode = 0,
): Promise<string> {
  tellCommand(stage, args);
  const result = await stage.site.rackwright(args);
  const isRight = result.code === wantedCode;
  if (output === 'shown' || !isRight) tell(stage, result.output);
  const text = `"${args.slice(0, 2).join(' ')}" ended with exit code ${result.code}`;
  expectThat(isRight, `${text}; it had to be ${wantedCode}`);
  return result.output;
}

async function observe({ stage, made }: Chapter, name: string): Promise<ReportedHost> {
  const { site } = stage;
  const { status } = await site.clients.hosts.getHost({ name: `hosts/${name}` });
  const machine = site.machine(name);
  const image = made.find(({ content }) => holdsImageOf(machine, content));
  return {
    name,
    image: status?.image ?? '',
    contentDigest: status?.writtenDisk?.contentDigest ?? '',
    isProvisioned: status?.state === HostState.PROVISIONED,
    diskHolds: image?.version,
    runs: machine.power.isOn() ? runningSystem(machine.folder)?.version : undefined,
  };
}
