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
 * A peer that is not installed is named and left out; `npm run peers` unpacks those that Debian
 * cannot install together. dnsmasq needs root, for its port.
 *
 * Ends with 1 when ours takes more than 1.1 times the CPU time of bare Node at any window, or more
 * than 1.3 times that of atftpd where windows are larger than one block.
 */

import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { programArguments, serveArguments, wholeArgument } from '../../program-arguments.ts';
import { CpuMeter } from '../beside/cpu.ts';
import { addSample, type Floor, report, type Sample } from '../beside/figures.ts';
import { type Fetched, fetchTogether } from './client.ts';
import { type ServerName, serve, startServers, type TftpServer } from './servers.ts';

const mebibyte = 1024 * 1024;
const blockBytes = 1_468;
const windows = [1, 4, 16];

/** Of each window. */
type Rounds = ReadonlyMap<number, Map<ServerName, readonly Sample[]>>;

const noRounds = (): Rounds => new Map(windows.map((window) => [window, new Map()]));

interface Load {
  readonly transfers: number;
  readonly mib: number;
}

async function measure(
  { name, pid, address, port, ended }: TftpServer,
  windowBlocks: number,
  { transfers, mib }: Load,
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
  const granted = fetched.windowBlocks;
  return {
    unitsPerSecond: megabytes / seconds,
    cpuMsPerUnit: cpuMs / megabytes,
    ceilingUnitsPerSecond: megabytes / ((client.user + client.system) / 1e6),
    ...(granted === windowBlocks ? {} : { note: `granted a window of ${granted}` }),
  };
}

/** The table of one window; returns what is over its floor. */
function reportWindow(samples: Map<ServerName, readonly Sample[]>, window: number): string[] {
  const floors: Floor<ServerName>[] = [{ peer: 'bare Node', ratioMax: 1.1 }];
  if (window > 1) floors.push({ peer: 'atftpd', ratioMax: 1.3 });
  return report({ title: `window of ${window}`, unit: 'MB', samples, floors });
}

/** Adds a sample of each server at each window. */
async function oneRound(rounds: Rounds, running: readonly TftpServer[], load: Load): Promise<void> {
  for (const [window, samples] of rounds) {
    for (const server of running) {
      addSample(samples, server.name, await measure(server, window, load));
    }
  }
}

async function compare(transfers: number, mib: number, rounds: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'rackwright-bench-'));
  const running: TftpServer[] = [];
  try {
    await chmod(folder, 0o755);
    await writeFile(join(folder, 'file'), new Uint8Array(mib * mebibyte).fill(7));
    running.push(...(await startServers(folder)));
    const measured = noRounds();
    // What comes first warms up: each server compiles and maps what it needs.
    await oneRound(noRounds(), running, { transfers, mib });
    for (let round = 0; round < rounds; round += 1) {
      await oneRound(measured, running, { transfers, mib });
    }
    console.log(`${transfers} transfers at once of ${mib} MiB each, ${rounds} rounds, medians`);
    const problems = [...measured].flatMap(([window, one]) => reportWindow(one, window));
    for (const problem of problems) console.log(problem);
    if (problems.length > 0) process.exitCode = 1;
  } finally {
    await Promise.all(running.map((one) => one.stop()));
    await rm(folder, { recursive: true });
  }
}

const { values, positionals } = programArguments({
  allowPositionals: true,
  options: {
    transfers: { type: 'string', default: '16' },
    mib: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '5' },
  },
});
const served = serveArguments(positionals);
if (served !== undefined) {
  const [folder = '', port = ''] = served;
  await serve(folder, Number(port));
} else {
  await compare(
    wholeArgument('--transfers', values.transfers),
    wholeArgument('--mib', values.mib),
    wholeArgument('--rounds', values.rounds),
  );
}
