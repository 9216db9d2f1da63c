/**
 * Addresses that lead a request to this machine itself, to its link, or to the metadata service of
 * a cloud, in all the forms in which they are written. A user who sets the target of a connection
 * must not reach them: services there often trust their neighbours. Pure.
 *
 * 1. The address of a connection is judged, never the name that it was looked up by.
 * 2. An IPv4 address within an IPv6 one (RFC 4291 §2.5.5, RFC 6052, RFC 3056) is judged as itself.
 */
import { isIPv4, isIPv6 } from 'node:net';

/** An address as a number of so many bits. */
export interface Address {
  readonly value: bigint;
  readonly bits: 32 | 128;
}

/** Reads an IPv4 or IPv6 address, without its zone; undefined for anything else. */
export function readAddress(text: string): Address | undefined {
  if (isIPv4(text)) return { value: joined(text.split('.').map(Number), 8n), bits: 32 };
  if (!isIPv6(text)) return undefined;
  const [written = ''] = text.split('%');
  const dotted = /(?:\d+\.){3}\d+$/.exec(written)?.[0];
  if (dotted !== undefined) {
    const above = readAddress(`${written.slice(0, -dotted.length)}0:0`);
    const within = readAddress(dotted);
    if (above === undefined || within === undefined) return undefined;
    return { value: above.value | within.value, bits: 128 };
  }
  const [before = '', after] = written.split('::').map((side) => side.split(':').filter(Boolean));
  const first = [...before];
  const last = [...(after ?? [])];
  const zeros = Array.from({ length: 8 - first.length - last.length }, () => '0');
  const words = [...first, ...zeros, ...last].map((word) => Number.parseInt(word, 16));
  return { value: joined(words, 16n), bits: 128 };
}

function joined(words: readonly number[], bits: bigint): bigint {
  return words.reduce((sum, word) => (sum << bits) | BigInt(word), 0n);
}

interface Network extends Address {
  readonly prefix: number;
}

function networkOf(text: string): Network | undefined {
  const [written = '', digits, ...more] = text.split('/');
  const address = readAddress(written);
  if (address === undefined || more.length > 0 || written.includes('%')) return undefined;
  if (digits === undefined) return { ...address, prefix: address.bits };
  if (!/^(0|[1-9]\d{0,2})$/.test(digits) || Number(digits) > address.bits) return undefined;
  return { ...address, prefix: Number(digits) };
}

function isWithin({ value, bits }: Address, network: Network): boolean {
  if (network.bits !== bits) return false;
  const rest = BigInt(bits - network.prefix);
  return network.value >> rest === value >> rest;
}

/**
 * The rows of a table, by network. It is parsed at the first question: a start asks none, and the
 * first IPv6 address that Node recognises costs it milliseconds.
 */
function table<Row>(rows: Readonly<Record<string, Row>>): () => readonly (Network & Row)[] {
  let read: readonly (Network & Row)[] | undefined;
  return () => {
    read ??= Object.entries(rows).flatMap(([text, row]) => {
      const network = networkOf(text);
      return network === undefined ? [] : [{ ...network, ...row }];
    });
    return read;
  };
}

const metadata = { description: 'the address of a cloud’s metadata' };
/** Networks of special purpose, most of RFC 6890. */
const internalNetworks = table({
  '0.0.0.0/8': { description: 'an address of this machine' },
  '127.0.0.0/8': { description: 'a loopback address' },
  '169.254.0.0/16': { description: 'a link-local address' },
  '192.0.0.0/24': { description: 'an address of special purpose' },
  '100.100.100.200/32': metadata,
  '168.63.129.16/32': metadata,
  '224.0.0.0/4': { description: 'a multicast address' },
  '240.0.0.0/4': { description: 'a reserved address' },
  '::/128': { description: 'an address of this machine' },
  '::1/128': { description: 'a loopback address' },
  'fe80::/10': { description: 'a link-local address' },
  'fec0::/10': { description: 'a site-local address' },
  'ff00::/8': { description: 'a multicast address' },
  'fd00:ec2::254/128': metadata,
  'fd20:ce::254/128': metadata,
  'fd00:c1::a9fe:a9fe/128': metadata,
});

