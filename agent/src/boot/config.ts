/**
 * The configuration of the boot path: addresses, ports, limits, files, and how the runner is
 * started. It is checked once at the start, so no request can meet an invalid setting.
 */

import { type AddressPlan, type MadeAddressPlan, subnetHas, subnetsMeet } from '@rackwright/dhcp';
import { type ConfigProblem, problemText } from '@rackwright/platform';
import { type TftpLimits, tftpLimitsDefault } from '@rackwright/tftp';
import { addressPlanOf, type DhcpConfig, subnetProblem } from './dhcp-config.ts';
import type { BootProfile, Loaders } from './profiles.ts';
import { parseTftpName } from './urls.ts';

export interface BootHttpLimits {
  readonly headerBytesMax: number;
  readonly targetBytesMax: number;
  readonly connectionsMax: number;
  /** Connections of one address before its first request about a known host. */
  readonly connectionsPerAddressMax: number;
  readonly connectionsPerHostMax: number;
  /** Bytes of files that are kept in memory while hosts request them; 0 keeps none. */
  readonly keptFileBytesMax: number;
  readonly idleTimeoutMs: number;
}

export const httpLimitsDefault: BootHttpLimits = {
  headerBytesMax: 8_192,
  targetBytesMax: 1_024,
  connectionsMax: 512,
  connectionsPerAddressMax: 64,
  // A host has one or two, and those of a boot that it gave up.
  connectionsPerHostMax: 8,
  // A kernel and a ramdisk or two; all of it is given back a minute after the last boot.
  keptFileBytesMax: 128 * 1024 * 1024,
  idleTimeoutMs: 30_000,
};

/** A file under the only name by which it is served. */
export interface NamedFile {
  /** The name in requests by TFTP or HTTP. Letters, digits, dot, hyphen, underscore. */
  readonly name: string;
  /** Its path on this machine. */
  readonly path: string;
}

export interface RunnerBootConfig {
  /** Names among `files`. */
  readonly kernel: string;
  readonly initrd: string;
  /**
   * The port at which the runner finds the agent, at the address that its host was given. While it
   * is a promise, runners cannot dial yet, and hosts wait for their scripts. It never rejects.
   */
  readonly agentPort: number | Promise<number>;
  /** SHA-256 of the agent's certificate, 64 hex digits. */
  readonly fingerprint: string;
  readonly kernelArguments: readonly string[];
}

/** A network that hosts boot from. */
export interface BootInterface {
  /** The interface that its sockets are bound to; absent: there is one only, and any socket. */
  readonly name?: string;
  /** Our IPv4 address as hosts there reach it: in offers and URLs, and the source of transfers. */
  readonly serverAddress: string;
  /** Our IPv6 address there, as Node writes it: HTTP is served at it too. Absent: IPv4 only. */
  readonly serverAddress6?: string;
  readonly dhcp: DhcpConfig;
}

/**
 * What TFTP sends files from: a port for each transfer (RFC 1350 §4), or the port of the request.
 */
export type TransferPorts = 'own' | 'single';

export interface BootConfig {
  /** At least one; of several, each has a name. */
  readonly interfaces: readonly BootInterface[];
  /** Our addresses that hosts may be given. Some of their interfaces may not be served now. */
  readonly addresses?: readonly string[];
  readonly tftp: {
    readonly address: string;
    /** 69. */
    readonly port: number;
    readonly limits?: Partial<TftpLimits>;
    /** Absent: `own`. */
    readonly transferPorts?: TransferPorts;
    /**
     * Bytes of kernels and ramdisks in memory while they are sent; default
     * {@link keptFileBytesMaxDefault}.
     */
    readonly keptFileBytesMax?: number;
  };
  readonly http: {
    readonly address: string;
    readonly port: number;
    /**
     * The port of another server that serves boot files and asks us for permission; 0: this one.
     */
    readonly filesPort?: number;
    readonly limits?: Partial<BootHttpLimits>;
  };
  /** Names among `loaderFiles`. */
  readonly loaders: Loaders;
  /** For hosts that name one; absent: none. */
  readonly bootProfiles?: readonly BootProfile[];
  /** Read into memory at the start; served by TFTP and HTTP. */
  readonly loaderFiles: readonly NamedFile[];
  /** Largest sum of the loaders' sizes; default {@link loaderBytesMaxDefault}. */
  readonly loaderBytesMax?: number;
  /** The CD that hosts boot from by virtual media; absent: none is served. */
  readonly virtualMedia?: VirtualMediaConfig;
  /** The files of a Raspberry Pi's firmware; absent: no Raspberry Pi is served as one. */
  readonly raspberryPi?: RaspberryPiConfig;
  /** Streamed from disk by HTTP; by TFTP for GRUB and U-Boot, which may have nothing else. */
  readonly files: readonly NamedFile[];
  readonly runner: RunnerBootConfig;
}

