/**
 * How quickly images come onto a disk: `npm run bench -- image-write [--mib N] [--rounds N]
 * [--folder PATH] [--memory]`. What is ours decompresses, hashes twice and writes past the page
 * cache; each of these stands beside Debian's tool for it alone, on the same bytes in the same run.
 * Ends with 1 when it is slower than half of the slowest of them. The disk is a file in `folder`.
 *
 * `--memory`: instead, how much memory 8 GiB take above 1 GiB; into a disk that keeps nothing.
 */
import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';

const run = promisify(execFile);
const mebibyte = 1024 * 1024;
/** Of the slowest tool alone. */
const floorShare = 0.5;
const aimShare = 0.9;
const memoryMibMax = 32;
const ddFlags = 'bs=1M status=none';

const { values } = parseArgs({
  options: {
    mib: { type: 'string', default: '1024' },
    rounds: { type: 'string', default: '3' },
    folder: { type: 'string', default: tmpdir() },
    memory: { type: 'boolean', default: false },
  },
});
const folder = await mkdtemp(join(values.folder, 'rackwright-bench-write-'));
try {
  if (values.memory) await compareMemory();
  else await compareSpeed(Number(values.mib), Number(values.rounds));
} finally {
  await rm(folder, { recursive: true, force: true });
}

interface Outcome {
  readonly bytes: number;
  readonly writeSeconds: number;
  readonly readSeconds: number;
  readonly peakKib: number;
}

async function write(args: readonly string[]): Promise<Outcome> {
  const script = join(import.meta.dirname, './write.ts');
  const { stdout } = await run(process.execPath, [script, ...args]);
  return JSON.parse(stdout) as Outcome;
}

async function compareSpeed(mib: number, rounds: number): Promise<void> {
  const [raw, disk] = [join(folder, 'raw'), join(folder, 'disk')];
  await makeContent(raw, mib);
  await run('dd', ['if=/dev/zero', `of=${disk}`, 'bs=1M', `count=${mib + 2}`, 'status=none']);
  const packers = { 'zstd -3': ['zst', 'zstd -q -3 -c'], 'gzip -1': ['gz', 'gzip -1 -c'] } as const;
  for (const [name, [suffix, command]] of Object.entries(packers)) {
    const packed = `${raw}.${suffix}`;
    await shell(`${command} ${raw} > ${packed}`);
    const digest = (await run('sha256sum', [packed])).stdout.slice(0, 64);
    const rates = {
      unpack: [],
      hash: [],
      hashes: [],
      dd: [],
      read: [],
      ours: [],
      oursRead: [],
    } as Rates;
    for (let round = 0; round < rounds; round += 1) {
      const bytes = mib * mebibyte;
      const rate = (seconds: number): number => bytes / 1e6 / seconds;
      rates.unpack.push(rate(await shell(`${command.split(' ')[0]} -d -c ${packed} > /dev/null`)));
      rates.hash.push(rate(await shell(`openssl dgst -sha256 ${raw} > /dev/null`)));
      rates.hashes.push(rate(await shell(`openssl dgst -sha256 ${packed} ${raw} > /dev/null`)));
      rates.dd.push(
        rate(await shell(`dd if=${raw} of=${disk} ${ddFlags} oflag=direct conv=notrunc,fsync`)),
      );
      rates.read.push(
        rate(await shell(`dd if=${disk} of=/dev/null ${ddFlags} count=${mib} iflag=direct`)),
      );
      const outcome = await write(['disk', packed, digest, disk]);
      rates.ours.push(rate(outcome.writeSeconds));
      rates.oursRead.push(rate(outcome.readSeconds));
    }
    report(name, rates);
  }
}

interface Rates {
  readonly unpack: number[];
  readonly hash: number[];
  /** Of the file and of what it holds: ours makes both. */
  readonly hashes: number[];
  readonly dd: number[];
  readonly read: number[];
  readonly ours: number[];
  readonly oursRead: number[];
}

function report(name: string, rates: Rates): void {
  console.log(`\n${name}, MB/s of what stands on the disk`);
  const unpack = tell(`${name.split(' ')[0]} -d alone`, rates.unpack);
  const hash = tell('openssl dgst -sha256 alone', rates.hash);
  tell('openssl, file and content', rates.hashes);
  const dd = tell('dd oflag=direct alone', rates.dd);
  const read = tell('dd iflag=direct alone', rates.read);
  const ours = tell('rackwright: unpack, hash, write', rates.ours);
  const oursRead = tell('rackwright: read back, hash', rates.oursRead);
  judge('writing', ours, Math.min(unpack, hash, dd));
  judge('reading back', oursRead, Math.min(read, hash));
}

/** Answers the median. */
function tell(name: string, rates: readonly number[]): number {
  const sorted = [...rates].sort((left, right) => left - right);
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0;
  const range = `${sorted[0]?.toFixed(0)} – ${sorted.at(-1)?.toFixed(0)}`;
  console.log(`${name.padEnd(34)} ${median.toFixed(0).padStart(6)}   (${range})`);
  return median;
}

function judge(name: string, rate: number, alone: number): void {
  const share = rate / alone;
  const verdict = share >= aimShare ? 'aim met' : share >= floorShare ? 'floor met' : 'TOO SLOW';
  console.log(`${name}: ${(share * 100).toFixed(0)} % of the slowest tool alone: ${verdict}`);
  if (share < floorShare) process.exitCode = 1;
}

async function shell(command: string): Promise<number> {
  const startedMs = performance.now();
  await run('/bin/sh', ['-c', command]);
  return (performance.now() - startedMs) / 1_000;
}

/** Half noise, half this machine's programs: what compresses neither well nor not at all. */
async function makeContent(path: string, mib: number): Promise<void> {
  const half = Math.floor(mib / 2);
  // As often as is needed, and no more: what stops reading does not stop the loop.
  const times = Math.ceil((half * mebibyte) / statSync(process.execPath).size);
  const loop = `for time in $(seq ${times}); do cat ${process.execPath}; done`;
  const programs = `${loop} | head -c ${half}M`;
  await shell(`{ head -c ${mib - half}M /dev/urandom; ${programs}; } > ${path}`);
}

async function compareMemory(): Promise<void> {
  const peaks: number[] = [];
  for (const gibibytes of [1, 8]) {
    const outcome = await write(['sink', String(gibibytes)]);
    const rate = outcome.bytes / 1e6 / outcome.writeSeconds;
    const peakMib = outcome.peakKib / 1024;
    peaks.push(peakMib);
    console.log(`${gibibytes} GiB: at most ${peakMib.toFixed(0)} MiB, ${rate.toFixed(0)} MB/s`);
  }
  const [one = 0, eight = 0] = peaks;
  const more = eight - one;
  console.log(`8 GiB took ${more.toFixed(0)} MiB more than 1 GiB; at most ${memoryMibMax}`);
  if (more > memoryMibMax) process.exitCode = 1;
}
