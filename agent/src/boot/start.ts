/**
 * Starts the boot path: TFTP, DHCP, HTTP. All of it or nothing: when one part cannot start,
 * those before it are closed again.
 *
 * Addresses are given before HTTP is loaded, because that takes a tenth of a start. A host needs
 * seconds from its address to its first request by HTTP.
 */

import type { Mac } from '@rackwright/dhcp';
import type { HostUid } from '@rackwright/messages';
import {
  type Clock,
  type Disk,
  type Http,
  invalid,
  type Log,
  type Read,
  type Udp,
  valid,
} from '@rackwright/platform';
import { type BootEvent, BootEvents } from './boot-events.ts';
import {
  addressAsked,
  anyAddress,
  type BootConfig,
  type BootInterface,
  checkBootConfig,
  httpLimitsOf,
  httpListen,
  keptFileBytesMaxDefault,
  tftpLimitsOf,
} from './config.ts';
import type { DeployPages } from './deploy-pages.ts';
import { type DhcpShell, startDhcp } from './dhcp.ts';
import type { DhcpFault } from './dhcp-server.ts';
import { type FindImageBlob, openFiles, type ServedFiles } from './files.ts';
import { type HttpShell, startHttp } from './http.ts';
import { KeptFiles } from './kept-files.ts';
import type { BootMemory } from './memory.ts';
import type { BootMeter } from './meter.ts';
import {
  type BootGate,
  makeAddressWatch,
  makeBootGate,
  type NetbootObservation,
} from './observation.ts';
import { bootDecision, bootProfileOf } from './permission.ts';
import { chooseBoot, type HostBootSettings, type Loaders, unknownProfile } from './profiles.ts';
import { BootScripts } from './scripts.ts';
import { startTftp, type TftpListen, type TftpShell, type TftpShellOptions } from './tftp.ts';
import { type BootUrls, bootUrls, bootUrls6 } from './urls.ts';

export interface BootDependencies {
  readonly udp: Udp;
  readonly http: Http;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly log: Log;
  /** The present state; read at every request, so it must return at once. */
  readonly memory: () => BootMemory;
  /** Called with every boot request, synchronously. */
  readonly onNetboot: (observation: NetbootObservation) => void;
  /** Called, synchronously, with every known host whose system asks for an address by DHCP. */
  readonly onAddressAsked?: (hostUid: HostUid) => void;
  /** Opens a boot for the inventory of a machine that is no host; `memory` has it at once. */
  readonly openDiscovery?: (mac: Mac) => void;
  /** The machine's present IPv4 addresses by their interface; absent: unknown. */
  readonly ownAddresses?: () => ReadonlyMap<string, readonly string[]>;
  /**
   * Called, synchronously, with each fault that keeps hosts from their addresses; all of them are
   * logged as well.
   */
  readonly onDhcpFault?: (fault: DhcpFault) => void;
  /** Called when the other DHCP server of such a fault is gone. */
  readonly onDhcpServerGone?: (serverAddress: string) => void;
  /** Blobs of images by the hex of their SHA-256; absent: none are served. */
  readonly imageBlob?: FindImageBlob;
  /** Absent: nothing is deployed here. */
  readonly deploys?: DeployPages;
  /** Called, synchronously, with each step of a boot into the runner. */
  readonly onBootEvent?: (event: BootEvent) => void;
  /** Absent: nothing is counted. */
  readonly meter?: BootMeter;
}

export interface BootServices {
  readonly httpPort: number;
  readonly tftpPort: number;
  /** The port of the first interface where DHCP is not off. */
  readonly dhcpPort?: number;
  readonly pxePort?: number;
  /** The URL of the CD for virtual media; undefined: none is served. */
  readonly mediumUrl: string | undefined;
  /** TFTP transfers under way. */
  transfers(): number;
  /** Undefined when HTTP answers, else what is wrong. */
  problem(timeoutMs: number): Promise<string | undefined>;
  close(): Promise<void>;
}

