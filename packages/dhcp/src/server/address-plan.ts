/**
 * Which addresses a server may give, and to which clients. Settings are checked once, at the start.
 *
 * P1 Every address is one that a host of the subnet can have and nobody else is known to have.
 * P2 Ranges do not overlap. A reservation may lie in a range; the range then skips it.
 */
import type { Mac } from '../mac.ts';
import {
  type AddressRange,
  dottedAddress,
  isHostAddress,
  parseSubnet,
  rangeHas,
  rangeNumbers,
  type Subnet,
  subnetHas,
} from '../subnet.ts';

export interface Reservation {
  /** Lower case, with colons. */
  readonly mac: Mac;
  readonly address: string;
}

export interface AddressPlanSettings {
  /** `10.77.0.0/24`. */
  readonly network: string;
  readonly reservations: readonly Reservation[];
  /** For hosts that are known and have no reservation. */
  readonly range?: AddressRange;
  /** For unknown clients; without it they get no answer. */
  readonly discovery?: AddressRange;
}

export interface AddressPlan {
  readonly subnet: Subnet;
  readonly reservedFor: ReadonlyMap<Mac, string>;
  readonly reservedBy: ReadonlyMap<string, string>;
  readonly range: AddressPool | undefined;
  readonly discovery: AddressPool | undefined;
}

/** The addresses of a range without the reserved ones, in order. */
export interface AddressPool {
  readonly addresses: readonly string[];
  readonly has: (address: string) => boolean;
}

/** An address that hosts must not get, and whose it is. */
export interface TakenAddress {
  readonly whose: string;
  readonly address: string;
}

/** So that looking for a free address takes microseconds; a rack has tens of hosts. */
export const rangeAddressesMax = 1_024;
export const reservationsMax = 4_096;

/** A setting that is wrong. */
export interface AddressPlanProblem {
  /** The path of its key in the section of DHCP, `subnet.network`. */
  readonly key: string;
  /** What is wrong and what would be right, as said after the key. */
  readonly text: string;
}

export type MadeAddressPlan =
  | { readonly kind: 'value'; readonly value: AddressPlan }
  | { readonly kind: 'bad'; readonly problem: AddressPlanProblem };

export function makeAddressPlan(
  settings: AddressPlanSettings,
  taken: readonly TakenAddress[],
): MadeAddressPlan {
  const subnet = parseSubnet(settings.network);
  if (subnet === undefined) {
    return bad('subnet.network', `${settings.network} must be a network like 10.77.0.0/24`);
  }
  const { reservations, range, discovery } = settings;
  const problem =
    reservationProblem(settings, subnet, taken) ??
    rangeProblem('range', range, settings.network, subnet, taken) ??
    rangeProblem('discovery', discovery, settings.network, subnet, taken) ??
    overlapProblem(range, discovery);
  if (problem !== undefined) return { kind: 'bad', problem };
  if (reservations.length === 0 && range === undefined && discovery === undefined) {
    return bad('reservations', 'must have at least one entry unless range or discovery is given');
  }
  const reservedBy = new Map(reservations.map(({ mac, address }) => [address, mac]));
  const plan = {
    subnet,
    reservedFor: new Map(reservations.map(({ mac, address }) => [mac, address])),
    reservedBy,
    range: range && poolOf(range, reservedBy),
    discovery: discovery && poolOf(discovery, reservedBy),
  };
  return { kind: 'value', value: plan };
}

function bad(key: string, text: string): MadeAddressPlan {
  return { kind: 'bad', problem: { key, text } };
}

/** Whether the plan still lets this MAC have this address, known host or not. */
export function isInPlan(plan: AddressPlan, mac: Mac, address: string): boolean {
  const owner = plan.reservedBy.get(address);
  if (owner !== undefined) return owner === mac;
  return plan.range?.has(address) === true || plan.discovery?.has(address) === true;
}

function poolOf(range: AddressRange, reservedBy: ReadonlyMap<string, string>): AddressPool {
  const { from, to } = rangeNumbers(range);
  const all = Array.from({ length: to - from + 1 }, (_, index) => dottedAddress(from + index));
  const addresses = all.filter((address) => !reservedBy.has(address));
  const set = new Set(addresses);
  return { addresses, has: (address) => set.has(address) };
}

function reservationProblem(
  { reservations, network }: AddressPlanSettings,
  subnet: Subnet,
  taken: readonly TakenAddress[],
): AddressPlanProblem | undefined {
  if (reservations.length > reservationsMax) {
    const text = `must be at most ${reservationsMax}, not ${reservations.length}`;
    return { key: 'reservations', text };
  }
  const macs = new Set<Mac>();
  const addresses = new Set<string>();
  for (const [index, { mac, address }] of reservations.entries()) {
    const ofMac = (text: string) => ({ key: `reservations[${index}].mac`, text: `${mac} ${text}` });
    const ofAddress = (text: string) => ({
      key: `reservations[${index}].address`,
      text: `${address} ${text}`,
    });
    if (!/^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/.test(mac)) return ofMac('must be a MAC');
    if (!isHostAddress(subnet, address)) return ofAddress(`must be a host's address in ${network}`);
    const owner = taken.find((one) => one.address === address);
    if (owner !== undefined) return ofAddress(`must not be the address of ${owner.whose}`);
    if (macs.has(mac)) return ofMac('must have no other reservation');
    if (addresses.has(address)) return ofAddress('must have no other reservation');
    macs.add(mac);
    addresses.add(address);
  }
  return undefined;
}

function rangeProblem(
  name: 'range' | 'discovery',
  range: AddressRange | undefined,
  network: string,
  subnet: Subnet,
  taken: readonly TakenAddress[],
): AddressPlanProblem | undefined {
  if (range === undefined) return undefined;
  for (const end of ['first', 'last'] as const) {
    if (!isHostAddress(subnet, range[end])) {
      const text = `${range[end]} must be a host's address in ${network}`;
      return { key: `${name}.${end}`, text };
    }
  }
  const { from, to } = rangeNumbers(range);
  if (from > to) return { key: `${name}.last`, text: `must not be before ${name}.first` };
  if (to - from >= rangeAddressesMax) {
    return { key: name, text: `must have at most ${rangeAddressesMax} addresses` };
  }
  const inside = taken.find(({ address }) => rangeHas(range, address));
  if (inside === undefined) return undefined;
  const text = `must not contain ${inside.address}, the address of ${inside.whose}`;
  return { key: name, text };
}

function overlapProblem(
  range: AddressRange | undefined,
  discovery: AddressRange | undefined,
): AddressPlanProblem | undefined {
  if (range === undefined || discovery === undefined) return undefined;
  const one = rangeNumbers(range);
  const other = rangeNumbers(discovery);
  const apart = one.to < other.from || other.to < one.from;
  return apart ? undefined : { key: 'range', text: 'and discovery must not overlap' };
}

/** Whether packets from behind this relay are about our subnet. */
export function isOurRelay(plan: AddressPlan, relayAddress: string): boolean {
  return relayAddress === '0.0.0.0' || subnetHas(plan.subnet, relayAddress);
}
