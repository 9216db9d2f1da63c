/**
 * The agent's configuration file: YAML or JSON. Unknown keys are refused, every default is here,
 * the result is frozen. It holds no secret: keys and certificates are in the state folder, BMC
 * credentials only in memory.
 */
import {
  defaultGovernorLimits,
  defaultIpmitoolOptions,
  defaultReadBackTimings,
  defaultRedfishOptions,
  type Firmware,
  type GovernorLimits,
  type IpmitoolOptions,
  isPlainUrl,
  type ReadBackTimings,
  type RedfishOptions,
} from '@rackwright/bmc';
import type { MetricsListen } from '@rackwright/metrics';
import { ConfigError, type ConfigProblem, type ConfigReader } from '@rackwright/platform';
import { optional, readConfigText } from '@rackwright/platform/config';
import { type TftpLimits, tftpLimitsDefault } from '@rackwright/tftp';
import { readTraces, type TracesConfig } from '@rackwright/trace';
import {
  anyAddress,
  type BootHttpLimits,
  type BootProfile,
  bootProblems,
  httpLimitsDefault,
  keptFileBytesMaxDefault,
  type Loaders,
  loaderBytesMaxDefault,
  type NamedFile,
  portsClash,
  type RaspberryPiConfig,
  type TransferPorts,
  type VirtualMediaConfig,
} from './boot/index.ts';
import { defaultAdmissionLimits } from './images/index.ts';
import { bootInterfaces, type InterfaceSettings, readInterfaces } from './interfaces.ts';
import { architectureProblem } from './kernel-file.ts';
import { defaultNetbootWatchLimits, type NetbootWatchLimits } from './netboot-watch.ts';

export interface AgentConfig extends InterfaceSettings {
  /** Identity, journal, boot snapshot. Created owner-only when it is missing. */
  readonly stateFolder: string;
  /** The listener of metrics: in plain text, without authentication. */
  readonly metrics: MetricsListen;
  readonly log: { readonly level: 'debug' | 'info' | 'warn' | 'error' };
  readonly tftp: {
    readonly address: string;
    readonly port: number;
    readonly limits: TftpLimits;
    readonly transferPorts: TransferPorts;
    /** Largest sum of the kernels and ramdisks that GRUB is being sent, bytes. */
    readonly keptFileBytesMax: number;
  };
  readonly http: {
    readonly address: string;
    readonly port: number;
    /**
     * The port of another server in front of ours, for the files of boots (nginx-site.ts); 0: none.
     */
    readonly filesPort: number;
    readonly limits: BootHttpLimits;
  };
  /** Which of `loaderFiles` each firmware loads first; without one it gets no offer. */
  readonly loaders: Loaders;
  /** Profiles of hosts that name one by their label `boot`. */
  readonly bootProfiles: readonly BootProfile[];
  /** Kept in memory; by TFTP and HTTP. */
  readonly loaderFiles: readonly NamedFile[];
  /** Largest sum of their sizes, bytes. */
  readonly loaderBytesMax: number;
  /** Streamed from the disk by HTTP; by TFTP for GRUB. */
  readonly files: readonly NamedFile[];
  readonly runner: {
    /** Names out of `files`. */
    readonly kernel: string;
    readonly initrd: string;
    readonly kernelArguments: readonly string[];
    /** A folder that is laid over the ramdisk (ramdisk-overlay.ts); absent: none. */
    readonly overlay?: string;
    /** The processor of the hosts that boot it: images of commands are fetched for it. */
    readonly architecture: (typeof architectures)[number];
    /** The address at which runners dial in. */
    readonly address: string;
    readonly port: number;
  };
  readonly bmc: {
    readonly ipmitool: IpmitoolOptions;
    readonly redfish: RedfishOptions;
    readonly readBack: ReadBackTimings;
    readonly governor: GovernorLimits;
    /** The firmware type whose flag a boot override carries. */
    readonly firmware: Firmware;
  };
  /** Unset: no host boots from virtual media. */
  readonly virtualMedia?: VirtualMediaConfig;
  /** Unset: no Raspberry Pi is served as one. */
  readonly raspberryPi?: RaspberryPiConfig;
  /** Images of hosts and of commands are kept below the state folder, so many bytes of them. */
  readonly imageCacheBytesMax: number;
  /** Hosts whose images are fetched or written at once; the others wait for a slot. */
  readonly imagesAtOnceMax: number;
  /** When a netboot without an order is reported. */
  readonly netboots: NetbootWatchLimits;
  /** Unset: no spans are recorded. */
  readonly traces?: TracesConfig;
  /** For tests only: a file that names a crash point and whom SIGKILL ends there. */
  readonly crashAt?: string;
}

