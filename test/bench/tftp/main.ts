/**
 * Compares our TFTP server with those of Debian: CPU time per megabyte, and megabytes a second.
 *
 *   node test/bench/tftp/main.ts [files] [MiB per file]
 *
 * The client is ours, the same for every server; what is compared is the servers' CPU time as the
 * kernel counts it, children included (sampled every 10 ms). A server that is not installed is
 * named and left out (packages tftpd-hpa and atftpd; unpacked copies count when PATH finds them).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startBoot } from '@rackwright/agent';
import { nodeClock, nodeDisk, nodeHttp, nodeLog, nodeUdp } from '@rackwright/platform/node';
import { freeUdpPort } from '../../peers-tests/bmc/ipmi-sim.ts';
import { type PeerOptions, peer } from '../../peers-tests/peer.ts';
import { fetchTogether } from './client.ts';

const mebibyte = 1024 * 1024;
/** USER_HZ, which Linux fixes at 100 for what it tells in /proc. */
const ticksPerSecond = 100;

interface Server {
  readonly name: string;
  /** Undefined when the program is not there. */
  readonly program: string | undefined;
  args(folder: string, port: number): string[];
}

interface Round {
  readonly blockBytes: number;
  readonly windowBlocks: number;
}

const rounds: readonly Round[] = [
  { blockBytes: 512, windowBlocks: 1 },
  { blockBytes: 1_468, windowBlocks: 1 },
  { blockBytes: 1_468, windowBlocks: 4 },
];

const servers: readonly Server[] = [
  {
    name: 'rackwright',
    program: process.execPath,
    args: (folder, port) => [import.meta.filename, 'serve', folder, String(port)],
  },
  {
    name: 'tftpd-hpa',
    // atftpd's package has a link of that name to its own server.
    program: programOf('in.tftpd', { noLink: true }),
    args: (folder, port) => [
      ...['--foreground', '--listen', '--address', `127.0.0.1:${port}`],
      ...['--user', 'nobody', '--secure', folder],
    ],
  },
  {
    name: 'atftpd',
    program: programOf('atftpd'),
    args: (folder, port) => [
      ...['--daemon', '--no-fork', '--bind-address', '127.0.0.1', '--port', String(port)],
      ...['--logfile', '/dev/null', '--user', 'nobody', folder],
    ],
  },
];

function programOf(name: string, options?: PeerOptions): string | undefined {
  const found = peer(name, options);
  return found.kind === 'found' ? found.path : undefined;
}

/** Ticks of one process, or undefined when it has ended. */
function ticksOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return Number(fields[11]) + Number(fields[12]);
  } catch {
    return undefined;
  }
}

/** CPU time of a server and of its children, which may live for one transfer only. */
class CpuMeter {
  readonly #pid: number;
  readonly #ticks = new Map<number, number>();
  readonly #timer: NodeJS.Timeout;

  constructor(pid: number) {
    this.#pid = pid;
    this.#timer = setInterval(() => this.#look(), 10);
  }

  /** Milliseconds so far. */
  readMs(): number {
    this.#look();
    const ticks = [...this.#ticks.values()].reduce((sum, one) => sum + one, 0);
    return (ticks * 1_000) / ticksPerSecond;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    for (const pid of [this.#pid, ...childrenOf(this.#pid)]) {
      const ticks = ticksOf(pid);
      if (ticks !== undefined) this.#ticks.set(pid, ticks);
    }
  }
}

/** None when the process has ended. */
function childrenOf(pid: number): number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
    return children.trim().split(' ').map(Number);
  } catch {
    return [];
  }
}

async function measure(server: Server, folder: string, files: number, mib: number): Promise<void> {
  if (server.program === undefined) {
    console.log(`${server.name.padEnd(12)} not installed`);
    return;
  }
  const port = await freeUdpPort();
  const child: ChildProcess = spawn(server.program, server.args(folder, port), {
    stdio: 'inherit',
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${server.name} did not start`);
  const meter = new CpuMeter(pid);
  const exited = once(child, 'exit').then(([code]) => {
    throw new Error(`${server.name} ended by itself, with ${String(code)}`);
  });
  try {
    await Promise.race([exited, measureRounds(server, port, meter, files, mib)]);
  } finally {
    meter.stop();
    child.kill('SIGTERM');
    await exited.catch(() => undefined);
  }
}

async function measureRounds(
  { name }: Server,
  port: number,
  meter: CpuMeter,
  files: number,
  mib: number,
): Promise<void> {
  const fileName = 'file';
  await fetchTogether({ port, fileName, transfers: 1, blockBytes: 1_468, windowBlocks: 1 });
  for (const round of rounds) {
    const cpuBefore = meter.readMs();
    const startedMs = performance.now();
    const bytes = await fetchTogether({ port, fileName, transfers: files, ...round });
    const seconds = (performance.now() - startedMs) / 1_000;
    if (bytes !== files * mib * mebibyte) throw new Error(`${name} sent ${bytes} bytes`);
    const megabytes = bytes / 1e6;
    const what = `${round.blockBytes} × ${round.windowBlocks}`.padStart(8);
    const speed = (megabytes / seconds).toFixed(0).padStart(5);
    const cost = ((meter.readMs() - cpuBefore) / megabytes).toFixed(1).padStart(6);
    console.log(`${name.padEnd(12)} ${what}  ${speed} MB/s  ${cost} ms CPU/MB`);
  }
}

/** The server process that `measure` starts for us: the agent's boot path, TFTP only. */
async function serve(folder: string, port: number): Promise<void> {
  const path = join(folder, 'file');
  const runner = {
    kernel: 'kernel',
    initrd: 'kernel',
    agentPort: 7443,
    fingerprint: '00'.repeat(32),
    kernelArguments: [],
  };
  await startBoot(
    {
      interfaces: [{ serverAddress: '127.0.0.1', dhcp: { mode: 'off' } }],
      tftp: { address: '127.0.0.1', port, limits: { transfersPerClientMax: 1_000 } },
      http: { address: '127.0.0.1', port: 0 },
      loaders: {},
      loaderFiles: [{ name: 'file', path }],
      loaderBytesMax: 1024 * mebibyte,
      files: [{ name: 'kernel', path }],
      runner,
    },
    {
      ...{ udp: nodeUdp(), http: nodeHttp(), disk: nodeDisk() },
      ...{ clock: nodeClock(), log: nodeLog('error') },
      memory: () => ({ snapshot: { generation: 1, hosts: [] }, grants: [] }),
      onNetboot: () => {},
    },
  );
}

async function compare(files: number, mib: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'rackwright-bench-'));
  try {
    await chmod(folder, 0o755);
    await writeFile(join(folder, 'file'), new Uint8Array(mib * mebibyte).fill(7));
    console.log(`${files} transfers at once of ${mib} MiB each, blocks × window`);
    for (const server of servers) await measure(server, folder, files, mib);
  } finally {
    await rm(folder, { recursive: true });
  }
}

const [first = '', second = '', third = ''] = process.argv.slice(2);
if (first === 'serve') await serve(second, Number(third));
else await compare(Number(first || '20'), Number(second || '4'));
