/** A boot path on loopback with real sockets and files, and its observations. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Mac } from '@rackwright/dhcp';
import type { Clock, Http, Log, Udp } from '@rackwright/platform';
import { nodeClock, nodeDisk, nodeHttp, nodeUdp } from '@rackwright/platform/node';
import { recordingLog } from '@rackwright/platform/testing';
import type { BootEvent } from './boot-events.ts';
import type { BootConfig, BootInterface } from './config.ts';
import type { ProxyDhcpConfig } from './dhcp-config.ts';
import type { BootMemory } from './memory.ts';
import type { NetbootObservation } from './observation.ts';
import { type BootDependencies, type BootServices, startBoot } from './start.ts';

export const knownMac = '52:54:00:77:00:01';
export const grantedMac = '52:54:00:77:00:02';
export const unknownMac = '52:54:00:77:00:99';

export interface BootRig {
  readonly services: BootServices;
  readonly observed: NetbootObservation[];
  /** Steps of boots into the runner. */
  readonly bootEvents: BootEvent[];
  /** Hosts whose system has asked for an address. */
  readonly requests: string[];
  readonly lines: string[];
  readonly contents: Readonly<Record<string, Uint8Array>>;
  /** The folder of its files. */
  readonly folder: string;
  url(path: string): string;
  close(): Promise<void>;
}

/** The configuration of a rig, except its files. */
export function rigConfig(
  relayPort: number,
  other?: Partial<BootInterface>,
): Omit<BootConfig, 'loaderFiles' | 'files'> {
  return {
    interfaces: [{ serverAddress: '127.0.0.1', dhcp: loopbackDhcp(relayPort), ...other }],
    tftp: { address: '127.0.0.1', port: 0 },
    http: { address: '127.0.0.1', port: 0 },
    loaders: { bios: 'undionly.kpxe', uefiX64: 'snponly.efi' },
    runner: {
      kernel: 'vmlinuz',
      initrd: 'initrd',
      agentPort: 7443,
      fingerprint: 'ab'.repeat(32),
      kernelArguments: ['console=ttyS0'],
    },
  };
}

/** Two hosts, the second with an open grant; loaders and files by name, of the given sizes. */
export async function startRig(options: {
  readonly loaders?: Readonly<Record<string, number>>;
  readonly files?: Readonly<Record<string, number>>;
  readonly relayPort?: number;
  readonly config?: Partial<BootConfig>;
  /** Settings of its only interface that differ from the default. */
  readonly interface?: Partial<BootInterface>;
  /** The boot profile that the host with the grant names. */
  readonly grantedProfile?: string;
  /** The MAC of the host with the grant, instead of {@link grantedMac}. */
  readonly grantedMac?: string;
  /** Instead of this machine's. */
  readonly udp?: Udp;
  /** Instead of this machine's. */
  readonly http?: Http;
  /** Instead of this machine's. */
  readonly clock?: Clock;
  /** The machine's addresses by their interface; absent: unknown. */
  readonly ownAddresses?: BootDependencies['ownAddresses'];
  /** Settings for machines that are no hosts; without them they get nothing. */
  readonly discovery?: {
    memory(): BootMemory['discovery'] | undefined;
    open(mac: Mac): void;
  };
}): Promise<BootRig> {
  const folder = await mkdtemp(join(tmpdir(), 'rackwright-boot-'));
  const loaderSizes = { 'undionly.kpxe': 70_000, 'snponly.efi': 170_000, ...options.loaders };
  const fileSizes = { vmlinuz: 300_000, initrd: 500_000, ...options.files };
  const contents: Record<string, Uint8Array> = {};
  for (const [name, size] of Object.entries({ ...loaderSizes, ...fileSizes })) {
    contents[name] = Uint8Array.from({ length: size }, (_, at) => (at * 31 + (at >> 8)) & 0xff);
    await writeFile(join(folder, name), contents[name]);
  }
  const named = (name: string) => ({ name, path: join(folder, name) });
  const observed: NetbootObservation[] = [];
  const bootEvents: BootEvent[] = [];
  const requests: string[] = [];
  const lines: string[] = [];
  const config: BootConfig = {
    ...rigConfig(options.relayPort ?? 67, options.interface),
    loaderFiles: Object.keys(loaderSizes).map(named),
    files: Object.keys(fileSizes).map(named),
    ...options.config,
  };
  const started = startBoot(config, {
    udp: options.udp ?? nodeUdp(),
    http: options.http ?? nodeHttp(),
    disk: nodeDisk(),
    clock: options.clock ?? nodeClock(),
    log: logInto(lines),
    memory: rigMemory(options, options.discovery),
    ...(options.ownAddresses === undefined ? {} : { ownAddresses: options.ownAddresses }),
    onNetboot: (observation) => observed.push(observation),
    onBootEvent: (event) => bootEvents.push(event),
    onAddressAsked: (hostUid) => requests.push(hostUid),
    openDiscovery: (mac) => options.discovery?.open(mac),
  });
  const services = await started.catch(async (error: unknown) => {
    await rm(folder, { recursive: true });
    throw error;
  });
  const close = async () => {
    await services.close();
    await rm(folder, { recursive: true });
  };
  const url = (path: string) => `http://127.0.0.1:${services.httpPort}${path}`;
  return { services, observed, bootEvents, requests, lines, contents, folder, url, close };
}

/** DHCP beside another server, on ports that the system chooses. */
export function loopbackDhcp(relayPort: number): ProxyDhcpConfig {
  return {
    mode: 'proxy',
    address: '127.0.0.1',
    port: 0,
    pxeAddress: '127.0.0.1',
    pxePort: 0,
    clientPort: 68,
    relayPort,
    broadcastAddress: '255.255.255.255',
  };
}

/** The host with the grant has that profile and that MAC. */
function withGranted({ grantedProfile, grantedMac: mac = grantedMac }: GrantedHost): BootMemory {
  const [first, granted] = memory.snapshot.hosts;
  const named = grantedProfile === undefined ? {} : { bootProfile: grantedProfile };
  const its = granted && { ...granted, macs: [mac], ...named };
  const hosts = [first, its].filter((one) => one !== undefined);
  return { ...memory, snapshot: { ...memory.snapshot, hosts } };
}

const memory: BootMemory = {
  snapshot: {
    generation: 1,
    hosts: [
      { hostUid: 'u1', hostName: 'one', macs: [knownMac] },
      { hostUid: 'u2', hostName: 'two', macs: [grantedMac] },
    ],
  },
  grants: [
    {
      hostUid: 'u2',
      operationId: 'u2/1/1/1',
      bootToken: 'token-2',
      openedAtMs: 0,
      expiresAtMs: Number.MAX_SAFE_INTEGER,
    },
  ],
};

interface GrantedHost {
  readonly grantedProfile?: string;
  readonly grantedMac?: string;
}

function rigMemory(
  granted: GrantedHost,
  others: { memory(): BootMemory['discovery'] | undefined } | undefined,
): () => BootMemory {
  const known = withGranted(granted);
  return () => {
    const discovery = others?.memory();
    return discovery === undefined ? known : { ...known, discovery };
  };
}

function logInto(lines: string[]): Log {
  return recordingLog(({ level, fields, message }) => {
    if (level !== 'debug') lines.push(`${message} ${JSON.stringify(fields)}`);
  });
}