/** IPv6 networks with an embedded IPv4 address, and the number of bits behind it. */
const carriers = table({
  '::ffff:0:0/96': { behind: 0n },
  '::/96': { behind: 0n },
  '64:ff9b::/96': { behind: 0n },
  '64:ff9b:1::/48': { behind: 0n },
  '2002::/16': { behind: 80n },
});

/** Invariant 2. The unspecified address and loopback are none that carries another. */
function judged(address: Address): Address {
  if (address.bits === 32 || address.value <= 1n) return address;
  const carrier = carriers().find((network) => isWithin(address, network));
  if (carrier === undefined) return address;
  return { value: (address.value >> carrier.behind) & 0xffff_ffffn, bits: 32 };
}

/** "a loopback address", for people; undefined for an address that needs no entry. */
export function internalAddress(text: string): string | undefined {
  const address = readAddress(text);
  if (address === undefined) return undefined;
  const found = judged(address);
  return internalNetworks().find((network) => isWithin(found, network))?.description;
}

interface Entry {
  readonly network: Network;
  /** Undefined: every port. */
  readonly port: number | undefined;
}

const withPort = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/;
const portMax = 65_535;

function entryOf(text: string): Entry | undefined {
  const [, six, four, digits] = withPort.exec(text) ?? [];
  const port = digits === undefined ? undefined : Number(digits);
  if (port !== undefined && (port < 1 || port > portMax)) return undefined;
  const network = networkOf(six ?? four ?? text);
  if (network === undefined) return undefined;
  return { network: network.prefix === network.bits ? plain(network) : network, port };
}

/** A single address as it is judged. */
function plain(network: Network): Network {
  const found = judged(network);
  return { ...found, prefix: found.bits };
}

/** Why the text is no entry of a list of internal addresses; undefined when it is one. */
export function internalEntryProblem(text: string): string | undefined {
  const entry = entryOf(text);
  const forms = '"127.0.0.1:5000", "[::1]:5000", "169.254.10.1" or "127.0.0.0/8"';
  if (entry === undefined) return `is ${JSON.stringify(text)}; it must have the form ${forms}`;
  if (entry.network.prefix > 0) return undefined;
  return `is ${JSON.stringify(text)}, which is every address; name those that are meant`;
}

/** Whether a connection may go to `address`: it is no internal one, or it is listed. */
export function mayBeReached(address: string, port: number, listed: readonly string[]): boolean {
  const read = readAddress(address);
  if (read === undefined) return false;
  if (internalAddress(address) === undefined) return true;
  const found = judged(read);
  return listed.some((text) => {
    const entry = entryOf(text);
    if (entry === undefined || (entry.port ?? port) !== port) return false;
    return entry.network.prefix > 0 && isWithin(found, entry.network);
  });
}

/**
 * Entries for exactly the place that "host" or "host:port" names: an administrator who names an
 * internal address, or "localhost", intends it. None for other names.
 */
export function entriesNaming(hostAndPort: string, defaultPort: number): string[] {
  const url = URL.parse(`http://${hostAndPort}`);
  if (url === null || url.username !== '' || url.password !== '') return [];
  // The parser leaves out the port of its scheme.
  const written = /:(\d+)$/.exec(hostAndPort.replace(/^\[[^\]]*\]/, ''))?.[1];
  const port = written === undefined ? defaultPort : Number(written);
  if (url.hostname === 'localhost') return [`127.0.0.1:${port}`, `[::1]:${port}`];
  const host = url.hostname.replace(/^\[|\]$/g, '');
  return readAddress(host) === undefined ? [] : [`${url.hostname}:${port}`];
}
