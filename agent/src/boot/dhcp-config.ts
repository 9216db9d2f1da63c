/** The mode of DHCP: off, beside another server (proxy), or as the only server. */

import {
  type AddressPlan,
  type AddressRange,
  addressNumber,
  type Mac,
  type MadeAddressPlan,
  makeAddressPlan,
  subnetHas,
} from '@rackwright/dhcp';
import type { ConfigProblem } from '@rackwright/platform';

export interface DhcpListen {
  /** 0.0.0.0: Linux gives broadcasts to no socket that is bound to one address. */
  readonly address: string;
  /** 67. */
  readonly port: number;
  readonly pxeAddress: string;
  /** 4011. */
  readonly pxePort: number;
  /** 68, where clients listen. */
  readonly clientPort: number;
  /** 67, where relays and other servers listen. */
  readonly relayPort: number;
  /** 255.255.255.255; EDK2 ignores a subnet's own broadcast address. */
  readonly broadcastAddress: string;
}

export interface ProxyDhcpConfig extends DhcpListen {
  readonly mode: 'proxy';
}

export interface SubnetConfig {
  /** `10.77.0.0/24`. */
  readonly network: string;
  /** Addresses in the network, the preferred one first; may be empty. */
  readonly routers: readonly string[];
  readonly dnsServers: readonly string[];
  readonly domainName?: string;
  readonly leaseSeconds: number;
}

export interface ReservationDhcpConfig extends DhcpListen {
  readonly mode: 'reservation';
  readonly subnet: SubnetConfig;
  /** These MACs get these addresses, also when they are no host of the rack (a BMC). */
  readonly reservations: readonly { readonly mac: Mac; readonly address: string }[];
  /** For hosts of the rack without a reservation; each keeps its address. */
  readonly range?: AddressRange;
  /** For unknown machines; without it they get no answer. */
  readonly discovery?: AddressRange;
  /** How long an address that a client found in use is not given to anyone. */
  readonly declinedMs: number;
  readonly otherServer: {
    /** How long the agent stays silent after the last trace of another server. */
    readonly quietMs: number;
    /** How often it asks whether there is one; 0 is never. */
    readonly probeMs: number;
  };
  /** The path of the leases, so that they survive a restart. */
  readonly leasesPath: string;
  /**
   * The former path of the leases. They are read from there as long as `leasesPath` does not exist.
   */
  readonly formerLeasesPath?: string;
}

export type DhcpConfig = ProxyDhcpConfig | ReservationDhcpConfig | { readonly mode: 'off' };

/** The ports and addresses that standards fix. */
export const dhcpListenDefault: DhcpListen = {
  address: '0.0.0.0',
  port: 67,
  pxeAddress: '0.0.0.0',
  pxePort: 4011,
  clientPort: 68,
  relayPort: 67,
  broadcastAddress: '255.255.255.255',
};

/** So that a runner outlives a restart of its agent, and a host that left frees its address. */
export const leaseSecondsDefault = 3_600;
export const leaseSecondsLimits = [60, 31_536_000] as const;
export const declinedMsDefault = 3_600_000;
export const otherServerDefault = { quietMs: 300_000, probeMs: 60_000 } as const;

/** More would be of no use to a client and might not fit the answer. */
const serversMax = 8;

/** The addresses to give; the key of a problem is one of the section `dhcp`. */
export function addressPlanOf(
  { subnet, reservations, range, discovery }: ReservationDhcpConfig,
  serverAddress: string,
): MadeAddressPlan {
  const settings = {
    network: subnet.network,
    reservations,
    ...(range === undefined ? {} : { range }),
    ...(discovery === undefined ? {} : { discovery }),
  };
  return makeAddressPlan(settings, [
    { whose: 'this agent', address: serverAddress },
    ...subnet.routers.map((address) => ({ whose: 'a router', address })),
    ...subnet.dnsServers.map((address) => ({ whose: 'a DNS server', address })),
  ]);
}

/** What is wrong with the rest of the subnet; the key is one of the section `dhcp`. */
export function subnetProblem(
  { routers, dnsServers, domainName, leaseSeconds }: SubnetConfig,
  plan: AddressPlan,
): ConfigProblem | undefined {
  const of = (key: keyof SubnetConfig, text: string) => ({ key: `subnet.${key}`, text });
  const stranger = routers.find((router) => !subnetHas(plan.subnet, router));
  if (stranger !== undefined) return of('routers', `${stranger} must be in the network`);
  const noAddress = dnsServers.find((server) => addressNumber(server) === undefined);
  if (noAddress !== undefined) return of('dnsServers', `${noAddress} must be an IPv4 address`);
  const tooMany = `must be at most ${serversMax}`;
  if (routers.length > serversMax) return of('routers', tooMany);
  if (dnsServers.length > serversMax) return of('dnsServers', tooMany);
  if (domainName !== undefined && !/^[A-Za-z0-9][A-Za-z0-9.-]{0,252}$/.test(domainName)) {
    return of('domainName', `${JSON.stringify(domainName)} must be a domain name`);
  }
  const [least, most] = leaseSecondsLimits;
  const fits = Number.isInteger(leaseSeconds) && leaseSeconds >= least && leaseSeconds <= most;
  return fits ? undefined : of('leaseSeconds', `must be from ${least} to ${most}`);
}
