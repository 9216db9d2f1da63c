/**
 * The networks that hosts boot from, as the configuration names them: one by `serverAddress` and
 * `dhcp`, or any number of them as a list, each with the name of its interface. The sockets that
 * were handed over at the start decide which of the listed interfaces are served.
 *
 * I1 Hosts get the address of the interface that received their request. So sockets of an interface
 *    without an entry are refused, and so are two interfaces without a list.
 * I2 An interface that is absent, or whose sockets could not be opened, does not delay the others:
 *    they are served, and the absent one is served after the agent's next start.
 */
import { type ConfigReader, invalid, type Read, valid } from '@rackwright/platform';
import { optional } from '@rackwright/platform/config';
import type { BootInterface } from './boot/index.ts';
import { type AgentDhcpConfig, readDhcp } from './dhcp-section.ts';

/** One entry of the list. */
export interface AgentInterface {
  /** The interface's name; its inherited sockets have the same name. */
  readonly name: string;
  /** This machine's IPv4 address there. */
  readonly serverAddress: string;
  /** Its IPv6 address there; absent: hosts boot by IPv4 alone. */
  readonly serverAddress6?: string;
  readonly dhcp: AgentDhcpConfig;
}

/** The networks in the configuration; either the list is empty or the rest is absent. */
export interface InterfaceSettings {
  /** IPv4 address that hosts on the provisioning network reach this agent at. */
  readonly serverAddress?: string;
  /** IPv6 address that they may reach it at. */
  readonly serverAddress6?: string;
  readonly dhcp?: AgentDhcpConfig;
  readonly interfaces: readonly AgentInterface[];
}

/** Three ports each, of the sockets that a process is handed. */
export const interfacesMax = 32;

/** Names that the kernel takes. */
const interfaceName = /^(?!\.{1,2}$)[^\s/:]{1,15}$/;

export function readInterfaces(reader: ConfigReader): InterfaceSettings {
  const interfaces = reader.sections('interfaces', (one) => ({
    name: one.textThat('name', (text) => interfaceName.test(text), 'the name of an interface'),
    serverAddress: readAddress(one),
    ...readAddress6(one),
    dhcp: one.section('dhcp', readDhcp),
  }));
  // Something else than a list still means one: nothing has to stand beside it.
  if (interfaces.length === 0 && !reader.hasProblem('interfaces')) {
    return {
      serverAddress: readAddress(reader),
      ...readAddress6(reader),
      dhcp: reader.section('dhcp', readDhcp),
      interfaces,
    };
  }
  for (const key of ['serverAddress', 'serverAddress6', 'dhcp']) {
    reader.withdrawn(key, 'has to stand in each of interfaces instead');
  }
  if (interfaces.length > interfacesMax) {
    // Each is compared with each: that is for a short list only.
    reader.refuse('interfaces', `has to be a list of at most ${interfacesMax}`);
    return { interfaces };
  }
  refuseTwice(reader, interfaces, 'name');
  refuseTwice(reader, interfaces, 'serverAddress');
  return { interfaces };
}

/**
 * The boot path's interfaces. Each interface has its leases in a file of its own in the state
 * folder. After a change to a list the earlier leases are read from their former path.
 */
export function bootInterfaces(
  { serverAddress = '', serverAddress6, dhcp = { mode: 'off' }, interfaces }: InterfaceSettings,
  stateFolder: string,
): readonly BootInterface[] {
  const leases = `${stateFolder}/dhcp-leases`;
  if (interfaces.length === 0) {
    const by6 = serverAddress6 === undefined ? {} : { serverAddress6 };
    return [{ serverAddress, ...by6, dhcp: withLeases(dhcp, leases) }];
  }
  return interfaces.map((one) => {
    return { ...one, dhcp: withLeases(one.dhcp, `${leases}-${one.name}`, leases) };
  });
}

/** The sockets that were handed to this process, as far as interfaces are concerned. */
export interface HandedOver {
  /** The number of interfaces that have sockets. */
  readonly interfaces: number;
  readonly names: readonly string[];
}

/** The listed interfaces, divided into served ones and others. */
export interface Division {
  readonly served: readonly AgentInterface[];
  /** They are not there yet. */
  readonly awaited: readonly string[];
  /** They are there, and no socket of theirs was handed over. */
  readonly closed: readonly string[];
}

/** The text about what to do for an interface without sockets. */
export function closedText(name: string): string {
  return (
    `interfaces has ${name}, and no socket of it was handed to this process: enable ` +
    `rackwright-agent@${name}.socket, or see systemctl status rackwright-agent@${name}.socket ` +
    'for why it could not open'
  );
}