/** The content of the CD for virtual media, and the place where BMCs fetch it. */
export interface VirtualMediaConfig {
  /** Names among `loaderFiles`; at least one. They have drivers of their own for network cards. */
  readonly loaders: Pick<Loaders, 'uefiX64' | 'uefiArm64'>;
  /** Our address as BMCs reach it; absent: that of the first interface. */
  readonly address?: string;
}

/** The first files of a Raspberry Pi, up to the U-Boot or UEFI firmware that takes over. */
export interface RaspberryPiConfig {
  /** Read into memory at the start; served by TFTP alone. A name may have one folder. */
  readonly files: readonly NamedFile[];
  /** Largest sum of their sizes; default {@link loaderBytesMaxDefault}. */
  readonly fileBytesMax?: number;
}

/** Two kernels with their ramdisks, and room for more of them. */
export const keptFileBytesMaxDefault = 256 * 1024 * 1024;

export const loaderBytesMaxDefault = 32 * 1024 * 1024;

export function tftpLimitsOf(config: BootConfig): TftpLimits {
  return { ...tftpLimitsDefault, ...config.tftp.limits };
}

export function httpLimitsOf(config: BootConfig): BootHttpLimits {
  return { ...httpLimitsDefault, ...config.http.limits };
}

/** Characters without a special meaning in a URL, a TFTP name and an iPXE script. */
export const safeName = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$/;
const safeArgument = /^[A-Za-z0-9._:,=@%+/-]+$/;
const portMax = 65_535;
/** Every address of this machine. */
export const anyAddress = '0.0.0.0';
/** The same, by IPv4 and IPv6. */
const everywhere6 = '::';
const ipv4 = /^\d{1,3}(\.\d{1,3}){3}$/;

/** Settings that can be checked before the start. */
export type BootConfigSettings = Pick<
  BootConfig,
  | 'interfaces'
  | 'loaders'
  | 'bootProfiles'
  | 'loaderFiles'
  | 'virtualMedia'
  | 'raspberryPi'
  | 'files'
  | 'tftp'
  | 'http'
> & { readonly runner: Pick<RunnerBootConfig, 'kernel' | 'initrd' | 'kernelArguments'> };

/** Throws an Error that names the first setting that cannot work. */
export function checkBootConfig(config: BootConfig): void {
  const { agentPort, fingerprint } = config.runner;
  const isPort =
    typeof agentPort === 'object' ||
    (Number.isInteger(agentPort) && agentPort > 0 && agentPort <= portMax);
  const [problem] = [
    ...bootProblems(config),
    ...unless(isPort, 'runner.agentPort', `from 1 to ${portMax}`),
    ...unless(/^[0-9a-f]{64}$/i.test(fingerprint), 'runner.fingerprint', '64 hex digits'),
  ];
  if (problem !== undefined) throw new Error(`boot configuration: ${problemText(problem)}`);
}

/** Everything that cannot work. Pure. */
export function bootProblems(config: BootConfigSettings): readonly ConfigProblem[] {
  const { runner, bootProfiles = [] } = config;
  const loaderNames = new Set(config.loaderFiles.map(({ name }) => name));
  const fileNames = new Set(config.files.map(({ name }) => name));
  return [
    ...interfaceProblems(config),
    ...listen6Problems(config),
    ...fileProblems(config),
    ...loaderProblems('loaders', config.loaders, loaderNames),
    ...bootProfiles.flatMap((one, index) => {
      const at = `bootProfiles[${index}]`;
      const isFirst = bootProfiles.findIndex(({ name }) => name === one.name) === index;
      return [
        ...unless(isFirst, `${at}.name`, 'another than that of a profile before it'),
        ...loaderProblems(`${at}.loaders`, one.loaders, loaderNames),
        ...argumentProblems(`${at}.kernelArguments`, one.kernelArguments),
      ];
    }),
    ...mediaProblems(config.virtualMedia, loaderNames),
    ...raspberryPiProblems(config.raspberryPi, loaderNames),
    ...unless(fileNames.has(runner.kernel), 'runner.kernel', 'a name among files'),
    ...unless(fileNames.has(runner.initrd), 'runner.initrd', 'a name among files'),
    ...argumentProblems('runner.kernelArguments', runner.kernelArguments),
  ];
}

