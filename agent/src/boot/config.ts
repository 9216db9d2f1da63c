/**
 * What the boot path is told: addresses, ports, limits, files, and how the runner is started.
 * Checked once at the start, so that no request can meet a setting that makes no sense.
 */
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
  /** Where the runner finds the agent, `IP:PORT`. */
  readonly agentEndpoint: string;
  /** SHA-256 of the agent's certificate, 64 hex digits. */
  readonly fingerprint: string;
  readonly kernelArguments: readonly string[];
}

export interface BootConfig {
  /** Our IPv4 address as hosts reach it: in offers and URLs. */
  readonly serverAddress: string;
  readonly dhcp: DhcpConfig;
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
const ipv4 = /^\d{1,3}(\.\d{1,3}){3}$/;

/** Throws an Error that names the first setting that cannot work. */
export function checkBootConfig(config: BootConfig): void {
  const { runner } = config;
  demand(ipv4.test(config.serverAddress), 'serverAddress', 'a dotted IPv4 address');
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
  const endpoint = /^([\d.]+):\d{1,5}$/.exec(runner.agentEndpoint)?.[1] ?? '';
  demand(ipv4.test(endpoint), 'runner.agentEndpoint', 'IP:PORT');
  demand(/^[0-9a-f]{64}$/i.test(runner.fingerprint), 'runner.fingerprint', '64 hex digits');
  for (const argument of runner.kernelArguments) {
    demand(safeArgument.test(argument), `kernel argument ${JSON.stringify(argument)}`, 'one word');
  }
  if (config.dhcp.mode === 'reservation') {
    const plan = addressPlanOf(config.dhcp, config.serverAddress);
    const problem = typeof plan === 'string' ? plan : subnetProblem(config.dhcp.subnet, plan);
    if (problem !== undefined) throw new Error(`boot configuration: dhcp.${problem}`);
  }
}

function demand(holds: boolean, what: string, right: string): void {
  if (!holds) throw new Error(`boot configuration: ${what} must be ${right}`);
}
