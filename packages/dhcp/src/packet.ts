/**
 * The DHCPv4 packet: BOOTP's fixed fields and the options behind the magic cookie (RFC 951, 2131,
 * 2132), option overload (RFC 2132 §9.3) and options longer than 255 bytes (RFC 3396).
 *
 * K1 Decoding throws DecodeError and nothing else; every truncation before the end option is
 *    refused.
 * K2 An option of any code keeps its bytes, in the order of first appearance; the pieces of one
 *    code are joined in the order of RFC 3396 §5: options, then file, then server name.
 * K3 Pad, end and overload are layout, not options: they are never in `options`.
 */
import { ByteReader, ByteWriter, EncodeError } from '@rackwright/bytes';
import { decodeAddress, encodeAddress } from './address.ts';
import { packetBytesMax } from './limits.ts';
import { type Overload, overload } from './option/overload.ts';

/** BOOTP's size; some relays and ROMs drop anything smaller (RFC 1542 §2.1). */
const packetBytesMin = 300;

const magicCookie = 0x63825363;
const layoutCode = { pad: 0, overload: 52, end: 255 } as const;

export interface DhcpPacket {
  /** `request` comes from clients (op 1), `reply` from servers (op 2). */
  readonly op: 'request' | 'reply';
  /** 1 is Ethernet (RFC 1700). */
  readonly hardwareType: number;
  readonly hops: number;
  /** Chosen by the client; 32 bits. */
  readonly transactionId: number;
  /** Seconds since the client began, as it says. */
  readonly seconds: number;
  /** All 16 bits; 0x8000 asks for a broadcast answer. */
  readonly flags: number;
  /** `ciaddr`, `yiaddr`, `siaddr`, `giaddr` in dotted form, `0.0.0.0` when unset. */
  readonly clientAddress: string;
  readonly yourAddress: string;
  readonly nextServerAddress: string;
  readonly relayAddress: string;
  /** `chaddr` cut to its length, at most 16 bytes. */
  readonly hardwareAddress: Uint8Array;
  /** Empty when unset or overloaded by options. */
  readonly serverName: string;
  readonly bootFile: string;
  readonly options: ReadonlyMap<number, Uint8Array>;
}

const serverNameBytes = 64;
const bootFileBytes = 128;

export function decodeDhcp(datagram: Uint8Array): DhcpPacket {
  const reader = new ByteReader(datagram, 'DHCP packet');
  if (datagram.length > packetBytesMax) {
    throw reader.error(`${datagram.length} bytes, at most ${packetBytesMax} are read,`);
  }
  const op = decodeOp(reader);
  const hardwareType = reader.uint8();
  const hardwareBytes = reader.uint8();
  if (hardwareBytes > 16) throw reader.error(`a hardware address of ${hardwareBytes} bytes`);
  const fixed = {
    hops: reader.uint8(),
    transactionId: reader.uint32(),
    seconds: reader.uint16(),
    flags: reader.uint16(),
    clientAddress: decodeAddress(reader),
    yourAddress: decodeAddress(reader),
    nextServerAddress: decodeAddress(reader),
    relayAddress: decodeAddress(reader),
  };
  const hardwareAddress = reader.bytes(16).slice(0, hardwareBytes);
  const serverName = reader.bytes(serverNameBytes);
  const bootFile = reader.bytes(bootFileBytes);
  if (reader.uint32() !== magicCookie) throw reader.error('no DHCP magic cookie');
  const { options, overloads } = decodeAllOptions(reader, serverName, bootFile);
  return {
    op,
    hardwareType,
    ...fixed,
    hardwareAddress,
    serverName: overloads.serverName ? '' : fieldText(serverName),
    bootFile: overloads.bootFile ? '' : fieldText(bootFile),
    options,
  };
}