/** Reads the text of a configuration file; throws ConfigError. */
export function parseConfig(text: string): AgentConfig {
  return readConfigText(text, (reader) => {
    const config = readAgent(reader);
    refuseOneAddress(reader, config);
    return config;
  });
}

/** The same for a caller that runs with it: also refuses settings that contradict each other. */
export function parseWholeConfig(text: string): AgentConfig {
  const config = parseConfig(text);
  const { http, runner, stateFolder } = config;
  const problems: ConfigProblem[] = [
    ...bootProblems({ ...config, interfaces: bootInterfaces(config, stateFolder) }),
  ];
  const refuse = (key: string, text: string) => void problems.push({ key, text });
  const ofArchitecture = architectureProblem(config);
  if (ofArchitecture !== undefined) problems.push(ofArchitecture);
  if (portsClash(http, runner)) refuse('http.port', 'has to be another than runner.port');
  const { address, port, filesPort } = http;
  if (filesPort !== 0 && runner.overlay !== undefined) {
    refuse('runner.overlay', 'has to be absent with http.filesPort: nobody else may read it');
  }
  if (filesPort !== 0 && portsClash({ address, port: filesPort }, http)) {
    refuse('http.filesPort', `has to be another than http.port, ${port}`);
  }
  if (filesPort !== 0 && portsClash({ address, port: filesPort }, runner)) {
    refuse('http.filesPort', `has to be another than runner.port, ${runner.port}`);
  }
  for (const [index, url] of config.bmc.redfish.firmwareUrls.entries()) {
    if (isPlainUrl(url)) continue;
    const form = 'http:// or https://, without user, query, "%" and ".."';
    refuse(`bmc.redfishFirmwareUrls[${index}]`, `has to be a plain URL: ${form}; it is ${url}`);
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
}

/** With several interfaces each has an address of its own, and its hosts are given that address. */
function refuseOneAddress(reader: ConfigReader, config: AgentConfig): void {
  const { interfaces, tftp, http, runner } = config;
  if (interfaces.length === 0) return;
  for (const [key, { address }] of Object.entries({ tftp, http, runner })) {
    if (address === anyAddress) continue;
    reader.refuse(`${key}.address`, `has to be ${anyAddress}, the default, with "interfaces"`);
  }
}

function readAgent(reader: ConfigReader): AgentConfig {
  const bmc = reader.section('bmc', readBmc);
  const readProfile = (one: ConfigReader): BootProfile => ({
    name: one.textThat('name', (text) => profileName.test(text), 'a value that a label may have'),
    loaders: one.section('loaders', readLoaders),
    kernelArguments: one.texts('kernelArguments', []),
    firmware: one.oneOf('firmware', firmwares, bmc.firmware),
  });
  return {
    stateFolder: reader.text('stateFolder', '/var/lib/rackwright-agent'),
    ...readInterfaces(reader),
    log: reader.section('log', (log) => ({ level: log.oneOf('level', levels, 'info') })),
    metrics: reader.section('metrics', (metrics) => ({
      address: metrics.text('address', '127.0.0.1'),
      port: metrics.whole('port', ports, 7446),
    })),
    tftp: reader.section('tftp', (tftp) => ({
      ...readListen(tftp, 69),
      transferPorts: tftp.oneOf('transferPorts', ['own', 'single'], 'own'),
      limits: tftp.section('limits', readTftpLimits),
      keptFileBytesMax: tftp.whole('keptFileBytesMax', keptBytes, keptFileBytesMaxDefault),
    })),
    http: reader.section('http', (http) => ({
      ...readListen(http, 8080),
      filesPort: http.whole('filesPort', ports, 0),
      limits: http.section('limits', readHttpLimits),
    })),
    loaders: reader.section('loaders', readLoaders),
    bootProfiles: reader.sections('bootProfiles', readProfile),
    loaderFiles: reader.sections('loaderFiles', readFile),
    loaderBytesMax: reader.whole('loaderBytesMax', loaderBytes, loaderBytesMaxDefault),
    files: reader.sections('files', readFile),
    ...optional('virtualMedia', reader.optionalSection('virtualMedia', readMedia)),
    ...optional('raspberryPi', reader.optionalSection('raspberryPi', readRaspberryPi)),
    runner: reader.section('runner', readRunner),
    bmc,
    imageCacheBytesMax: reader.whole('imageCacheBytesMax', imageCacheBytes, 8 * gibibyte),
    imagesAtOnceMax: reader.whole('imagesAtOnceMax', [1, 1_000], defaultAdmissionLimits.atOnceMax),
    netboots: reader.section('netboots', readNetboots),
    ...optional('crashAt', reader.optionalText('crashAt')),
    ...optional('traces', reader.optionalSection('traces', readTraces)),
  };
}

/** The same form as a label's value. */
const profileName = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const firmwares = ['bios', 'uefi'] as const;
const platforms = ['bios', 'uefiX64', 'uefiIa32', 'uefiArm64'] as const;
const architectures = ['amd64', 'arm64'] as const;
const gibibyte = 1024 ** 3;
/** Loaders are kept in memory. */
const loaderBytes = [0, gibibyte] as const;
const keptBytes = [0, 2 ** 40] as const;
const imageCacheBytes = [0, 1024 * gibibyte] as const;
const levels = ['debug', 'info', 'warn', 'error'] as const;
/** 0 lets the system choose. */
const ports = [0, 65_535] as const;

function readListen(reader: ConfigReader, port: number) {
  return { address: reader.text('address', anyAddress), port: reader.whole('port', ports, port) };
}

/** The interval of retransmissions follows from the protocol, and is no key. */
function readTftpLimits(reader: ConfigReader): TftpLimits {
  const whole = (key: keyof TftpLimits, range: readonly [number, number]): number =>
    reader.whole(key, range, tftpLimitsDefault[key]);
  return {
    ...tftpLimitsDefault,
    transfersMax: whole('transfersMax', [1, 65_536]),
    transfersPerClientMax: whole('transfersPerClientMax', [1, 65_536]),
    blockBytesMax: whole('blockBytesMax', [512, 65_464]),
    windowBlocksMax: whole('windowBlocksMax', [1, 256]),
  };
}

/** The sizes of requests follow from firmware's requests, and are no keys. */
function readHttpLimits(reader: ConfigReader): BootHttpLimits {
  const limits = httpLimitsDefault;
  type Count = 'connectionsMax' | 'connectionsPerAddressMax' | 'connectionsPerHostMax';
  const count = (key: Count) => reader.whole(key, [1, 65_536], limits[key]);
  return {
    ...limits,
    connectionsMax: count('connectionsMax'),
    connectionsPerAddressMax: count('connectionsPerAddressMax'),
    connectionsPerHostMax: count('connectionsPerHostMax'),
    keptFileBytesMax: reader.whole('keptFileBytesMax', keptBytes, limits.keptFileBytesMax),
    idleTimeoutMs: reader.whole('idleTimeoutMs', [1_000, 3_600_000], limits.idleTimeoutMs),
  };
}

function readLoaders(reader: ConfigReader): Loaders {
  const loaders: { [platform in (typeof platforms)[number]]?: string } = {};
  for (const platform of platforms) {
    const name = reader.optionalText(platform);
    if (name !== undefined) loaders[platform] = name;
  }
  return loaders;
}

function readMedia(reader: ConfigReader): VirtualMediaConfig {
  const loaders = reader.section('loaders', (one) => ({
    ...optional('uefiX64', one.optionalText('uefiX64')),
    ...optional('uefiArm64', one.optionalText('uefiArm64')),
  }));
  return { loaders, ...optional('address', reader.optionalText('address')) };
}

function readRaspberryPi(reader: ConfigReader): RaspberryPiConfig {
  return {
    files: reader.sections('files', readFile),
    fileBytesMax: reader.whole('fileBytesMax', loaderBytes, loaderBytesMaxDefault),
  };
}

function readFile(reader: ConfigReader): NamedFile {
  return { name: reader.text('name'), path: reader.text('path') };
}

function readRunner(reader: ConfigReader): AgentConfig['runner'] {
  return {
    kernel: reader.text('kernel', 'vmlinuz'),
    initrd: reader.text('initrd', 'initrd'),
    kernelArguments: reader.texts('kernelArguments', []),
    ...optional('overlay', reader.optionalText('overlay')),
    architecture: reader.oneOf('architecture', architectures, 'amd64'),
    ...readListen(reader, 7443),
  };
}

function readBmc(reader: ConfigReader): AgentConfig['bmc'] {
  const day = 86_400_000;
  const ms = (key: string, fallback: number) => reader.whole(key, [0, day], fallback);
  const count = (key: string, fallback: number) => reader.whole(key, [1, 10_000], fallback);
  const governor = defaultGovernorLimits;
  return {
    ipmitool: {
      path: reader.text('ipmitoolPath', defaultIpmitoolOptions.path),
      callTimeoutMs: ms('callTimeoutMs', defaultIpmitoolOptions.callTimeoutMs),
    },
    redfish: readRedfish(reader),
    readBack: {
      windowMs: ms('readBackWindowMs', defaultReadBackTimings.windowMs),
      pollMs: ms('readBackPollMs', defaultReadBackTimings.pollMs),
    },
    governor: {
      ...governor,
      spacingMs: reader.optionalWhole('spacingMs', [0, day]),
      breakerAfterSilentCalls: count('breakerAfterSilentCalls', governor.breakerAfterSilentCalls),
      breakerOpenMs: ms('breakerOpenMs', governor.breakerOpenMs),
      breakerOpenMsMax: ms('breakerOpenMsMax', governor.breakerOpenMsMax),
      authenticationFailuresMax: count(
        'authenticationFailuresMax',
        governor.authenticationFailuresMax,
      ),
    },
    firmware: reader.oneOf('firmware', firmwares, 'bios'),
  };
}

function readNetboots(reader: ConfigReader): NetbootWatchLimits {
  const limits = defaultNetbootWatchLimits;
  const ms = (key: 'repeatAfterMs' | 'missingAfterMs') =>
    reader.whole(key, [1, 3_600_000], limits[key]);
  return {
    ...limits,
    repeatAfterMs: ms('repeatAfterMs'),
    missingAfterMs: ms('missingAfterMs'),
  };
}

function readRedfish(reader: ConfigReader): RedfishOptions {
  const minute = 60_000;
  const { limits, networkBoot, bootMode } = defaultRedfishOptions;
  const ms = (key: string, fallback: number) => reader.whole(key, [1, minute], fallback);
  return {
    networkBoot: reader.oneOf('redfishNetworkBoot', ['pxe', 'http'], networkBoot),
    bootMode: reader.oneOf('redfishBootMode', ['asFound', 'asAsked'], bootMode),
    firmwareUrls: reader.texts('redfishFirmwareUrls', []),
    limits: {
      ...limits,
      connectTimeoutMs: ms('redfishConnectTimeoutMs', limits.connectTimeoutMs),
      requestTimeoutMs: ms('redfishRequestTimeoutMs', limits.requestTimeoutMs),
    },
  };
}
