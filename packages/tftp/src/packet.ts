/**
 * TFTP packets (RFC 1350) with the option extension (RFC 2347).
 *
 * P1 Decoding throws DecodeError and nothing else; every truncation of a request, an
 *    acknowledgement or an option acknowledgement is refused. An error may lack the byte that ends
 *    its text: what it says is known.
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

/** RFC 1350 appendix and RFC 2347: what an error packet's number means. */
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

/** An option's name and value as they stand in the packet. */
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

export type TftpPacket =
  | TftpRequest
  | { readonly kind: 'data'; readonly block: number; readonly bytes: Uint8Array }
  | { readonly kind: 'ack'; readonly block: number }
  | { readonly kind: 'error'; readonly code: number; readonly message: string }
  | { readonly kind: 'optionAck'; readonly options: readonly TftpOption[] };

export function decodePacket(datagram: Uint8Array): TftpPacket {
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
      // RFC 1350 gives bytes behind the block number no meaning, so they cannot do harm either.
      return { kind: 'ack', block: reader.uint16() };
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
    case 'data':
      return encodeData(packet.block, packet.bytes);
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

/** A DATA packet; by hand because it is built once for each block that is sent. */
export function encodeData(block: number, bytes: Uint8Array): Uint8Array {
  const datagram = new Uint8Array(4 + bytes.length);
  datagram[1] = opcodes.data;
  datagram[2] = block >> 8;
  datagram[3] = block;
  datagram.set(bytes, 4);
  return datagram;
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
