/** The servers that are compared: ours, what Node costs anyway, and those of Debian. */
import { join } from 'node:path';
import { startBoot } from '@rackwright/agent';
import { nodeClock, nodeDisk, nodeHttp, nodeLog, nodeUdp } from '@rackwright/platform/node';
import { freeUdpPort } from '../../peers-tests/bmc/ipmi-sim.ts';
import { programOf, type Running, startProgram } from '../beside/programs.ts';
import { installedArguments } from '../installed.ts';

const mebibyte = 1024 * 1024;

export type ServerName =
  | 'rackwright'
  | 'bare Node'
  | 'bare, connected'
  | 'dnsmasq'
  | 'atftpd'
  | 'tftpd-hpa';

interface Server {
  readonly name: ServerName;
  /** Undefined when the program is not there. */
  readonly program: string | undefined;
  /** Where it listens when that cannot be chosen. */
  readonly fixed?: { readonly address: string; readonly port: number };
  args(folder: string, address: string, port: number): readonly string[];
}

const servers: readonly Server[] = [
  {
    name: 'rackwright',
    program: process.execPath,
    args: (folder, _address, port) => [
      ...installedArguments('agent'),
      ...[join(import.meta.dirname, 'main.ts'), 'serve', folder, String(port)],
    ],
  },
  {
    name: 'bare Node',
    program: process.execPath,
    args: (folder, _address, port) => bare(folder, port),
  },
  {
    name: 'bare, connected',
    program: process.execPath,
    args: (folder, _address, port) => bare(folder, port, 'connected'),
  },
  {
    name: 'atftpd',
    program: programOf('atftpd'),
    args: (folder, address, port) => [
      ...['--daemon', '--no-fork', '--bind-address', address, '--port', String(port)],
      ...['--logfile', '/dev/null', '--user', 'nobody', folder],
    ],
  },
  {
    name: 'dnsmasq',
    program: programOf('dnsmasq'),
    // It serves TFTP at port 69 only, which takes root; the address is nobody else's.
    fixed: { address: '127.9.6.9', port: 69 },
    args: (folder, address) => [
      ...[
        '--keep-in-foreground',
        '--conf-file=/dev/null',
        '--pid-file=',
        '--log-facility=/dev/null',
      ],
      ...['--port=0', '--bind-interfaces', `--listen-address=${address}`, '--quiet-tftp'],
      ...['--enable-tftp', `--tftp-root=${folder}`, '--tftp-max=1000', '--user=nobody'],
    ],
  },
  {
    name: 'tftpd-hpa',
    // atftpd's package has a link of that name to its own server.
    program: programOf('in.tftpd', { noLink: true }),
    args: (folder, address, port) => [
      ...['--foreground', '--listen', '--address', `${address}:${port}`],
      ...['--user', 'nobody', '--secure', folder],
    ],
  },
];

/** With the settings of ours, so that only the programs differ. */
function bare(folder: string, port: number, ...how: string[]): string[] {
  const program = join(import.meta.dirname, './bare.main.ts');
  return [...installedArguments('agent'), program, folder, String(port), ...how];
}

/** One of them, and where it is asked. */
export interface TftpServer extends Running<ServerName> {
  readonly address: string;
  readonly port: number;
}

/** Starts all that are there; says which are not. */
export async function startServers(folder: string): Promise<TftpServer[]> {
  const started: TftpServer[] = [];
  for (const { name, program, fixed, args } of servers) {
    const { address, port } = fixed ?? { address: '127.0.0.1', port: await freeUdpPort() };
    const running = startProgram({ name, program, args: args(folder, address, port) });
    if (running !== undefined) started.push({ ...running, address, port });
  }
  return started;
}

/** Our server: the agent's boot path, with everything that it refuses and bounds. */
export async function serve(folder: string, port: number): Promise<void> {
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
