/**
 * How quickly images come into a rack: `npm run bench -- image [--mib N] [--rounds N] [--readers N]
 * [--memory]`. Each stage stands beside Debian's tools on the same bytes in the same run; what is
 * ours includes hashing and an fsync. Ends with 1 when a stage is slower than half of the slowest
 * of those tools alone.
 *
 * `--memory`: instead, how much memory a fetch of 8 GiB takes above one of 1 GiB. Needs 8 GiB of
 * disk.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { copyFile, mkdir, mkdtemp, open, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { type Digest, hexOf, parseDigest, RegistryPublisher } from '@rackwright/oci';
import { nodeWebClient } from '@rackwright/platform/node';
import { startRegistry } from '../../peers-tests/oci/registry.ts';
import { peer } from '../../peers-tests/peer.ts';

const run = promisify(execFile);
const mebibyte = 1024 * 1024;
/** Of the slowest tool alone. */
const floorShare = 0.5;
const aimShare = 0.9;
const memoryMibMax = 32;
const zeros = new Uint8Array(256 * 1024);

const { values } = parseArgs({
  options: {
    mib: { type: 'string', default: '1024' },
    rounds: { type: 'string', default: '3' },
    readers: { type: 'string', default: '4' },
    memory: { type: 'boolean', default: false },
  },
});
const [mib, rounds, readers] = [values.mib, values.rounds, values.readers].map(Number);
const folder = await mkdtemp(join(tmpdir(), 'rackwright-bench-image-'));
try {
  if (values.memory) await compareMemory();
  else await compareSpeed(mib ?? 0, rounds ?? 0, readers ?? 0);
} finally {
  await rm(folder, { recursive: true, force: true });
}

async function compareSpeed(size: number, times: number, many: number): Promise<void> {
  const program = peer('docker-registry');
  if (program.kind === 'missing') throw new Error(program.reason);
  const file = join(folder, 'disk');
  const bytes = size * mebibyte;
  const digest = await writeRandom(file, size);
  const registry = await startRegistry(program.path, false);
  try {
    const access = { registry: registry.name, plainHttp: true, credential: undefined };
    const blob = { repository: 'bench', digest, sizeBytes: bytes };
    await new RegistryPublisher(nodeWebClient(), access).blob(blob, createReadStream(file));
    const url = `http://${registry.name}/v2/bench/blobs/${digest}`;
    const stages: readonly Stage[] = [
      { name: 'curl, registry → file', run: (to) => curlTo(url, to) },
      { name: 'sha256sum', run: () => seconds('sha256sum', [file]) },
      { name: 'dd with fsync', run: (to) => seconds('dd', ddArguments(to)) },
      { name: 'rackwright, registry → cache', run: (to) => fetchInto(to, 'bench', blob) },
    ];
    const best = await measure(stages, bytes, times);
    const served = await serveMany(file, digest, bytes, many, times);
    judge('registry → cache', best[3] ?? 0, Math.min(...best.slice(0, 3)));
    judge(`cache → ${many} readers`, served, best[0] ?? 0);
  } finally {
    await registry.close();
  }

  function ddArguments(to: string): string[] {
    return [`if=${file}`, `of=${to}`, 'bs=1M', 'conv=fsync', 'status=none'];
  }

  async function fetchInto(to: string, repository: string, blob: Blob): Promise<number> {
    const { seconds: took } = await fetched(to, `${registry.name}/${repository}`, blob);
    return took;
  }
}

interface Blob {
  readonly digest: Digest;
  readonly sizeBytes: number;
}

interface Stage {
  readonly name: string;
  /** Answers seconds; `to` names what does not exist and is removed after. */
  run(to: string): Promise<number>;
}

/**
 * Every stage in each round, so that all of them meet the same machine. The best of each in MB/s:
 * what else the machine does only ever makes one slower.
 */
async function measure(stages: readonly Stage[], bytes: number, times: number): Promise<number[]> {
  const rates = stages.map((): number[] => []);
  for (let round = 0; round < times; round += 1) {
    for (const [index, stage] of stages.entries()) {
      const to = join(folder, 'to');
      rates[index]?.push(bytes / 1e6 / (await stage.run(to)));
      await rm(to, { recursive: true, force: true });
    }
  }
  return stages.map(({ name }, index) => tell(name, rates[index] ?? []));
}