export function encodeDhcp(packet: DhcpPacket): Uint8Array {
  const writer = new ByteWriter(packetBytesMax)
    .uint8(packet.op === 'request' ? 1 : 2)
    .uint8(packet.hardwareType)
    .uint8(packet.hardwareAddress.length)
    .uint8(packet.hops)
    .uint32(packet.transactionId)
    .uint16(packet.seconds)
    .uint16(packet.flags)
    .bytes(encodeAddress(packet.clientAddress))
    .bytes(encodeAddress(packet.yourAddress))
    .bytes(encodeAddress(packet.nextServerAddress))
    .bytes(encodeAddress(packet.relayAddress))
    .bytes(field('hardware address', packet.hardwareAddress, 16))
    .bytes(textField('server name', packet.serverName, serverNameBytes))
    .bytes(textField('boot file', packet.bootFile, bootFileBytes))
    .uint32(magicCookie);
  for (const [code, value] of packet.options) {
    encodeOption(writer, code, value);
  }
  writer.uint8(layoutCode.end);
  return writer.zeros(Math.max(0, packetBytesMin - writer.length)).finish();
}

function decodeOp(reader: ByteReader): DhcpPacket['op'] {
  const op = reader.uint8();
  if (op !== 1 && op !== 2) throw reader.error(`op ${op}, known are 1 and 2,`);
  return op === 1 ? 'request' : 'reply';
}

/** Options of the options field, then of the two fields that it may spill into (RFC 3396 §5). */
function decodeAllOptions(
  reader: ByteReader,
  serverName: Uint8Array,
  bootFile: Uint8Array,
): { options: Map<number, Uint8Array>; overloads: Overload } {
  const pieces = new Map<number, Uint8Array[]>();
  decodeOptions(reader, pieces, 'needsEnd');
  const overloadBytes = pieces.get(layoutCode.overload);
  const overloads =
    overloadBytes === undefined
      ? { bootFile: false, serverName: false }
      : overload.decode(join(overloadBytes));
  if (overloads.bootFile) {
    decodeOptions(new ByteReader(bootFile, 'DHCP options in file'), pieces, 'mayBeFull');
  }
  if (overloads.serverName) {
    decodeOptions(new ByteReader(serverName, 'DHCP options in sname'), pieces, 'mayBeFull');
  }
  pieces.delete(layoutCode.overload);
  const options = new Map([...pieces].map(([code, values]) => [code, join(values)] as const));
  return { options, overloads };
}

function decodeOptions(
  reader: ByteReader,
  pieces: Map<number, Uint8Array[]>,
  ending: 'needsEnd' | 'mayBeFull',
): void {
  while (ending === 'needsEnd' || reader.remaining > 0) {
    const code = reader.uint8();
    if (code === layoutCode.end) return;
    if (code === layoutCode.pad) continue;
    const value = reader.bytes(reader.uint8());
    const earlier = pieces.get(code);
    if (earlier === undefined) pieces.set(code, [value]);
    else earlier.push(value);
  }
}

/** Copies, so that an option never keeps a socket's receive buffer alive. */
function join(values: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(values.reduce((sum, value) => sum + value.length, 0));
  let at = 0;
  for (const value of values) {
    bytes.set(value, at);
    at += value.length;
  }
  return bytes;
}

function encodeOption(writer: ByteWriter, code: number, value: Uint8Array): void {
  if (code === layoutCode.pad || code === layoutCode.end || code === layoutCode.overload) {
    throw new EncodeError(`option ${code} is part of the layout and cannot be set`);
  }
  // RFC 3396: a long option is the same code again with the next 255 bytes.
  for (let start = 0; start === 0 || start < value.length; start += 255) {
    const piece = value.subarray(start, start + 255);
    writer.uint8(code).uint8(piece.length).bytes(piece);
  }
}

/** The text of a fixed field, one character per byte, up to its first zero. */
function fieldText(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  return String.fromCharCode(...bytes.subarray(0, end < 0 ? bytes.length : end));
}

function textField(name: string, text: string, width: number): Uint8Array {
  if (text.includes('\0')) throw new EncodeError(`${name}: a zero byte inside`);
  return field(name, new ByteWriter(width).text(text).finish(), width);
}

function field(name: string, bytes: Uint8Array, width: number): Uint8Array {
  if (bytes.length > width) {
    throw new EncodeError(`${name}: ${bytes.length} bytes do not fit into ${width}`);
  }
  const padded = new Uint8Array(width);
  padded.set(bytes);
  return padded;
}
