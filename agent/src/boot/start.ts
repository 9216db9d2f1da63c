/**
 * Starts the boot path: DHCP, TFTP, HTTP. All of it or nothing: when one part cannot start,
 * those before it are closed again.
 */
import type { Clock, Disk, Http, Log, Udp } from '@rackwright/platform';
import { type BootConfig, checkBootConfig, httpLimitsOf, tftpLimitsOf } from './config.ts';
import { type DhcpShell, startDhcp } from './dhcp.ts';
import type { DhcpFault } from './dhcp-server.ts';
import { type ImageBlob, openFiles } from './files.ts';
import { startHttp } from './http.ts';
import type { BootMemory } from './memory.ts';
import { makeGate, type NetbootObservation } from './observation.ts';
import { startTftp } from './tftp.ts';
import { type BootUrls, bootUrls } from './urls.ts';

export interface BootDependencies {
  readonly udp: Udp;
  readonly http: Http;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly log: Log;
  /** What is known now; read at every request, so it must return at once. */
  readonly memory: () => BootMemory;
  /** Told of every request for a boot, synchronously. */
  readonly onNetboot: (observation: NetbootObservation) => void;
  /** Opens a boot for the inventory of a machine that is no host; `memory` has it at once. */
  readonly openDiscovery?: (mac: string) => void;
  /** Told, synchronously, of what keeps hosts from their addresses; all of it is logged as well. */
  readonly onDhcpFault?: (fault: DhcpFault) => void;
  /** Blobs of images by the hex of their SHA-256; absent: none are served. */
  readonly imageBlob?: (hex: string) => ImageBlob | undefined;
}

export interface BootServices {
  readonly httpPort: number;
  readonly tftpPort: number;
  /** Absent when DHCP is off. */
  readonly dhcpPort?: number;
  readonly pxePort?: number;
  /** Undefined when HTTP answers, else what is wrong. */
  problem(timeoutMs: number): Promise<string | undefined>;
  close(): Promise<void>;
}

const everywhere = '0.0.0.0';

/** Throws an Error that names the setting, the file or the address that is in the way. */
export async function startBoot(
  config: BootConfig,
  dependencies: BootDependencies,
): Promise<BootServices> {
  checkBootConfig(config);
  const { udp, http, disk, clock, log, imageBlob } = dependencies;
  const files = await openFiles(disk, config);
  const gate = makeGate(dependencies);
  const closers: (() => void | Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    for (const one of closers.splice(0).reverse()) await one();
  };
  try {
    const pages = {
      clock,
      log,
      gate,
      files: files.all,
      runner: config.runner,
      limits: httpLimitsOf(config),
      ...(imageBlob === undefined ? {} : { imageBlob }),
    };
    const urls = (): BootUrls => bootUrls(config.serverAddress, httpShell.port);
    const httpShell = await startHttp(http, config.http, pages, urls);
    closers.push(() => httpShell.close());
    const limits = tftpLimitsOf(config);
    const { address, port } = config.tftp;
    const transferAddress = address === everywhere ? config.serverAddress : address;
    const listen = { address, port, transferAddress };
    const { loaders } = files;
    const tftpShell = await startTftp({ udp, clock, log, gate, loaders, ...listen, limits });
    closers.push(() => tftpShell.close());
    const dhcpShell = await startDhcpIfOn(config, dependencies, gate, urls());
    if (dhcpShell !== undefined) closers.push(() => dhcpShell.close());
    const ports =
      dhcpShell === undefined ? {} : { dhcpPort: dhcpShell.dhcpPort, pxePort: dhcpShell.pxePort };
    const problem = (timeoutMs: number) => httpShell.problem(timeoutMs);
    return { httpPort: httpShell.port, tftpPort: tftpShell.port, ...ports, problem, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function startDhcpIfOn(
  config: BootConfig,
  dependencies: BootDependencies,
  gate: ReturnType<typeof makeGate>,
  urls: BootUrls,
): Promise<DhcpShell | undefined> {
  const { dhcp } = config;
  if (dhcp.mode === 'off') return undefined;
  const { udp, disk, clock, log, memory, onDhcpFault: onFault = () => {} } = dependencies;
  return startDhcp({ udp, disk, clock, log, gate, memory, onFault, urls, config, dhcp });
}
