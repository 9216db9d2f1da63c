/**
 * A rack that is switched on at once: `npm run bench -- bootstorm [--hosts N]`. 1,000 hosts made of
 * software ask in the same second over DHCP, TFTP and HTTP, with a payload of 1 MiB, and then 48
 * with a kernel and a ramdisk of usual sizes. Prints the p50, p99 and the longest of each stage as
 * the hosts see it, what was asked twice, and the server's CPU time and peak memory; then the same
 * of single boots while 5,000 malformed packets a second come in, and how quickly scripts are
 * answered at 500 a second. No BMC is asked anything there: the boot path has none (`startBoot`).
 *
 * The agent's limits of connections and transfers are set for as many hosts. The hosts share one
 * process, whose own work is part of every time: its CPU time is printed. A host that is too busy
 * to answer its transfer's first packet for seconds finds that given up and asks anew; that is
 * counted.
 *
 * Ends with 1 when a boot is lost, or when a script's p99 is above 20 ms.
 */

import { createSocket } from 'node:dgram';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freeUdpPort } from '../../peers-tests/bmc/ipmi-sim.ts';
import { programArguments, serveArguments, wholeArgument } from '../../program-arguments.ts';
import { CpuMeter } from '../beside/cpu.ts';
import { median, percentile } from '../beside/figures.ts';
import { freeTcpPort, listening } from '../beside/free-port.ts';
import { startProgram } from '../beside/programs.ts';
import { RelayedHosts } from '../dhcp/client.ts';
import { type Ports, serve } from '../dhcp/servers.ts';
import { installedArguments } from '../installed.ts';
import { type Booted, type BootSite, boot, fetchByHttp, scriptPath, stages } from './hosts.ts';

const mebibyte = 1024 * 1024;
const address = '127.0.0.1';
const malformedPerSecond = 5_000;
const scriptP99MsMax = 20;
/** Until Node has compiled what both programs do again and again. */
const newSeconds = 2;

interface Storm {
  readonly hosts: number;
  readonly kernelBytes: number;
  readonly initrdBytes: number;
}

/** The agent's boot path in a process of its own, with files of these sizes. */
async function withSite(storm: Storm, work: (site: BootSite, pid: number) => Promise<void>) {
  const folder = await mkdtemp(join(tmpdir(), 'rackwright-bench-'));
  const udp = { dhcp: await freeUdpPort(), relay: await freeUdpPort(), tftp: await freeUdpPort() };
  const ports: Ports = { ...udp, http: await freeTcpPort() };
  await writeFile(join(folder, 'file'), new Uint8Array(300_000));
  await writeFile(join(folder, 'kernel'), new Uint8Array(storm.kernelBytes));
  await writeFile(join(folder, 'initrd'), new Uint8Array(storm.initrdBytes));
  const program = join(import.meta.dirname, './main.ts');
  const serveArgs = ['serve', folder, JSON.stringify(ports), String(storm.hosts)];
  const args = [...installedArguments('agent'), program, ...serveArgs];
  const running = startProgram({ name: 'rackwright', program: process.execPath, args });
  if (running === undefined) throw new Error('Node is not there');
  const relay = { address: '127.0.0.3', port: ports.relay };
  const server = { address, port: ports.dhcp };
  const dhcp = await RelayedHosts.open(relay, server, storm.hosts);
  try {
    await listening(ports.http);
    const site = { dhcp, tftpPort: ports.tftp, httpPort: ports.http };
    await Promise.race([running.ended, work(site, running.pid)]);
  } finally {
    dhcp.close();
    await running.stop();
    await rm(folder, { recursive: true });
  }
}

function tell(boots: readonly Booted[]): void {
  console.log(
    `${''.padEnd(14)}${['p50', 'p99', 'longest'].map((one) => one.padStart(9)).join('')}`,
  );
  for (const stage of stages) {
    const all = boots.map(({ times }) => times.get(stage) ?? Number.NaN);
    const figures = [median(all), percentile(all, 0.99), Math.max(...all)];
    const columns = figures.map((ms) => `${ms.toFixed(0)} ms`.padStart(9)).join('');
    console.log(`${stage.padEnd(14)}${columns}`);
  }
}

async function peakMib(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+)/m.exec(status)?.[1]) / 1_024;
}

