/**
 * What the boot path is told: addresses, ports, limits, files, and how the runner is started.
 * Checked once at the start, so that no request can meet a setting that makes no sense.
 */

import { type AddressPlan, subnetHas, subnetsMeet } from '@rackwright/dhcp';
import { type TftpLimits, tftpLimitsDefault } from '@rackwright/tftp';
import { addressPlanOf, type DhcpConfig, subnetProblem } from './dhcp-config.ts';

export interface HttpLimits {
  readonly headerBytesMax: number;
  readonly targetBytesMax: number;
  readonly connectionsMax: number;
  readonly connectionsPerAddressMax: number;
  readonly idleTimeoutMs: number;
}

export const httpLimitsDefault: HttpLimits = {
  headerBytesMax: 8_192,
  targetBytesMax: 1_024,
  connectionsMax: 512,
  // A host has one or two; many may stand behind one address.
  connectionsPerAddressMax: 64,
  idleTimeoutMs: 30_000,
};

/** A file under the only name by which it is served. */
export interface NamedFile {
  /** Letters, digits, dot, hyphen, underscore. */
  readonly name: string;
  readonly path: string;
}

export interface RunnerBootConfig {
  /** Names among `files`. */
  readonly kernel: string;
  readonly initrd: string;
  /** Where the runner finds the agent, at the address that its host was told. */
  readonly agentPort: number;
  /** SHA-256 of the agent's certificate, 64 hex digits. */
  readonly fingerprint: string;
  readonly kernelArguments: readonly string[];
}

/** A network that hosts boot from. */
export interface BootInterface {
  /** The interface that its sockets are bound to; absent: there is one only, and any socket. */
  readonly name?: string;
  /** Our IPv4 address as hosts there reach it: in offers and URLs, and what transfers come from. */
  readonly serverAddress: string;
  readonly dhcp: DhcpConfig;
}

export interface BootConfig {
  /** At least one; of several, each has a name. */
  readonly interfaces: readonly BootInterface[];
  readonly tftp: {
    readonly address: string;
    /** 69. */
    readonly port: number;
    readonly limits?: Partial<TftpLimits>;
  };
  readonly http: {
    readonly address: string;
    readonly port: number;
    readonly limits?: Partial<HttpLimits>;
  };
  /** Names among `loaderFiles`. */
  readonly loaders: {
    readonly bios?: string;
    readonly uefiX64?: string;
    readonly uefiIa32?: string;
    readonly uefiArm64?: string;
  };
  /** Read into memory at the start; served by TFTP and HTTP. */
  readonly loaderFiles: readonly NamedFile[];
  /** Largest sum of the loaders' sizes; default {@link loaderBytesMaxDefault}. */
  readonly loaderBytesMax?: number;
  /** Served by HTTP only, streamed from disk. */
  readonly files: readonly NamedFile[];
  readonly runner: RunnerBootConfig;
}

export const loaderBytesMaxDefault = 32 * 1024 * 1024;

export function tftpLimitsOf(config: BootConfig): TftpLimits {
  return { ...tftpLimitsDefault, ...config.tftp.limits };
}

export function httpLimitsOf(config: BootConfig): HttpLimits {
  return { ...httpLimitsDefault, ...config.http.limits };
}

/** What can stand in a URL, a TFTP name and an iPXE script without meaning anything there. */
export const safeName = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$/;
const safeArgument = /^[A-Za-z0-9._:,=@%+/-]+$/;
const portMax = 65_535;
const ipv4 = /^\d{1,3}(\.\d{1,3}){3}$/;