function loaderProblems(
  at: string,
  loaders: Loaders,
  names: ReadonlySet<string>,
): readonly ConfigProblem[] {
  return Object.entries(loaders).flatMap(([platform, name]) =>
    unless(names.has(name), `${at}.${platform}`, 'a name among loaderFiles'),
  );
}

function mediaProblems(
  media: VirtualMediaConfig | undefined,
  names: ReadonlySet<string>,
): readonly ConfigProblem[] {
  if (media === undefined) return [];
  const { loaders, address } = media;
  const isAddress = address === undefined || ipv4.test(address);
  const someLoader = Object.keys(loaders).length > 0;
  return [
    ...unless(someLoader, 'virtualMedia.loaders', 'uefiX64 or uefiArm64, or both'),
    ...loaderProblems('virtualMedia.loaders', loaders, names),
    ...unless(isAddress, 'virtualMedia.address', 'a dotted IPv4 address'),
  ];
}

function raspberryPiProblems(
  raspberryPi: RaspberryPiConfig | undefined,
  loaderNames: ReadonlySet<string>,
): readonly ConfigProblem[] {
  if (raspberryPi === undefined) return [];
  const { files } = raspberryPi;
  const taken = new Set(loaderNames);
  const problems = [...unless(files.length > 0, 'raspberryPi.files', 'at least one')];
  for (const [index, { name }] of files.entries()) {
    const at = `raspberryPi.files[${index}].name`;
    const shown = JSON.stringify(name);
    const [, ...parts] = /^(?:([^/]+)\/)?([^/]+)$/.exec(name) ?? [];
    const isSafe = parts.length > 0 && parts.every((part) => !part || safeName.test(part));
    const target = parseTftpName(name);
    const isFree = target.kind === 'loader' && target.mac === undefined;
    problems.push(
      ...unless(isSafe, at, `a name, or a folder and a name, unlike ${shown}`),
      ...unless(isFree, at, `another than a name that the agent itself serves, unlike ${shown}`),
      ...unless(!taken.has(name), at, `another than that of another file, which is ${shown} too`),
    );
    taken.add(name);
  }
  return problems;
}

function argumentProblems(at: string, args: readonly string[]): readonly ConfigProblem[] {
  return args.flatMap((argument) => {
    const right = `words without spaces, unlike ${JSON.stringify(argument)}`;
    return unless(safeArgument.test(argument), at, right);
  });
}

/**
 * Our address in the answer to a request, by the address that the request was sent to. With one
 * interface it is always that interface's. Undefined when hosts are not given that address.
 */
export function addressAsked(
  addresses: readonly string[],
  localAddress: string,
): string | undefined {
  const [first, ...others] = addresses;
  return others.length === 0 ? first : addresses.find((address) => address === localAddress);
}

/** The address of the HTTP listener: IPv6 too if any interface has such an address. */
export function httpListen({ http, interfaces }: Pick<BootConfig, 'http' | 'interfaces'>) {
  const { port } = http;
  const by6 = interfaces.some(({ serverAddress6 }) => serverAddress6 !== undefined);
  return { address: by6 ? everywhere6 : http.address, port };
}

function fileProblems({ loaderFiles, files }: BootConfigSettings): readonly ConfigProblem[] {
  const all = Object.entries({ loaderFiles, files }).flatMap(([key, some]) =>
    some.map(({ name }, index) => ({ name, at: `${key}[${index}].name` })),
  );
  return all.flatMap(({ name, at }, index) => {
    const shown = JSON.stringify(name);
    const isFirst = all.findIndex((other) => other.name === name) === index;
    return [
      ...unless(safeName.test(name), at, `letters, digits and . - _, unlike ${shown}`),
      ...unless(isFirst, at, `another than that of a file before it, which is ${shown} too`),
    ];
  });
}

