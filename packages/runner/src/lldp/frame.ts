/**
 * LLDP frames: what a switch says of itself at the other end of a cable (IEEE 802.1AB-2016).
 *
 * N1 Decoding throws DecodeError and nothing else.
 * N2 Chassis id, port id and time to live come first, in this order, each once (§9.2.7.7.1); other
 *    frames are refused. An optional TLV that breaks its format is left out, and the rest counts
 *    (§9.2.7.7.2). Unknown TLVs are skipped.
 * N3 No text is longer than the standard lets it be, and none holds control characters.
 */
import { ByteReader, DecodeError } from '@rackwright/bytes';

/** The content of a neighbour's frame; absent texts are empty. */
export interface LldpFrame {
  readonly chassisId: string;
  readonly portId: string;
  /** How long it counts; 0: the neighbour signs off (§9.1.2.2). */
  readonly ttlSeconds: number;
  readonly systemName: string;
  readonly portDescription: string;
  readonly systemDescription: string;
  /** In the order of the frame; at most `managementAddressesMax`. */
  readonly managementAddresses: readonly string[];
  /** The VLAN of untagged frames (IEEE 802.1Q §D.2.1); undefined: unreported. */
  readonly portVlan: number | undefined;
}

export const managementAddressesMax = 4;
/** An Ethernet frame without its check sequence; LLDP has no jumbo frames. */
const frameBytesMax = 1514;
const etherType = 0x88cc;
/** §7.1: nearest bridge, nearest bridge that is no two-port relay, nearest customer bridge. */
const destinations: ReadonlySet<string> = new Set([
  '01:80:c2:00:00:0e',
  '01:80:c2:00:00:03',
  '01:80:c2:00:00:00',
]);
/** §8.5.2.3, §8.5.3.3: a subtype and 1 to 255 bytes. */
const idBytesMax = 256;
/** §8.5.5 to §8.5.8. */
const textBytesMax = 255;
/** §8.5.9.5: a subtype and 1 to 31 bytes. */
const addressBytesMax = 32;
const vlanMax = 4094;

const tlv = { end: 0, chassisId: 1, portId: 2, ttl: 3, management: 8, organisation: 127 } as const;
const texts = { portDescription: 4, systemName: 5, systemDescription: 6 } as const;
/** OUI 00-80-C2 and the subtype "port VLAN id" (IEEE 802.1Q §D.2.1). */
const portVlanKind = '00:80:c2:01';

interface Tlv {
  readonly type: number;
  readonly value: Uint8Array;
}

/** One Ethernet frame, from its destination on. */
export function decodeLldp(frame: Uint8Array): LldpFrame {
  const reader = new ByteReader(frame, 'LLDP frame');
  if (frame.length > frameBytesMax) {
    throw reader.error(`${frame.length} bytes, at most ${frameBytesMax} are read,`);
  }
  const destination = colons(reader.bytes(6));
  if (!destinations.has(destination)) throw reader.error(`sent to ${destination}`);
  reader.bytes(6);
  if (reader.uint16() !== etherType) throw reader.error('another protocol');
  const chassisId = idOf(mandatory(reader, tlv.chassisId), chassisKinds);
  const portId = idOf(mandatory(reader, tlv.portId), portKinds);
  const ttlSeconds = new ByteReader(mandatory(reader, tlv.ttl), 'LLDP time to live').uint16();
  return { chassisId, portId, ttlSeconds, ...optional(restOf(reader)) };
}

/** N2. */
function mandatory(reader: ByteReader, wanted: number): Uint8Array {
  const { type, value } = nextTlv(reader);
  if (type !== wanted) throw reader.error(`a TLV of type ${type} in place of type ${wanted}`);
  return value;
}

/** §8.4.1: seven bits of type, nine of length. */
function nextTlv(reader: ByteReader): Tlv {
  const header = reader.uint16();
  return { type: header >> 9, value: reader.bytes(header & 0x1ff) };
}

/** Bytes after the end of the LLDPDU are padding; a frame may also end without it (§8.5.1). */
function restOf(reader: ByteReader): readonly Tlv[] {
  const found: Tlv[] = [];
  while (reader.remaining > 0) {
    const next = nextTlv(reader);
    if (next.type === tlv.end) return found;
    if (next.type <= tlv.ttl) throw reader.error(`a second TLV of type ${next.type}`);
    found.push(next);
  }
  return found;
}