/** Answers the best. */
function tell(name: string, rates: readonly number[]): number {
  const sorted = [...rates].sort((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0;
  const range = `${sorted[0]?.toFixed(0)} – ${sorted.at(-1)?.toFixed(0)}`;
  console.log(`${name.padEnd(34)} ${median.toFixed(0).padStart(6)} MB/s   (${range})`);
  return sorted.at(-1) ?? 0;
}

function judge(name: string, rate: number, alone: number): void {
  const share = rate / alone;
  const verdict = share >= aimShare ? 'aim met' : share >= floorShare ? 'floor met' : 'TOO SLOW';
  console.log(`${name}: ${(share * 100).toFixed(0)} % of the slowest stage alone: ${verdict}`);
  if (share < floorShare) process.exitCode = 1;
}

async function seconds(program: string, args: readonly string[]): Promise<number> {
  const startedMs = performance.now();
  await run(program, args);
  return (performance.now() - startedMs) / 1_000;
}

/** With what makes it durable, as ours is. */
async function curlTo(url: string, to: string): Promise<number> {
  const took = await seconds('curl', ['--silent', '--fail', '--output', to, url]);
  return took + (await seconds('sync', [to]));
}

async function fetched(to: string, from: string, { digest, sizeBytes }: Blob) {
  const script = join(import.meta.dirname, './fetch.ts');
  const { stdout } = await run(process.execPath, [script, to, from, digest, String(sizeBytes)]);
  return JSON.parse(stdout) as { seconds: number; peakKib: number };
}

/** All readers together, in MB/s. */
async function serveMany(file: string, digest: Digest, bytes: number, many: number, times: number) {
  const cache = join(folder, 'cache');
  await mkdir(cache, { recursive: true });
  await copyFile(file, join(cache, hexOf(digest)));
  const script = join(import.meta.dirname, './serve.ts');
  const child: ChildProcess = spawn(process.execPath, [script, cache, file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    if (child.stdout === null) throw new Error('the server has no output');
    const [port] = (await once(child.stdout, 'data')) as [Buffer];
    const url = `http://127.0.0.1:${String(port).trim()}/v2/blobs/sha256/${hexOf(digest)}`;
    const rates: number[] = [];
    for (let round = 0; round < times; round += 1) {
      const startedMs = performance.now();
      const one = () => run('curl', ['--silent', '--fail', '--output', '/dev/null', url]);
      await Promise.all(Array.from({ length: many }, one));
      rates.push((bytes * many) / 1e6 / ((performance.now() - startedMs) / 1_000));
    }
    return tell(`rackwright, cache → ${many} × curl`, rates);
  } finally {
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
}

/** Random bytes, so that nothing on the way makes them fewer. */
async function writeRandom(path: string, size: number): Promise<Digest> {
  await run('dd', ['if=/dev/urandom', `of=${path}`, 'bs=1M', `count=${size}`, 'status=none']);
  const { stdout } = await run('sha256sum', [path]);
  const digest = parseDigest(`sha256:${stdout.slice(0, 64)}`);
  if (digest === undefined) throw new Error(`sha256sum: ${stdout}`);
  const file = await open(path);
  await file.sync();
  await file.close();
  return digest;
}

async function compareMemory(): Promise<void> {
  const peaks: number[] = [];
  for (const gibibytes of [1, 8]) {
    const sizeBytes = gibibytes * 1024 * mebibyte;
    const server = createServer((_, response) => {
      response.writeHead(200, { 'content-length': sizeBytes });
      const pump = (): void => {
        while (!response.destroyed && response.writableLength < mebibyte) {
          if (sent >= sizeBytes) {
            response.end();
            return;
          }
          sent += zeros.length;
          response.write(zeros);
        }
      };
      let sent = 0;
      response.on('drain', pump);
      pump();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/zeros`;
    const to = join(folder, 'memory');
    const { peakKib, seconds: took } = await fetched(to, url, {
      ...{ digest: digestOfZeros(sizeBytes), sizeBytes },
    });
    peaks.push(peakKib / 1024);
    const rate = (sizeBytes / 1e6 / took).toFixed(0);
    console.log(`${gibibytes} GiB: at most ${(peakKib / 1024).toFixed(0)} MiB, ${rate} MB/s`);
    await rm(to, { recursive: true, force: true });
    server.close();
    server.closeAllConnections();
  }
  const [one = 0, eight = 0] = peaks;
  const more = eight - one;
  console.log(`8 GiB took ${more.toFixed(0)} MiB more than 1 GiB; at most ${memoryMibMax}`);
  if (more > memoryMibMax) process.exitCode = 1;
}

function digestOfZeros(sizeBytes: number): Digest {
  const hash = createHash('sha256');
  for (let left = sizeBytes; left > 0; left -= zeros.length) hash.update(zeros);
  return `sha256:${hash.digest('hex')}` as Digest;
}
