/**
 * TFTP packets (RFC 1350) with the option extension (RFC 2347).
 *
 * P1 Decoding throws DecodeError and nothing else; every truncation of a request, an
 *    acknowledgement or an option acknowledgement is refused. An error may lack the byte that ends
 *    its text: its text is known all the same.
 * P2 Options keep their order, their spelling and their unknown members.
 * P3 Zero bytes behind a request or an option acknowledgement are padding and mean nothing.
 */
import { ByteReader, ByteWriter } from '@rackwright/bytes';

const opcodes = {
  readRequest: 1,
  writeRequest: 2,
  data: 3,
  ack: 4,
  error: 5,
  optionAck: 6,
} as const;

/** RFC 2347 §1 keeps a request within one 512-byte packet, counting its opcode. */
export const requestBytesMax = 512;

/** RFC 1350 appendix and RFC 2347: the meaning of an error packet's number. */
export const tftpError = {
  notDefined: 0,
  fileNotFound: 1,
  accessViolation: 2,
  diskFull: 3,
  illegalOperation: 4,
  unknownTransferId: 5,
  fileExists: 6,
  noSuchUser: 7,
  optionsRefused: 8,
} as const;

/** An option's name and value in the packet. */
export type TftpOption = readonly [name: string, value: string];

export interface TftpRequest {
  readonly kind: 'readRequest' | 'writeRequest';
  readonly fileName: string;
  /** `octet`, `netascii` or `mail`, in any case. */
  readonly mode: string;
  readonly options: readonly TftpOption[];
}

/**
 * Whether a datagram says that it is an ERROR, however mangled the rest of it is. Nothing may
 * answer one with another (RFC 1350 §7): two servers would never end.
 */
export function isError(datagram: Uint8Array): boolean {
  return datagram[0] === 0 && datagram[1] === opcodes.error;
}

/** Whether a datagram says that it is a read request, however mangled the rest of it is. */
export function isReadRequest(datagram: Uint8Array): boolean {
  return datagram[0] === 0 && datagram[1] === opcodes.readRequest;
}

export type TftpPacket =
  | TftpRequest
  | { readonly kind: 'data'; readonly block: number; readonly bytes: Uint8Array }
  | { readonly kind: 'ack'; readonly block: number }
  | { readonly kind: 'error'; readonly code: number; readonly message: string }
  | { readonly kind: 'optionAck'; readonly options: readonly TftpOption[] };

/** A datagram as the parts that it is made of, so that no block of a file is ever copied. */
export type DatagramParts = readonly Uint8Array[];

export function decodePacket(datagram: Uint8Array): TftpPacket {
  const ackBlock = readAck(datagram);
  if (ackBlock !== undefined) return { kind: 'ack', block: ackBlock };
  const reader = new ByteReader(datagram, 'TFTP packet');
  const opcode = reader.uint16();
  switch (opcode) {
    case opcodes.readRequest:
      return decodeRequest('readRequest', reader);
    case opcodes.writeRequest:
      return decodeRequest('writeRequest', reader);
    case opcodes.data:
      return { kind: 'data', block: reader.uint16(), bytes: reader.rest() };
    case opcodes.ack:
      throw reader.error('an acknowledgement without its block');
    case opcodes.error:
      return { kind: 'error', code: reader.uint16(), message: decodeMessage(reader) };
    case opcodes.optionAck:
      return { kind: 'optionAck', options: decodeOptions(reader) };
    default:
      throw reader.error(`opcode ${opcode}, known are 1 to 6,`);
  }
}

export function encodePacket(packet: TftpPacket): Uint8Array {
  switch (packet.kind) {
    case 'readRequest':
    case 'writeRequest': {
      const writer = new ByteWriter(requestBytesMax).uint16(opcodes[packet.kind]);
      writer.zeroTerminated(packet.fileName).zeroTerminated(packet.mode);
      return encodeOptions(writer, packet.options);
    }
    case 'data': {
      const datagram = new Uint8Array(dataHeaderBytes + packet.bytes.length);
      datagram.set(dataHeader(packet.block));
      datagram.set(packet.bytes, dataHeaderBytes);
      return datagram;
    }
    case 'ack':
      return new ByteWriter(4).uint16(opcodes.ack).uint16(packet.block).finish();
    case 'error': {
      const writer = new ByteWriter(requestBytesMax).uint16(opcodes.error).uint16(packet.code);
      return writer.zeroTerminated(packet.message).finish();
    }
    case 'optionAck':
      return encodeOptions(
        new ByteWriter(requestBytesMax).uint16(opcodes.optionAck),
        packet.options,
      );
  }
}

const dataHeaderBytes = 4;

/**
 * The headers of DATA packets, one behind the other: a packet that waits for its socket may not
 * change, so each block number has a header of its own, which all transfers share.
 */
const dataHeaders = new Uint8Array(dataHeaderBytes * 0x1_0000);
for (let block = 0; block <= 0xffff; block += 1) {
  dataHeaders.set([0, opcodes.data, block >> 8, block & 0xff], block * dataHeaderBytes);
}

/** The bytes before those of a block, 0 to 65,535 (RFC 1350 §5). Must not be changed. */
export function dataHeader(block: number): Uint8Array {
  const start = block * dataHeaderBytes;
  return dataHeaders.subarray(start, start + dataHeaderBytes);
}

/**
 * The block of an acknowledgement; decoded by hand, because one arrives for each window that is
 * sent. RFC 1350 gives bytes behind the block number no meaning, so they are ignored.
 */
function readAck(datagram: Uint8Array): number | undefined {
  if (datagram[0] !== 0 || datagram[1] !== opcodes.ack) return undefined;
  const [high, low] = [datagram[2], datagram[3]];
  return high === undefined || low === undefined ? undefined : (high << 8) | low;
}

function decodeRequest(kind: TftpRequest['kind'], reader: ByteReader): TftpRequest {
  const fileName = reader.zeroTerminated();
  const mode = reader.zeroTerminated();
  const options = decodeOptions(reader);
  if (reader.offset > requestBytesMax) {
    throw reader.error(`a request of more than ${requestBytesMax} bytes`);
  }
  return { kind, fileName, mode, options };
}

function decodeMessage(reader: ByteReader): string {
  const bytes = reader.rest();
  const end = bytes.indexOf(0);
  return new TextDecoder('latin1').decode(end < 0 ? bytes : bytes.subarray(0, end));
}

function decodeOptions(reader: ByteReader): TftpOption[] {
  const options: TftpOption[] = [];
  // P3. Beyond the size of a request nothing is read: its sender gets a refusal for its length.
  while (!reader.restIsZero() && reader.offset <= requestBytesMax) {
    const name = reader.zeroTerminated();
    options.push([name, reader.zeroTerminated()]);
  }
  return options;
}

function encodeOptions(writer: ByteWriter, options: readonly TftpOption[]): Uint8Array {
  for (const [name, value] of options) {
    writer.zeroTerminated(name).zeroTerminated(value);
  }
  return writer.finish();
}
