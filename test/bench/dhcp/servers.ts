/** The DHCP servers that are compared: ours, what Node costs anyway, and dnsmasq. */

import { join } from 'node:path';
import { startBoot } from '@rackwright/agent';
import { asMac } from '@rackwright/dhcp';
import { nodeClock, nodeDisk, nodeHttp, nodeLog, nodeUdp } from '@rackwright/platform/node';
import { freeUdpPort } from '../../peers-tests/bmc/ipmi-sim.ts';
import { programOf, type Running, startProgram } from '../beside/programs.ts';
import { installedArguments } from '../installed.ts';
import { macOf, type Server } from './client.ts';

export type ServerName = 'rackwright' | 'bare Node' | 'dnsmasq';

export interface RunningServer {
  readonly running: Running<ServerName>;
  readonly server: Server;
  /** Where it answers to. */
  readonly relay: Server;
}

const address = '127.0.0.1';
const network = '127.0.0.0/16';
const leaseSeconds = 3_600;

/** Hosts begin at 127.0.1.0, so that they meet no address of ours. */
function addressOf(index: number): string {
  return `127.0.${1 + (index >> 8)}.${index & 0xff}`;
}

/** Starts all that are there, with an address reserved for each host; says which are not. */
export async function startServers(folder: string, hosts: number): Promise<RunningServer[]> {
  const started: RunningServer[] = [];
  for (const [index, name] of (['rackwright', 'bare Node', 'dnsmasq'] as const).entries()) {
    const port = await freeUdpPort();
    // dnsmasq answers relays at the port that it has itself.
    const relayPort = name === 'dnsmasq' ? port : await freeUdpPort();
    const running = startProgram<ServerName>({
      name,
      program: name === 'dnsmasq' ? programOf('dnsmasq') : process.execPath,
      args: argumentsOf[name](folder, port, relayPort, hosts),
    });
    if (running === undefined) continue;
    const relay = { address: `127.0.0.${index + 3}`, port: relayPort };
    started.push({ running, server: { address, port }, relay });
  }
  return started;
}

type Arguments = (
  folder: string,
  port: number,
  relayPort: number,
  hosts: number,
) => readonly string[];

const argumentsOf: Readonly<Record<ServerName, Arguments>> = {
  rackwright: (folder, port, relayPort, hosts) => [
    ...installedArguments('agent'),
    ...[join(import.meta.dirname, 'main.ts'), 'serve'],
    ...[folder, JSON.stringify({ dhcp: port, relay: relayPort, tftp: 0, http: 0 })],
    String(hosts),
  ],
  'bare Node': (_folder, port, relayPort, hosts) => [
    ...installedArguments('agent'),
    ...[
      join(import.meta.dirname, './bare.main.ts'),
      String(port),
      String(relayPort),
      String(hosts),
    ],
  ],
  // Without the ping by which it asks whether an address is in use: ours asks nobody either.
  dnsmasq: (folder, port, _relayPort, hosts) => [
    ...['--keep-in-foreground', '--conf-file=/dev/null', '--pid-file=', '--port=0'],
    ...['--log-facility=/dev/null', '--quiet-dhcp', '--no-ping', '--user=root'],
    ...['--bind-interfaces', '--interface=lo', '--dhcp-authoritative', '--dhcp-lease-max=4096'],
    ...[`--dhcp-alternate-port=${port},${port}`, `--dhcp-leasefile=${folder}/dnsmasq.leases`],
    `--dhcp-range=${addressOf(0)},${addressOf(1_023)},255.255.0.0,${leaseSeconds}`,
    ...['--dhcp-boot=snponly.efi', '--dhcp-option=vendor:PXEClient,6,11'],
    ...Array.from({ length: hosts }, (_, index) => {
      return `--dhcp-host=${macOf(index)},${addressOf(index)}`;
    }),
  ],
};

/** Where ours listens, and the relay. */
export interface Ports {
  readonly dhcp: number;
  readonly relay: number;
  readonly tftp: number;
  readonly http: number;
}

/** As many as all hosts need at once, although they share an address. */
const limitsFor = (hosts: number) => ({
  tftp: { transfersMax: Math.max(64, hosts), transfersPerClientMax: Math.max(64, hosts) },
  http: { connectionsMax: Math.max(512, 2 * hosts) },
});

/** Our server: the agent's boot path with everything that it refuses and bounds. */
export async function serve(folder: string, ports: Ports, hosts: number): Promise<void> {
  const { dhcp: port, relay: relayPort } = ports;
  const named = (name: string, from = name) => ({ name, path: join(folder, from) });
  const all = Array.from({ length: hosts }, (_, index) => index);
  const listen = { address, port, pxeAddress: address, pxePort: 0 };
  const paths = { clientPort: relayPort, relayPort, broadcastAddress: '127.255.255.255' };
  const reservations = all.map((index) => ({
    mac: asMac(macOf(index)),
    address: addressOf(index),
  }));
  await startBoot(
    {
      interfaces: [
        {
          serverAddress: address,
          dhcp: {
            ...{ mode: 'reservation', ...listen, ...paths, reservations },
            subnet: { network, routers: [], dnsServers: [], leaseSeconds },
            ...{ declinedMs: 3_600_000, otherServer: { quietMs: 0, probeMs: 0 } },
            leasesPath: join(folder, 'leases'),
          },
        },
      ],
      tftp: { address, port: ports.tftp, limits: limitsFor(hosts).tftp },
      http: { address, port: ports.http, limits: limitsFor(hosts).http },
      loaders: { uefiX64: 'snponly.efi' },
      loaderFiles: [named('snponly.efi', 'file')],
      files: [named('kernel'), named('initrd')],
      runner: {
        ...{ kernel: 'kernel', initrd: 'initrd', agentPort: 7443, kernelArguments: [] },
        fingerprint: '00'.repeat(32),
      },
    },
    {
      ...{ udp: nodeUdp(), http: nodeHttp(), disk: nodeDisk() },
      ...{ clock: nodeClock(), log: nodeLog('error') },
      memory: memoryOf(all),
      onNetboot: () => {},
    },
  );
}

/** A rack whose hosts may all boot. */
function memoryOf(all: readonly number[]) {
  const hosts = all.map((index) => {
    return { hostUid: `uid-${index}`, hostName: `host-${index}`, macs: [macOf(index)] };
  });
  const grants = hosts.map(({ hostUid }) => {
    const window = { openedAtMs: 0, expiresAtMs: Number.MAX_SAFE_INTEGER };
    return { hostUid, operationId: `${hostUid}/1`, bootToken: `token-${hostUid}`, ...window };
  });
  const memory = { snapshot: { generation: 1, hosts }, grants };
  return () => memory;
}