/** Divides the list; the problem is what to do when it and the sockets do not fit. */
export function divideInterfaces(
  { interfaces }: InterfaceSettings,
  handedOver: HandedOver,
  isThere: (name: string) => boolean,
): Read<Division> {
  if (interfaces.length === 0) {
    if (handedOver.interfaces <= 1) return valid({ served: [], awaited: [], closed: [] });
    return invalid(
      `rackwright-agent@INTERFACE.socket is enabled for ${handedOver.interfaces} interfaces, ` +
        'and hosts are told of one serverAddress: list them under "interfaces", each with the ' +
        'address that this machine has there, or disable the others',
    );
  }
  const stranger = handedOver.names.find((name) => !interfaces.some((one) => one.name === name));
  if (stranger !== undefined) {
    return invalid(
      `rackwright-agent@${stranger}.socket is enabled, and interfaces has no entry for it: add ` +
        'one with the address that this machine has there, or disable that socket',
    );
  }
  const served = interfaces.filter(({ name }) => handedOver.names.includes(name));
  const rest = interfaces.filter((one) => !served.includes(one)).map(({ name }) => name);
  const awaited = rest.filter((name) => !isThere(name));
  const closed = rest.filter(isThere);
  if (served.length > 0) return valid({ served, awaited, closed });
  const [first] = closed;
  if (first !== undefined) return invalid(closedText(first));
  return invalid(`there is no interface ${rest.join(', ')} on this machine yet`);
}

/**
 * Listed addresses that hosts are given although their interfaces do not have them. `addressesOf`:
 * the present addresses of each interface of this machine.
 */
export function strayAddresses(
  interfaces: readonly AgentInterface[],
  addressesOf: ReadonlyMap<string, readonly string[]>,
): readonly string[] {
  return interfaces
    .filter(({ name, serverAddress }) => !addressesOf.get(name)?.includes(serverAddress))
    .map(({ name, serverAddress }) => {
      const [owner] = [...addressesOf].find(([, own]) => own.includes(serverAddress)) ?? [];
      const has = addressesOf.get(name)?.join(', ') || 'none';
      return (
        `hosts on ${name} are told ${serverAddress}, which is no address of it` +
        (owner === undefined ? '' : ` but of ${owner}`) +
        `; it has ${has}`
      );
    });
}

function readAddress(reader: ConfigReader): string {
  return reader.textThat(
    'serverAddress',
    isOwnIpv4,
    'an IPv4 address of this machine, written like 10.0.0.3',
  );
}

function readAddress6(reader: ConfigReader): { readonly serverAddress6?: string } {
  const form =
    'an IPv6 address of this machine that is not of the link alone, written like fd00::3';
  return optional('serverAddress6', reader.optionalTextThat('serverAddress6', isOwnIpv6, form));
}

function refuseTwice(
  reader: ConfigReader,
  all: readonly AgentInterface[],
  key: 'name' | 'serverAddress',
): void {
  for (const [index, one] of all.entries()) {
    const before = all.findIndex((other) => other[key] === one[key]);
    // An empty text could not be read; another error reports that.
    if (before === index || one[key] === '') continue;
    const text = `has to be another than that of interfaces[${before}]`;
    reader.refuse(`interfaces[${index}].${key}`, text);
  }
}

function withLeases(
  dhcp: AgentDhcpConfig,
  leasesPath: string,
  formerLeasesPath?: string,
): BootInterface['dhcp'] {
  if (dhcp.mode !== 'reservation') return dhcp;
  return {
    ...dhcp,
    leasesPath,
    ...(formerLeasesPath === undefined ? {} : { formerLeasesPath }),
  };
}

/** Written in one way only: addresses are compared as they are written. */
function isOwnIpv4(text: string): boolean {
  const parts = text.split('.');
  const isAddress = parts.length === 4 && parts.every((part) => isByte(part));
  const [first = 0] = parts.map(Number);
  // A host cannot be reached at these: "any", groups, broadcast.
  return isAddress && first > 0 && first < 224;
}

/** Likewise: as RFC 5952 says. */
function isOwnIpv6(text: string): boolean {
  if (!/^[0-9a-f:]+$/.test(text) || !URL.canParse(`http://[${text}]/`)) return false;
  const isCanonical = new URL(`http://[${text}]/`).hostname === `[${text}]`;
  // A host cannot be reached at these: "any", loopback, groups, the link's own, IPv4 in disguise.
  return isCanonical && !/^(::|ff|fe[89ab])/.test(text);
}

function isByte(text: string): boolean {
  return /^(0|[1-9]\d{0,2})$/.test(text) && Number(text) <= 255;
}
