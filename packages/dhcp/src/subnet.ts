/** IPv4 arithmetic: a subnet in prefix notation, and runs of addresses in it (RFC 4632). */
import { addressNumber, encodeAddress } from './address.ts';

/** A network of addresses; `network` is its lowest address as an unsigned 32-bit number. */
export interface Subnet {
  readonly network: number;
  /** 1–30, so that there are addresses for hosts. */
  readonly prefixBits: number;
}

/** A run of addresses, both ends included, in dotted form. */
export interface AddressRange {
  readonly first: string;
  readonly last: string;
}

/** `10.77.0.0/24`; undefined for anything else, also when host bits are set. */
export function parseSubnet(text: string): Subnet | undefined {
  const parts = /^(\d{1,3}(?:\.\d{1,3}){3})\/([1-9]\d?)$/.exec(text);
  const network = parts === null ? undefined : addressNumber(parts[1] ?? '');
  const prefixBits = Number(parts?.[2]);
  if (network === undefined || prefixBits > 30) return undefined;
  const subnet = { network, prefixBits };
  return network % addressesOf(subnet) === 0 ? subnet : undefined;
}

/** The dotted form of an unsigned 32-bit number. */
export function dottedAddress(number: number): string {
  return [number >>> 24, (number >>> 16) & 255, (number >>> 8) & 255, number & 255].join('.');
}

export function subnetMask({ prefixBits }: Subnet): string {
  return dottedAddress((0xffff_ffff << (32 - prefixBits)) >>> 0);
}

/** The highest address, which reaches every host. */
export function broadcastAddress(subnet: Subnet): string {
  return dottedAddress(subnet.network + addressesOf(subnet) - 1);
}

/** Whether a dotted address lies in the subnet, its two ends included. */
export function subnetHas(subnet: Subnet, address: string): boolean {
  const number = addressNumber(address);
  if (number === undefined) return false;
  return number >= subnet.network && number < subnet.network + addressesOf(subnet);
}

/** Whether an address lies in both. */
export function subnetsMeet(one: Subnet, other: Subnet): boolean {
  const end = (subnet: Subnet): number => subnet.network + addressesOf(subnet);
  return one.network < end(other) && other.network < end(one);
}

/** Whether a host of the subnet can have the address: neither the network nor the broadcast. */
export function isHostAddress(subnet: Subnet, address: string): boolean {
  if (!subnetHas(subnet, address)) return false;
  return address !== dottedAddress(subnet.network) && address !== broadcastAddress(subnet);
}

/** The numbers of both ends; throws EncodeError when one is no dotted address. */
export function rangeNumbers({ first, last }: AddressRange): {
  readonly from: number;
  readonly to: number;
} {
  return { from: numberOf(first), to: numberOf(last) };
}

export function rangeHas(range: AddressRange, address: string): boolean {
  const number = addressNumber(address);
  if (number === undefined) return false;
  const { from, to } = rangeNumbers(range);
  return number >= from && number <= to;
}

function addressesOf({ prefixBits }: Subnet): number {
  return 2 ** (32 - prefixBits);
}

function numberOf(dotted: string): number {
  return encodeAddress(dotted).reduce((number, byte) => number * 256 + byte, 0);
}