function interfaceProblems({ interfaces, tftp }: BootConfigSettings): readonly ConfigProblem[] {
  const named = new Set(interfaces.map(({ name }) => name));
  const areNamed = named.size === interfaces.length && (named.size === 1 || !named.has(undefined));
  const addresses = new Set(interfaces.map(({ serverAddress }) => serverAddress));
  const [none] = [
    ...unless(interfaces.length > 0, 'interfaces', 'at least one'),
    ...unless(areNamed, 'interfaces', 'one, or all with names of their own'),
    ...unless(addresses.size === interfaces.length, 'interfaces', 'with an address each'),
  ];
  if (none !== undefined) return [none];
  const plans: PlannedInterface[] = [];
  const problems: ConfigProblem[] = [];
  for (const [index, one] of interfaces.entries()) {
    const at = one.name === undefined ? '' : `interfaces[${index}].`;
    const right = 'a dotted IPv4 address';
    problems.push(...unless(ipv4.test(one.serverAddress), `${at}serverAddress`, right));
    problems.push(...portProblems(one, at, tftp));
    const made = planOf(one);
    if (made?.kind === 'bad') {
      const { key, text } = made.problem;
      problems.push({ key: `${at}dhcp.${key}`, text });
    } else if (made !== undefined) plans.push({ one, at, plan: made.value });
  }
  return [...problems, ...meetingProblems(interfaces, plans)];
}

interface PlannedInterface {
  readonly one: BootInterface;
  /** Path of its entry, with a dot. */
  readonly at: string;
  readonly plan: AddressPlan;
}

/** Subnets and addresses that are those of another interface as well. */
function meetingProblems(
  interfaces: readonly BootInterface[],
  plans: readonly PlannedInterface[],
): readonly ConfigProblem[] {
  return plans.flatMap(({ one, at, plan: { subnet } }, index) => {
    const network = `${at}dhcp.subnet.network`;
    const other = plans.slice(index + 1).find(({ plan }) => subnetsMeet(subnet, plan.subnet));
    const away = interfaces.find((two) => two !== one && subnetHas(subnet, two.serverAddress));
    return [
      ...unless(other === undefined, network, `apart from that of interface ${other?.one.name}`),
      ...unless(away === undefined, network, `without the address of interface ${away?.name}`),
    ];
  });
}

/** One socket receives both. */
function listen6Problems({ interfaces, http }: BootConfigSettings): readonly ConfigProblem[] {
  const by6 = interfaces.map(({ serverAddress6 }) => serverAddress6).filter((one) => one);
  const areOwn = new Set(by6).size === by6.length;
  const isEverywhere = by6.length === 0 || http.address === anyAddress;
  return [
    ...unless(areOwn, 'interfaces', 'with a serverAddress6 each, or none'),
    ...unless(isEverywhere, 'http.address', `${anyAddress}, the default, with serverAddress6`),
  ];
}

/** DHCP, PXE and TFTP are three ports of one interface. */
function portProblems(
  { dhcp }: BootInterface,
  at: string,
  tftp: BootConfig['tftp'],
): readonly ConfigProblem[] {
  if (dhcp.mode === 'off') return [];
  const pxe = { address: dhcp.pxeAddress, port: dhcp.pxePort };
  return [
    ...unless(!portsClash(dhcp, pxe), `${at}dhcp.pxePort`, 'another than dhcp.port'),
    ...unless(!portsClash(dhcp, tftp), `${at}dhcp.port`, 'another than tftp.port'),
    ...unless(!portsClash(pxe, tftp), `${at}dhcp.pxePort`, 'another than tftp.port'),
  ];
}

interface Listen {
  readonly address: string;
  readonly port: number;
}

/** Whether one of two servers of one kind keeps the other from opening. */
export function portsClash(one: Listen, other: Listen): boolean {
  if (one.port !== other.port || one.port === 0) return false;
  return one.address === other.address || [one.address, other.address].includes(anyAddress);
}

/** The plan of an interface that gives addresses; the key of a problem is one of its `dhcp`. */
function planOf({ dhcp, serverAddress }: BootInterface): MadeAddressPlan | undefined {
  if (dhcp.mode !== 'reservation') return undefined;
  const plan = addressPlanOf(dhcp, serverAddress);
  if (plan.kind === 'bad') return plan;
  const problem = subnetProblem(dhcp.subnet, plan.value);
  return problem === undefined ? plan : { kind: 'bad', problem };
}

function unless(holds: boolean, key: string, right: string): readonly ConfigProblem[] {
  return holds ? [] : [{ key, text: `has to be ${right}` }];
}
