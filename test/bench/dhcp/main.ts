/**
 * What our DHCP server costs beside others: `npm run bench -- dhcp [--hosts N] [--exchanges N]
 * [--rounds N]`. Prints CPU time per four-way exchange (discover, offer, request, ack) and
 * exchanges a second, and then what comes of a rack that asks all at once.
 *
 * The hosts are PXE firmware behind a relay, each with an address of its own that is reserved for
 * it. Bare Node is a server of thirty lines that checks and remembers nothing (`bare.main.ts`). All
 * servers run at the same time and are asked by turns. dnsmasq needs root.
 *
 * Ends with 1 when ours takes more than 2.5 times the CPU time of dnsmasq, or loses one of 1,000
 * discovers that come within 100 ms.
 */

import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { programArguments, serveArguments, wholeArgument } from '../../program-arguments.ts';
import { CpuMeter } from '../beside/cpu.ts';
import { addSample, report, type Sample } from '../beside/figures.ts';
import { type Boots, RelayedHosts } from './client.ts';
import { type Ports, type RunningServer, type ServerName, serve, startServers } from './servers.ts';

/** Exchanges under way at any time. */
const atOnce = 16;

interface Load {
  readonly hosts: number;
  readonly exchanges: number;
}

async function measure(one: RunningServer, client: RelayedHosts, load: Load): Promise<Sample> {
  const { running } = one;
  const meter = new CpuMeter(running.pid);
  const cpuBefore = meter.readMs();
  const clientBefore = process.cpuUsage();
  const startedMs = performance.now();
  const boots: Boots = await Promise.race([running.ended, client.run(load.exchanges, atOnce)]);
  const seconds = (performance.now() - startedMs) / 1_000;
  const own = process.cpuUsage(clientBefore);
  const cpuMs = meter.readMs() - cpuBefore;
  meter.stop();
  const note = boots.retries === 0 ? {} : { note: `${boots.retries} asked again` };
  return {
    unitsPerSecond: load.exchanges / seconds,
    cpuMsPerUnit: cpuMs / load.exchanges,
    ceilingUnitsPerSecond: load.exchanges / ((own.user + own.system) / 1e6),
    ...note,
  };
}

/** Discovers of a rack that is switched on at once. */
const burstDiscovers = 1_000;
const burstMsMax = 100;

/**
 * All discovers while the server stands still, as a busy one does: what the kernel has no room for
 * is lost. Returns what is wrong with ours.
 */
async function burst(
  { running: { name, pid } }: RunningServer,
  client: RelayedHosts,
): Promise<string[]> {
  process.kill(pid, 'SIGSTOP');
  const asked = client.burst(burstDiscovers);
  process.kill(pid, 'SIGCONT');
  const { answered, sentInMs } = await asked;
  const text = `${name} answered ${answered} of ${burstDiscovers} discovers`;
  console.log(`${text}, which came in ${sentInMs.toFixed(0)} ms while it stood still`);
  if (sentInMs > burstMsMax) console.log(`  (more than ${burstMsMax} ms: this machine is busy)`);
  return name === 'rackwright' && answered < burstDiscovers ? [text] : [];
}

async function compare(load: Load, rounds: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'rackwright-bench-'));
  const servers: RunningServer[] = [];
  const clients: RelayedHosts[] = [];
  try {
    await chmod(folder, 0o755);
    for (const name of ['file', 'kernel', 'initrd']) {
      await writeFile(join(folder, name), new Uint8Array(1_024));
    }
    servers.push(...(await startServers(folder, load.hosts)));
    const samples = new Map<ServerName, readonly Sample[]>();
    for (const { relay, server } of servers) {
      clients.push(await RelayedHosts.open(relay, server, load.hosts));
    }
    const oneRound = async (into: typeof samples): Promise<void> => {
      for (const [index, one] of servers.entries()) {
        const client = clients[index] as RelayedHosts;
        addSample(into, one.running.name, await measure(one, client, load));
      }
    };
    // What comes first warms up: each server compiles and maps what it needs.
    await oneRound(new Map());
    for (let round = 0; round < rounds; round += 1) await oneRound(samples);
    const title = `${load.exchanges} four-way exchanges of ${load.hosts} hosts, ${rounds} rounds`;
    const floors = [{ peer: 'dnsmasq', ratioMax: 2.5 }] as const;
    const problems = report({ title, unit: 'exchange', samples, floors });
    console.log('');
    for (const [index, one] of servers.entries()) {
      problems.push(...(await burst(one, clients[index] as RelayedHosts)));
    }
    for (const problem of problems) console.log(problem);
    if (problems.length > 0) process.exitCode = 1;
  } finally {
    for (const client of clients) client.close();
    await Promise.all(servers.map(({ running }) => running.stop()));
    await rm(folder, { recursive: true });
  }
}

const { values, positionals } = programArguments({
  allowPositionals: true,
  options: {
    hosts: { type: 'string', default: '48' },
    exchanges: { type: 'string', default: '5000' },
    rounds: { type: 'string', default: '5' },
  },
});
const served = serveArguments(positionals);
if (served !== undefined) {
  const [server = '', ports = '', hosts = ''] = served;
  await serve(server, JSON.parse(ports) as Ports, Number(hosts));
} else {
  const load = {
    hosts: wholeArgument('--hosts', values.hosts),
    exchanges: wholeArgument('--exchanges', values.exchanges),
  };
  await compare(load, wholeArgument('--rounds', values.rounds));
}
