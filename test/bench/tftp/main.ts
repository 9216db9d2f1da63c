/**
 * What our TFTP server costs beside others: `npm run bench -- tftp [--transfers N] [--mib N]
 * [--rounds N]`. Prints CPU time per megabyte and megabytes a second, at windows of 1, 4 and 16
 * blocks of 1,468 bytes, N transfers at once of one file.
 *
 * Bare Node is a server of some sixty lines that refuses and bounds nothing (`bare.main.ts`), as
 * most would write it, and once more with connected sockets. All servers run at the same time and
 * are asked by turns, so that each sees the same of what else the machine does. The client is ours,
 * the same for all; its ceiling is what it could fetch with a processor of its own. Where a server
 * comes near to that, the client is what was measured. A server that does not know windows is asked
 * for them and does what it can: the table says so.
 *
 * A peer that is not installed is named and left out; unpacked copies count when PATH finds them,
 * as Debian's atftpd and tftpd-hpa cannot be installed together. dnsmasq needs root, for its port.
 *
 * Ends with 1 when ours takes more than 1.1 times the CPU time of bare Node at any window, or more
 * than 1.3 times that of atftpd where windows are larger than one block.
 */
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type Fetched, fetchTogether } from './client.ts';
import { CpuMeter } from './cpu.ts';
import { type Running, type ServerName, serve, startServers } from './servers.ts';

const mebibyte = 1024 * 1024;
const blockBytes = 1_468;
const windows = [1, 4, 16];

interface Sample {
  readonly megabytesPerSecond: number;
  readonly cpuMsPerMegabyte: number;
  /** The client, if it had a processor of its own and nothing to wait for. */
  readonly ceilingMegabytesPerSecond: number;
  readonly grantedWindow: number;
}

/** Of one server at one window, one for each round. */
type Samples = Map<string, Sample[]>;

const keyOf = (name: ServerName, window: number): string => `${name} ${window}`;

async function measure(
  { name, pid, address, port, ended }: Running,
  windowBlocks: number,
  { transfers, mib }: { transfers: number; mib: number },
): Promise<Sample> {
  const meter = new CpuMeter(pid);
  const cpuBefore = meter.readMs();
  const clientBefore = process.cpuUsage();
  const startedMs = performance.now();
  const order = { address, port, fileName: 'file', transfers, blockBytes, windowBlocks };
  const fetched: Fetched = await Promise.race([ended, fetchTogether(order)]);
  const seconds = (performance.now() - startedMs) / 1_000;
  const client = process.cpuUsage(clientBefore);
  const cpuMs = meter.readMs() - cpuBefore;
  meter.stop();
  if (fetched.bytes !== transfers * mib * mebibyte) {
    throw new Error(`${name} sent ${fetched.bytes} bytes`);
  }
  const megabytes = fetched.bytes / 1e6;
  return {
    megabytesPerSecond: megabytes / seconds,
    cpuMsPerMegabyte: cpuMs / megabytes,
    ceilingMegabytesPerSecond: megabytes / ((client.user + client.system) / 1e6),
    grantedWindow: fetched.windowBlocks,
  };
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.length >> 1;
  const [low = Number.NaN, high = Number.NaN] = [sorted[(sorted.length - 1) >> 1], sorted[middle]];
  return (low + high) / 2;
}

/** Of the CPU time, one for each round: both of a round saw the same machine. */
function ratios(ours: readonly Sample[], theirs: readonly Sample[]): number[] {
  return ours.map(
    (one, round) => one.cpuMsPerMegabyte / (theirs[round]?.cpuMsPerMegabyte ?? Number.NaN),
  );
}

/** "median (lowest to highest)" */
function spread(values: readonly number[]): string {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return `${median(values).toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})`;
}

/** The table of one window; returns what is over its floor. */
function report(samples: Samples, names: readonly ServerName[], window: number): string[] {
  const of = (name: ServerName): readonly Sample[] => samples.get(keyOf(name, window)) ?? [];
  const all = names.flatMap(of);
  const ceiling = median(all.map((one) => one.ceilingMegabytesPerSecond));
  console.log(`\nwindow of ${window}; the client's ceiling: ${ceiling.toFixed(0)} MB/s`);
  const columns = ['ms CPU/MB', 'MB/s', 'ours to theirs'];
  console.log(`${''.padEnd(16)}${columns.map((one) => one.padStart(10)).join('  ')}`);
  for (const name of names) {
    const own = of(name);
    const cost = median(own.map((one) => one.cpuMsPerMegabyte)).toFixed(2);
    const speed = median(own.map((one) => one.megabytesPerSecond)).toFixed(0);
    const granted = own[0]?.grantedWindow ?? 1;
    const note = granted === window ? '' : `  granted a window of ${granted}`;
    const ratio = name === 'rackwright' ? '' : spread(ratios(of('rackwright'), own));
    console.log(`${name.padEnd(16)}${cost.padStart(10)}  ${speed.padStart(10)}  ${ratio}${note}`);
  }
  const over = (peer: ServerName, floor: number): string[] => {
    if (!names.includes(peer)) return [];
    const found = median(ratios(of('rackwright'), of(peer)));
    if (found <= floor) return [];
    return [`window of ${window}: ${found.toFixed(2)} times ${peer}'s CPU, ${floor} are allowed`];
  };
  return [...over('bare Node', 1.1), ...(window > 1 ? over('atftpd', 1.3) : [])];
}

/** Adds a sample of each server at each window. */
async function oneRound(
  samples: Samples,
  running: readonly Running[],
  load: Parameters<typeof measure>[2],
): Promise<void> {
  for (const window of windows) {
    for (const server of running) {
      const key = keyOf(server.name, window);
      const sample = await measure(server, window, load);
      samples.set(key, [...(samples.get(key) ?? []), sample]);
    }
  }
}

async function compare(transfers: number, mib: number, rounds: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'rackwright-bench-'));
  const running: Running[] = [];
  try {
    await chmod(folder, 0o755);
    await writeFile(join(folder, 'file'), new Uint8Array(mib * mebibyte).fill(7));
    running.push(...(await startServers(folder)));
    const samples: Samples = new Map();
    // What comes first warms up: each server compiles and maps what it needs.
    await oneRound(new Map(), running, { transfers, mib });
    for (let round = 0; round < rounds; round += 1) {
      await oneRound(samples, running, { transfers, mib });
    }
    console.log(`${transfers} transfers at once of ${mib} MiB each, ${rounds} rounds, medians`);
    const names = running.map(({ name }) => name);
    const problems = windows.flatMap((window) => report(samples, names, window));
    for (const problem of problems) console.log(problem);
    if (problems.length > 0) process.exitCode = 1;
  } finally {
    await Promise.all(running.map((one) => one.stop()));
    await rm(folder, { recursive: true });
  }
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    transfers: { type: 'string', default: '16' },
    mib: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '5' },
  },
});
const [action = '', served = '', port = ''] = positionals;
if (action === 'serve') await serve(served, Number(port));
else await compare(Number(values.transfers), Number(values.mib), Number(values.rounds));