/** DHCP on each interface where it is on; each is closed by the closers from its start on. */
async function startAllDhcp(
  config: BootConfig,
  dependencies: BootDependencies,
  {
    bootGate,
    bootEvents,
    httpPort,
  }: { bootGate: BootGate; bootEvents: BootEvents; httpPort: number },
  closers: (() => void | Promise<void>)[],
): Promise<readonly DhcpShell[]> {
  const shells: DhcpShell[] = [];
  for (const one of config.interfaces) {
    const urls = bootUrls(one.serverAddress, httpPort, config.http.filesPort);
    const shell = await startDhcpIfOn(config, one, dependencies, { bootGate, bootEvents, urls });
    if (shell === undefined) continue;
    closers.push(() => shell.close());
    shells.push(shell);
  }
  return shells;
}

/**
 * Answers all requests that have arrived by now. Twice, because a due timer runs before waiting
 * packets.
 */
export async function answerWaiting(clock: Clock): Promise<void> {
  for (let round = 0; round < 2; round += 1) {
    await new Promise<void>((resolve) => clock.after(1, resolve));
  }
}

/** Throws an Error that names the setting, the file or the address that is in the way. */
export async function startBoot(
  config: BootConfig,
  dependencies: BootDependencies,
): Promise<BootServices> {
  checkBootConfig(config);
  const { http, disk, clock, log, imageBlob, deploys } = dependencies;
  const metered = dependencies.meter === undefined ? {} : { meter: dependencies.meter };
  const bootEvents = makeBootEvents(dependencies, config);
  const files = await openFiles(disk, config);
  const bootGate = makeBootGate(dependencies);
  const addresses = config.addresses ?? config.interfaces.map(({ serverAddress }) => serverAddress);
  const closers: (() => void | Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const one of closers.splice(0).reverse()) await one();
  };
  try {
    const more = { clock, log, bootGate, ...metered, ...(deploys && { deploys }) };
    const bootOf = (mac: Mac): Read<HostBootSettings> => bootOfHost(config, dependencies, mac);
    const scripts = new BootScripts({ ...more, bootOf, runner: config.runner });
    const blobs = imageBlob === undefined ? {} : { imageBlob };
    const pages = {
      ...{ ...more, scripts, bootEvents, ...blobs },
      knownHost: (mac: Mac) => hostUidOf(dependencies.memory(), mac, clock.nowMs()),
      files: files.all,
      fileState: (path: string) => disk.stat(path),
      limits: httpLimitsOf(config),
    };
    const urlsAt = (localAddress: string): BootUrls | undefined => {
      if (localAddress.includes(':')) return urlsAt6(config, localAddress, httpPort);
      const address = addressAsked(addresses, localAddress);
      if (address === undefined) return undefined;
      return bootUrls(address, httpPort, config.http.filesPort);
    };
    const openHttp = async (): Promise<HttpShell> => {
      const opened = await startHttp(http, httpListen(config), pages, urlsAt);
      closers.push(() => opened.close());
      return opened;
    };
    // The port is part of the URLs that DHCP gives: one that the system chooses is needed first.
    const opened = config.http.port === 0 ? await openHttp() : undefined;
    const httpPort = opened?.port ?? config.http.port;
    const forTftp = { bootGate, bootEvents, scripts, urlsAt, ...blobs };
    const tftpShell = await openTftp(config, dependencies, files, forTftp);
    closers.push(() => tftpShell.close());
    const shared = { bootGate, bootEvents, httpPort };
    const [first] = await startAllDhcp(config, dependencies, shared, closers);
    await answerWaiting(clock);
    const httpShell = opened ?? (await openHttp());
    const ports = first === undefined ? {} : { dhcpPort: first.dhcpPort, pxePort: first.pxePort };
    const problem = (timeoutMs: number) => httpShell.problem(timeoutMs);
    return {
      ...{ httpPort, tftpPort: tftpShell.port, ...ports, problem, close },
      mediumUrl: mediumUrl(config, httpPort, files.mediumName),
      transfers: () => tftpShell.transfers,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** What TFTP shares with the other services. */
type SharedByTftp = Pick<
  TftpShellOptions,
  'bootGate' | 'bootEvents' | 'scripts' | 'urlsAt' | 'imageBlob'
>;

function openTftp(
  config: BootConfig,
  { udp, disk, clock, log, ownAddresses, meter }: BootDependencies,
  { all, loaders, raspberryPi }: ServedFiles,
  shared: SharedByTftp,
): Promise<TftpShell> {
  const bytesMax = config.tftp.keptFileBytesMax ?? keptFileBytesMaxDefault;
  const kept = new KeptFiles({ disk, clock, log, bytesMax });
  return startTftp({
    ...{ udp, clock, log, ...shared, ...tftpSettings(config) },
    ...{ files: all, loaders, raspberryPi, kept },
    ...(ownAddresses === undefined ? {} : { ownAddresses }),
    ...(meter === undefined ? {} : { meter }),
  });
}

/** Undefined: hosts are not given this address, for example because it is link-local. */
function urlsAt6(
  { interfaces }: BootConfig,
  localAddress: string,
  httpPort: number,
): BootUrls | undefined {
  const found = interfaces.find(({ serverAddress6 }) => serverAddress6 === localAddress);
  return found && bootUrls6(localAddress, found.serverAddress, httpPort);
}

function mediumUrl(
  { virtualMedia, interfaces, addresses = [] }: BootConfig,
  port: number,
  name: string | undefined,
): string | undefined {
  const address = virtualMedia?.address ?? addresses[0] ?? interfaces[0]?.serverAddress;
  if (name === undefined || address === undefined) return undefined;
  return `${bootUrls(address, port).root}/files/${name}`;
}

function tftpSettings(config: BootConfig) {
  const listens = config.interfaces.map((one) => tftpListen(config, one));
  const { transferPorts = 'own' } = config.tftp;
  return { listens, limits: tftpLimitsOf(config), transferPorts };
}

function tftpListen({ tftp }: BootConfig, { name, serverAddress }: BootInterface): TftpListen {
  const { address, port } = tftp;
  const transferAddress = address === anyAddress ? serverAddress : address;
  const named = name === undefined ? {} : { interface: name };
  return { address, port, transferAddress, ...named };
}

async function startDhcpIfOn(
  config: BootConfig,
  one: BootInterface,
  dependencies: BootDependencies,
  { bootGate, bootEvents, urls }: { bootGate: BootGate; bootEvents: BootEvents; urls: BootUrls },
): Promise<DhcpShell | undefined> {
  const { name, serverAddress, dhcp } = one;
  if (dhcp.mode === 'off') return undefined;
  const { udp, disk, clock, memory, onDhcpFault: onFault = () => {} } = dependencies;
  const log = name === undefined ? dependencies.log : dependencies.log.child({ interface: name });
  const named = name === undefined ? {} : { interface: name };
  const metered = dependencies.meter === undefined ? {} : { meter: dependencies.meter };
  const loadersOf = (mac: Mac): Loaders | undefined => {
    const boot = bootOfHost(config, dependencies, mac);
    return boot.kind === 'bad' ? undefined : boot.value.loaders;
  };
  const servesRaspberryPi = config.raspberryPi !== undefined;
  const rest = { loadersOf, serverAddress, servesRaspberryPi, dhcp, urls, ...named, ...metered };
  const { onAddressAsked = () => {}, onDhcpServerGone: onServerGone = () => {} } = dependencies;
  const sawAddress = makeAddressWatch({ clock, log, memory }, onAddressAsked);
  return startDhcp({
    udp,
    disk,
    clock,
    log,
    bootGate,
    bootEvents,
    sawAddress,
    memory,
    onFault,
    onServerGone,
    ...rest,
  });
}

function makeBootEvents(dependencies: BootDependencies, { runner }: BootConfig): BootEvents {
  const { clock, log, memory, onBootEvent: onEvent = () => {} } = dependencies;
  const { kernel, initrd } = runner;
  return new BootEvents({ clock, log, memory, onEvent, kernel, initrd });
}

/** The problem is why the host of this MAC boots nothing. */
function bootOfHost(
  { loaders, runner, bootProfiles: profiles = [] }: BootConfig,
  { memory }: Pick<BootDependencies, 'memory'>,
  mac: Mac,
): Read<HostBootSettings> {
  const name = bootProfileOf(memory(), mac);
  const rack = { loaders, profiles, kernelArguments: runner.kernelArguments };
  const choice = chooseBoot(rack, name);
  return choice === undefined ? invalid(unknownProfile(name ?? '', profiles)) : valid(choice);
}

function hostUidOf(memory: BootMemory, mac: Mac, nowMs: number): HostUid | undefined {
  const decision = bootDecision(memory, mac, nowMs);
  return 'hostUid' in decision ? decision.hostUid : undefined;
}
