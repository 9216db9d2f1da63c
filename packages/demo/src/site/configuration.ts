/** The configuration files of the demo's programs: the same files as in a machine room. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BootNetwork } from '@rackwright/sim/firmware';

export const loopback = '127.0.0.1';
const broadcastAddress = '127.255.255.255';

export interface ControlPlanePorts {
  readonly operators: number;
  readonly agents: number;
  readonly metrics: number;
}

export interface RackPorts {
  readonly dhcp: number;
  readonly client: number;
  readonly pxe: number;
  readonly tftp: number;
  readonly http: number;
  readonly runner: number;
  readonly metrics: number;
}

/** The rack's provisioning network as machines see it. */
export function networkOf({ dhcp, client, pxe, tftp }: RackPorts): BootNetwork {
  return { broadcastAddress, dhcpPort: dhcp, clientPort: client, pxePort: pxe, tftpPort: tftp };
}

/** Times as in production, but for pauses that a person would not sit through. */
export function controlPlaneConfig(
  folder: string,
  ports: ControlPlanePorts,
  store: object | undefined,
): object {
  return {
    ...(store === undefined ? {} : { store }),
    dataFolder: join(folder, 'controlplane'),
    metrics: { address: loopback, port: ports.metrics },
    operators: { address: loopback, port: ports.operators },
    agents: { address: loopback, port: ports.agents, advertise: `${loopback}:${ports.agents}` },
    names: ['localhost', loopback],
    engine: {
      retryDelayMs: 500,
      retryDelayMaxMs: 3_000,
      goalDelayMs: 5_000,
      goalDelayMaxMs: 5_000,
      goalFailuresMax: 100,
      // Its machines fail every few seconds until somebody mends them, on a slow machine for long.
      goalRunsMax: 1_000,
      rereadDelayMs: 2_000,
    },
    sessions: { heartbeatIntervalMs: 500, idleHeartbeatIntervalMs: 500, leaseDurationMs: 5_000 },
    resyncIntervalMs: 5_000,
  };
}

export function agentConfig(folder: string, rack: string, ports: RackPorts): object {
  const named = (name: string) => ({ name, path: join(folder, 'boot', name) });
  const { dhcpPort, clientPort, pxePort } = networkOf(ports);
  return {
    stateFolder: join(folder, `agent-${rack}`),
    serverAddress: loopback,
    metrics: { address: loopback, port: ports.metrics },
    dhcp: {
      mode: 'proxy',
      address: broadcastAddress,
      port: dhcpPort,
      pxeAddress: loopback,
      pxePort,
      clientPort,
      broadcastAddress,
    },
    tftp: { address: loopback, port: ports.tftp },
    http: { address: loopback, port: ports.http },
    loaders: { bios: 'undionly.kpxe', uefiX64: 'snponly.efi' },
    loaderFiles: ['undionly.kpxe', 'snponly.efi'].map(named),
    files: ['vmlinuz', 'initrd'].map(named),
    runner: { address: loopback, port: ports.runner },
    bmc: {
      spacingMs: 20,
      redfishConnectTimeoutMs: 2_000,
      redfishRequestTimeoutMs: 3_000,
      breakerOpenMs: 2_000,
      breakerOpenMsMax: 4_000,
      readBackWindowMs: 6_000,
      readBackPollMs: 200,
    },
  };
}

/** Sizes of the files that machines fetch. Their bytes are made up: no machine here runs them. */
export const bootFileBytes: Readonly<Record<string, number>> = {
  'undionly.kpxe': 72_301,
  'snponly.efi': 178_176,
  vmlinuz: 1_500_017,
  initrd: 4_000_003,
};

export function writeJson(path: string, value: object): void {
  writeFileSync(path, `${JSON.stringify(value, undefined, 2)}\n`);
}