async function storm(what: Storm): Promise<void> {
  await withSite(what, async (site, pid) => {
    const meter = new CpuMeter(pid);
    const cpuBefore = meter.readMs();
    const ownBefore = process.cpuUsage();
    const startedMs = performance.now();
    const all = Array.from({ length: what.hosts }, (_, index) => boot(site, index));
    const ended = await Promise.allSettled(all);
    const seconds = (performance.now() - startedMs) / 1_000;
    const own = process.cpuUsage(ownBefore);
    const cpuSeconds = (meter.readMs() - cpuBefore) / 1_000;
    meter.stop();
    const boots = ended.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const payload = ((what.kernelBytes + what.initrdBytes) / mebibyte).toFixed(0);
    console.log(
      `\n${boots.length} of ${what.hosts} hosts, switched on at once, ${payload} MiB each`,
    );
    tell(boots);
    const client = `${((own.user + own.system) / 1e6).toFixed(1)} s of all hosts`;
    const memory = `${(await peakMib(pid)).toFixed(0)} MiB at its peak`;
    const costs = `${cpuSeconds.toFixed(1)} s CPU of the server, ${client}; ${memory}`;
    const givenUp = boots.reduce((sum, one) => sum + one.givenUp, 0);
    const again = `asked again by DHCP: ${site.dhcp.retries}, by TFTP: ${givenUp}`;
    console.log(`in ${seconds.toFixed(1)} s; ${costs}; ${again}`);
    for (const one of ended) if (one.status === 'rejected') lost(one.reason);
  });
}

let lostToTell = 5;

function lost(reason: unknown): void {
  process.exitCode = 1;
  lostToTell -= 1;
  if (lostToTell >= 0) console.log(`lost: ${String(reason)}`);
}

/** Single boots, one after another, while garbage comes to the port of DHCP. */
async function bootsInFlood(what: Storm, boots: number): Promise<void> {
  await withSite(what, async (site) => {
    const flood = createSocket('udp4');
    let sent = 0;
    const startedMs = performance.now();
    const timer = setInterval(() => {
      const due = ((performance.now() - startedMs) / 1_000) * malformedPerSecond;
      for (; sent < due; sent += 1) {
        const garbage = new Uint8Array(300).fill(sent & 0xff);
        flood.send(garbage, site.dhcp.server.port, address);
        flood.send(garbage, site.tftpPort, address);
      }
    }, 5);
    try {
      const times: Booted[] = [];
      for (let index = 0; index < boots; index += 1) times.push(await boot(site, index));
      const perSecond = sent / ((performance.now() - startedMs) / 1_000);
      const rate = `${perSecond.toFixed(0)} malformed packets a second to DHCP and to TFTP each`;
      console.log(`\n${times.length} boots, one after another, during ${rate}`);
      tell(times);
    } catch (error) {
      lost(error);
    } finally {
      clearInterval(timer);
      flood.close();
    }
  });
}

/**
 * Scripts for hosts that may boot, asked for at a steady rate, each over its own connection. While
 * both programs are new, Node compiles them: those seconds are printed by themselves.
 */
async function scriptsAtRate(hosts: number, perSecond: number, seconds: number): Promise<void> {
  await withSite({ hosts, kernelBytes: 1, initrdBytes: 1 }, async (site) => {
    const firstMs: number[] = [];
    const timesMs: number[] = [];
    const asked: Promise<void>[] = [];
    const newPrograms = perSecond * newSeconds;
    const one = async (index: number): Promise<void> => {
      const times = asked.length < newPrograms ? firstMs : timesMs;
      const startedMs = performance.now();
      await fetchByHttp(site.httpPort, index, scriptPath(index));
      times.push(performance.now() - startedMs);
    };
    const startedMs = performance.now();
    while (asked.length < newPrograms + perSecond * seconds) {
      const due = ((performance.now() - startedMs) / 1_000) * perSecond;
      while (asked.length < due) asked.push(one(asked.length % hosts));
      await pause(1);
    }
    await Promise.all(asked);
    const timesText = (times: readonly number[]): string => {
      const [half, most] = [median(times), percentile(times, 0.99)];
      return `p50 ${half.toFixed(1)} ms, p99 ${most.toFixed(1)} ms`;
    };
    console.log(`\n${timesMs.length} scripts at ${perSecond} a second: ${timesText(timesMs)}`);
    console.log(`the first ${firstMs.length}, of new programs: ${timesText(firstMs)}`);
    if (percentile(timesMs, 0.99) <= scriptP99MsMax) return;
    console.log(`p99 of a script above ${scriptP99MsMax} ms`);
    process.exitCode = 1;
  });
}

const { values, positionals } = programArguments({
  allowPositionals: true,
  options: { hosts: { type: 'string', default: '1000' } },
});
const served = serveArguments(positionals);
if (served !== undefined) {
  const [folder = '', ports = '', hosts = ''] = served;
  await serve(folder, JSON.parse(ports) as Ports, Number(hosts));
} else {
  const small = { kernelBytes: mebibyte / 4, initrdBytes: (mebibyte * 3) / 4 };
  await storm({ hosts: wholeArgument('--hosts', values.hosts), ...small });
  await storm({ hosts: 48, kernelBytes: 9 * mebibyte, initrdBytes: 60 * mebibyte });
  await bootsInFlood({ hosts: 48, ...small }, 20);
  await scriptsAtRate(48, 500, 10);
}