function optional(tlvs: readonly Tlv[]) {
  const valueOf = (type: number) => tlvs.find((each) => each.type === type)?.value;
  const text = (type: number): string => {
    const value = valueOf(type);
    return value === undefined || value.length > textBytesMax ? '' : plain(value);
  };
  const readable = <T>(type: number, read: (value: Uint8Array) => T | undefined): T[] =>
    tlvs.flatMap((each) => {
      const found = each.type === type ? ifReadable(() => read(each.value)) : undefined;
      return found === undefined ? [] : [found];
    });
  const addresses = new Set(readable(tlv.management, managementAddress));
  return {
    portDescription: text(texts.portDescription),
    systemName: text(texts.systemName),
    systemDescription: text(texts.systemDescription),
    managementAddresses: [...addresses].slice(0, managementAddressesMax),
    portVlan: readable(tlv.organisation, portVlan)[0],
  };
}

function ifReadable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof DecodeError) return undefined;
    throw error;
  }
}

/** §8.5.9: the address, its interface and an object id, of which only the first is wanted. */
function managementAddress(value: Uint8Array): string | undefined {
  const reader = new ByteReader(value, 'LLDP management address');
  const bytes = reader.uint8();
  if (bytes < 2 || bytes > addressBytesMax) throw reader.error(`${bytes} bytes of address`);
  const address = reader.bytes(bytes);
  reader.bytes(5);
  reader.bytes(reader.uint8());
  reader.expectEnd();
  return networkAddress(address);
}

function portVlan(value: Uint8Array): number | undefined {
  const reader = new ByteReader(value, 'LLDP port VLAN');
  if (colons(reader.bytes(4)) !== portVlanKind) return undefined;
  const vlan = reader.uint16();
  reader.expectEnd();
  return vlan >= 1 && vlan <= vlanMax ? vlan : undefined;
}

type IdKinds = Readonly<Partial<Record<number, (bytes: Uint8Array) => string>>>;

/** §8.5.2.2, table 8-2. */
const chassisKinds: IdKinds = {
  ...{ 1: plain, 2: plain, 3: plain, 6: plain, 7: plain },
  ...{ 4: colons, 5: networkAddress },
};
/** §8.5.3.2, table 8-3; an agent circuit id (6) has bytes that are no text. */
const portKinds: IdKinds = {
  ...{ 1: plain, 2: plain, 5: plain, 7: plain },
  ...{ 3: colons, 4: networkAddress },
};

function idOf(value: Uint8Array, kinds: IdKinds): string {
  const reader = new ByteReader(value, 'LLDP id');
  if (value.length < 2 || value.length > idBytesMax) throw reader.error(`${value.length} bytes`);
  const kind = kinds[reader.uint8()];
  const bytes = reader.rest();
  const text = kind?.(bytes) ?? '';
  // Nothing that can be read still tells two ports apart.
  return text === '' ? colons(bytes) : text;
}

/** An address behind its IANA family number. */
function networkAddress(bytes: Uint8Array): string {
  const [family] = bytes;
  const address = bytes.subarray(1);
  if (family === 1 && address.length === 4) return address.join('.');
  if (family === 2 && address.length === 16) return addressOfV6(address);
  return colons(address);
}

/** RFC 5952: the longest run of zeros is left out. */
function addressOfV6(address: Uint8Array): string {
  const groups = Array.from({ length: 8 }, (_, at) =>
    (((address[2 * at] ?? 0) << 8) | (address[2 * at + 1] ?? 0)).toString(16),
  );
  const { hostname } = new URL(`http://[${groups.join(':')}]`);
  return hostname.slice(1, -1);
}

/** UTF-8 (§8.5.5 and following), without characters that would move a terminal's cursor. */
function plain(bytes: Uint8Array): string {
  return new TextDecoder()
    .decode(bytes)
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim();
}

/** "02:00:00:00:00:01", also of bytes that are no MAC address. */
function colons(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join(':');
}