/** Throws an Error that names the first setting that cannot work. */
export function checkBootConfig(config: BootConfig): void {
  const { runner } = config;
  checkInterfaces(config.interfaces);
  for (const { name } of [...config.loaderFiles, ...config.files]) {
    demand(safeName.test(name), `file name ${JSON.stringify(name)}`, 'letters, digits and . - _');
  }
  const loaderNames = new Set(config.loaderFiles.map(({ name }) => name));
  for (const [platform, name] of Object.entries(config.loaders)) {
    demand(loaderNames.has(name), `loaders.${platform}`, 'a name among loaderFiles');
  }
  const fileNames = new Set(config.files.map(({ name }) => name));
  demand(fileNames.has(runner.kernel), 'runner.kernel', 'a name among files');
  demand(fileNames.has(runner.initrd), 'runner.initrd', 'a name among files');
  const { agentPort } = runner;
  const isPort = Number.isInteger(agentPort) && agentPort > 0 && agentPort <= portMax;
  demand(isPort, 'runner.agentPort', `from 1 to ${portMax}`);
  demand(/^[0-9a-f]{64}$/i.test(runner.fingerprint), 'runner.fingerprint', '64 hex digits');
  for (const argument of runner.kernelArguments) {
    demand(safeArgument.test(argument), `kernel argument ${JSON.stringify(argument)}`, 'one word');
  }
}

/**
 * What a request is told as our address, by which of them it was sent to: where there is one only,
 * that one. Undefined when it was none that hosts are told of.
 */
export function addressAsked(
  interfaces: readonly Pick<BootInterface, 'serverAddress'>[],
  localAddress: string,
): string | undefined {
  const [first, ...others] = interfaces;
  if (others.length === 0) return first?.serverAddress;
  return interfaces.find(({ serverAddress }) => serverAddress === localAddress)?.serverAddress;
}

/** How a setting of an interface is called in what is told of it. */
export function settingOf({ name }: BootInterface, setting: string): string {
  return name === undefined ? setting : `${setting} of interface ${name}`;
}

function checkInterfaces(interfaces: readonly BootInterface[]): void {
  demand(interfaces.length > 0, 'interfaces', 'at least one');
  const named = new Set(interfaces.map(({ name }) => name));
  const areTold = named.size === interfaces.length && (named.size === 1 || !named.has(undefined));
  demand(areTold, 'interfaces', 'one, or all with names of their own');
  const addresses = new Set(interfaces.map(({ serverAddress }) => serverAddress));
  demand(addresses.size === interfaces.length, 'serverAddress', 'another for each interface');
  const plans: (readonly [BootInterface, AddressPlan])[] = [];
  for (const one of interfaces) {
    const what = settingOf(one, 'serverAddress');
    demand(ipv4.test(one.serverAddress), what, 'a dotted IPv4 address');
    const plan = checkedPlan(one);
    if (plan !== undefined) plans.push([one, plan]);
  }
  for (const [index, [one, { subnet }]] of plans.entries()) {
    const other = plans.slice(index + 1).find(([, plan]) => subnetsMeet(subnet, plan.subnet));
    const what = settingOf(one, 'dhcp.subnet.network');
    demand(other === undefined, what, `apart from that of interface ${other?.[0].name}`);
    const away = interfaces.find((two) => two !== one && subnetHas(subnet, two.serverAddress));
    demand(away === undefined, what, `without the address of interface ${away?.name}`);
  }
}

/** Of one that gives addresses. */
function checkedPlan(one: BootInterface): AddressPlan | undefined {
  const { dhcp, serverAddress } = one;
  if (dhcp.mode !== 'reservation') return undefined;
  const plan = addressPlanOf(dhcp, serverAddress);
  if (typeof plan === 'string') throw planError(one, plan);
  const problem = subnetProblem(dhcp.subnet, plan);
  if (problem !== undefined) throw planError(one, problem);
  return plan;
}

function planError({ name }: BootInterface, problem: string): Error {
  const whose = name === undefined ? '' : `interface ${name}: `;
  return new Error(`boot configuration: ${whose}dhcp.${problem}`);
}

function demand(holds: boolean, what: string, right: string): void {
  if (!holds) throw new Error(`boot configuration: ${what} must be ${right}`);
}
