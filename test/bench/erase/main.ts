/**
 * Overwrites loop devices with zeros and reads all of them back: the runner's erase step beside dd,
 * a process for each device, and nwipe, on the same devices, one after the other in each round.
 *
 *   npm run bench -- erase [rounds] [MiB per device] [folder for the files] [without]
 *
 * `without` nwipe leaves it out: it takes half a minute each time. Needs root. dd compares nothing
 * of what it reads; the runner compares each byte, and writes and checks its challenge besides.
 * What must hold: at least 80 % of the speed of dd in each case.
 *
 * The files stand on the machine's disk, past its page cache. In a folder in memory (/dev/shm) no
 * disk is waited for, and what is measured is the memory of the machine: dd never looks at what it
 * reads, and the runner has to.
 */
import { spawn } from 'node:child_process';
import { statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type LoopDisk, LoopDisks, noLoops } from '../../loop-disks.ts';
import { peer } from '../../peers-tests/peer.ts';
import { programArguments, wholeArgument } from '../../program-arguments.ts';
import type { OurTimes } from './ours.ts';

const counts = [1, 4, 8] as const;
const mebibyte = 1024 * 1024;
/** Of the speed of dd. */
const floor = 0.8;
/** As the ramdisk starts the runner. */
const threads = '32';

const { positionals } = programArguments({ allowPositionals: true, options: {} });
const [roundsText = '5', mebibytesText = '1024', place = tmpdir(), without = ''] = positionals;
const rounds = wholeArgument('rounds', roundsText);
const sizeBytes = wholeArgument('MiB per device', mebibytesText) * mebibyte;

/** `tmpfs` of statfs(2). */
const memoryFileSystem = 0x01021994;
const isInMemory = statfsSync(place).type === memoryFileSystem;

const reason = noLoops(place);
if (reason !== undefined) {
  console.error(`bench erase: ${reason}`);
  process.exit(2);
}

/** Runs a program to its end and answers what it wrote. */
function runProgram(file: string, args: readonly string[], env = process.env): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    let text = '';
    child.stdout.on('data', (part: Buffer) => {
      output += part.toString();
    });
    child.stderr.on('data', (part: Buffer) => {
      text += part.toString();
    });
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve(output);
      else reject(new Error(`${file}: exit ${code}: ${text.slice(-500)}`));
    });
  });
}

async function ours(loops: LoopDisks): Promise<number> {
  const env = { ...process.env, UV_THREADPOOL_SIZE: threads };
  const program = join(import.meta.dirname, 'ours.ts');
  const times: OurTimes = JSON.parse(
    await runProgram(process.execPath, [program, loops.folder], env),
  );
  return times.totalMs;
}

async function dd({ disks }: LoopDisks): Promise<number> {
  const startMs = performance.now();
  const direct = (path: string): string[][] => [
    ['if=/dev/zero', `of=${path}`, 'bs=1M', `count=${mebibytesText}`, 'oflag=direct', 'conv=fsync'],
    [`if=${path}`, 'of=/dev/null', 'bs=1M', 'iflag=direct'],
  ];
  await Promise.all(
    disks.map(async ({ path }: LoopDisk) => {
      for (const args of direct(path)) await runProgram('dd', args);
    }),
  );
  return performance.now() - startMs;
}

async function nwipe({ disks }: LoopDisks): Promise<number> {
  const startMs = performance.now();
  const how = ['--autonuke', '--nogui', '--nowait', '--method=zero', '--verify=last'];
  const args = [...how, '--rounds=1', '--noblank', ...disks.map(({ path }) => path)];
  await runProgram('nwipe', args);
  return performance.now() - startMs;
}

/** Middle, least and most. */
function spread(values: readonly number[]): { median: number; least: number; most: number } {
  const sorted = values.toSorted((left, right) => left - right);
  const median = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  return { median, least: sorted[0] ?? Number.NaN, most: sorted.at(-1) ?? Number.NaN };
}

function ratioText(values: readonly number[]): string {
  const { median, least, most } = spread(values.map((value) => 100 * value));
  return `${median.toFixed(0)} % (${least.toFixed(0)} to ${most.toFixed(0)} %)`;
}

const hasNwipe = without !== 'without' && peer('nwipe').kind === 'found';
const noNwipe = without === 'without' ? 'left out' : 'not installed: npm run peers';
if (!hasNwipe) console.log(`nwipe: ${noNwipe}`);
const where = isInMemory ? `${place} (memory)` : place;
console.log(`${rounds} rounds, ${mebibytesText} MiB per device, files in ${where}`);
let isFast = true;
for (const count of counts) {
  const loops = new LoopDisks(place, isInMemory ? 'cached' : 'direct');
  try {
    for (let index = 0; index < count; index++) loops.add(sizeBytes);
    // What is written first takes memory from the kernel; nobody is to pay for that.
    await dd(loops);
    const times: { ours: number[]; dd: number[]; nwipe: number[] } = {
      ours: [],
      dd: [],
      nwipe: [],
    };
    for (let round = 0; round < rounds; round++) {
      // In turns, so that nobody is always the first.
      const both = [
        async () => void times.ours.push(await ours(loops)),
        async () => void times.dd.push(await dd(loops)),
      ];
      for (const run of round % 2 === 0 ? both : both.reverse()) await run();
      if (hasNwipe) times.nwipe.push(await nwipe(loops));
    }
    isFast = report(count, times) && isFast;
  } finally {
    loops.remove();
  }
}
console.log(isFast ? 'The floor holds.' : `Below the floor of ${100 * floor} % of dd.`);
process.exitCode = isFast ? 0 : 1;

/** Prints one case; whether the floor holds. */
function report(
  count: number,
  times: { readonly ours: number[]; readonly dd: number[]; readonly nwipe: number[] },
): boolean {
  // Every byte is written and read.
  const moved = (2 * count * sizeBytes) / 1_000;
  const speed = (ms: readonly number[]): string => `${(moved / spread(ms).median).toFixed(0)} MB/s`;
  const ratios = times.dd.map((ms, round) => ms / (times.ours[round] ?? Number.NaN));
  const parts = [`rackwright ${speed(times.ours)}`, `dd ${speed(times.dd)}`];
  if (times.nwipe.length > 0) parts.push(`nwipe ${speed(times.nwipe)}`);
  console.log(`${count} devices: ${parts.join(', ')}; of dd: ${ratioText(ratios)}`);
  return spread(ratios).median >= floor;
}
