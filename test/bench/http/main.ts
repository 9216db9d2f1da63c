/**
 * What our HTTP server costs beside others: `npm run bench -- http [--mib N] [--connections N]
 * [--requests N] [--rounds N]`. Prints CPU time per megabyte and megabytes a second of one file
 * that all connections fetch again and again.
 *
 * Bare Node sends the file out of its memory and does nothing else (`bare.main.ts`); nginx has one
 * worker. All servers run at the same time and are asked by turns.
 *
 * Ends with 1 when ours takes more than 1.1 times the CPU time of bare Node, or more than 4 times
 * that of nginx.
 */

import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { programArguments, serveArguments, wholeArgument } from '../../program-arguments.ts';
import { CpuMeter } from '../beside/cpu.ts';
import { addSample, report, type Sample } from '../beside/figures.ts';
import { listening } from '../beside/free-port.ts';
import { fetchAll, type Load } from './client.ts';
import { type HttpServer, type ServerName, serve, startServers } from './servers.ts';

const mebibyte = 1024 * 1024;

async function measure({ pid, port, target, ended }: HttpServer, load: Load): Promise<Sample> {
  const meter = new CpuMeter(pid);
  const cpuBefore = meter.readMs();
  const clientBefore = process.cpuUsage();
  const startedMs = performance.now();
  await Promise.race([ended, fetchAll(port, target, load)]);
  const seconds = (performance.now() - startedMs) / 1_000;
  const own = process.cpuUsage(clientBefore);
  const cpuMs = meter.readMs() - cpuBefore;
  meter.stop();
  const megabytes = (load.connections * load.requests * load.fileBytes) / 1e6;
  return {
    unitsPerSecond: megabytes / seconds,
    cpuMsPerUnit: cpuMs / megabytes,
    ceilingUnitsPerSecond: megabytes / ((own.user + own.system) / 1e6),
  };
}

async function compare(load: Load, rounds: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'rackwright-bench-'));
  const servers: HttpServer[] = [];
  try {
    await chmod(folder, 0o755);
    await writeFile(join(folder, 'initrd'), new Uint8Array(load.fileBytes).fill(7));
    servers.push(...(await startServers(folder, 'initrd')));
    for (const { port } of servers) await listening(port);
    const samples = new Map<ServerName, readonly Sample[]>();
    const oneRound = async (into: typeof samples, order: readonly HttpServer[]): Promise<void> => {
      for (const one of order) addSample(into, one.name, await measure(one, load));
    };
    // What comes first warms up: each server compiles and maps what it needs.
    await oneRound(new Map(), servers);
    // Forth and back: what a server leaves behind, as a warm cache, meets each of the others.
    for (let round = 0; round < rounds; round += 1) {
      await oneRound(samples, round % 2 === 0 ? servers : servers.toReversed());
    }
    const { connections, requests, fileBytes } = load;
    const what = `${connections} connections fetch ${fileBytes / mebibyte} MiB ${requests} times`;
    const floors = [
      { peer: 'bare Node', ratioMax: 1.1 },
      { peer: 'nginx', ratioMax: 4 },
    ] as const;
    const title = `${what}, ${rounds} rounds`;
    const problems = report<ServerName>({ title, unit: 'MB', samples, floors });
    for (const problem of problems) console.log(problem);
    if (problems.length > 0) process.exitCode = 1;
  } finally {
    await Promise.all(servers.map((one) => one.stop()));
    await rm(folder, { recursive: true });
  }
}

const { values, positionals } = programArguments({
  allowPositionals: true,
  options: {
    mib: { type: 'string', default: '12' },
    connections: { type: 'string', default: '16' },
    requests: { type: 'string', default: '8' },
    rounds: { type: 'string', default: '5' },
  },
});
const served = serveArguments(positionals);
if (served !== undefined) {
  const [path = '', port = ''] = served;
  await serve(path, Number(port));
} else {
  const { mib, connections, requests, rounds } = values;
  const fileBytes = wholeArgument('--mib', mib) * mebibyte;
  const load = {
    connections: wholeArgument('--connections', connections),
    requests: wholeArgument('--requests', requests),
    fileBytes,
  };
  await compare(load, wholeArgument('--rounds', rounds));
}
