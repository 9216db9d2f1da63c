import { DecodeError } from '@rackwright/bytes';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodePacket, encodePacket, type TftpPacket } from './packet.ts';

/** Bytes from annotated lines: quoted text is literal, everything else is hex. */
function bytesOf(...fields: string[]): Uint8Array {
  return Uint8Array.from(
    fields.flatMap((field) => {
      const [value] = field.split(' // ');
      return (value as string).startsWith("'")
        ? [...(value as string).slice(1, -1)].map((letter) => letter.charCodeAt(0))
        : (value as string).split(' ').map((pair) => Number.parseInt(pair, 16));
    }),
  );
}

const golden: Record<string, { bytes: Uint8Array; packet: TftpPacket }> = {
  'the read request of EDK2': {
    bytes: bytesOf(
      '00 01 // read request',
      "'snponly.efi' // file name",
      '00',
      "'octet' // mode",
      '00',
      "'blksize' // RFC 2348",
      '00',
      "'1468'",
      '00',
      "'windowsize' // RFC 7440",
      '00',
      "'4'",
      '00',
    ),
    packet: {
      kind: 'readRequest',
      fileName: 'snponly.efi',
      mode: 'octet',
      options: [
        ['blksize', '1468'],
        ['windowsize', '4'],
      ],
    },
  },
  'a write request without options': {
    bytes: bytesOf('00 02 // write request', "'a'", '00', "'netascii'", '00'),
    packet: { kind: 'writeRequest', fileName: 'a', mode: 'netascii', options: [] },
  },
  'a data block': {
    bytes: bytesOf('00 03 // data', 'ff fe // block 65534', 'aa bb // payload'),
    packet: { kind: 'data', block: 0xfffe, bytes: Uint8Array.of(0xaa, 0xbb) },
  },
  'the empty last data block': {
    bytes: bytesOf('00 03 // data', '00 02 // block 2'),
    packet: { kind: 'data', block: 2, bytes: new Uint8Array() },
  },
  'an acknowledgement': {
    bytes: bytesOf('00 04 // ack', '80 01 // block 32769'),
    packet: { kind: 'ack', block: 0x8001 },
  },
  'the abort of EDK2 after it has read the size': {
    bytes: bytesOf('00 05 // error', '00 08 // option negotiation', "'User aborted'", '00'),
    packet: { kind: 'error', code: 8, message: 'User aborted' },
  },
  'an option acknowledgement': {
    bytes: bytesOf('00 06 // oack', "'tsize'", '00', "'4194304'", '00'),
    packet: { kind: 'optionAck', options: [['tsize', '4194304']] },
  },
};

describe.each(Object.entries(golden))('%s', (_name, { bytes, packet }) => {
  test('decodes', () => {
    expect(decodePacket(bytes)).toEqual(packet);
  });

  test('encodes to the same bytes', () => {
    expect([...encodePacket(packet)]).toEqual([...bytes]);
  });

  test('is refused at every length that cuts a field', () => {
    for (let length = 0; length < bytes.length; length += 1) {
      const cut = bytes.subarray(0, length);
      if (isWhole(packet, length)) continue;
      expect(() => decodePacket(cut)).toThrow(DecodeError);
    }
  });
});

/** Data may end anywhere, and options are absent without a trace when cut between two of them. */
function isWhole(packet: TftpPacket, length: number): boolean {
  // An error's text is complete even without the byte that ends it.
  if (packet.kind === 'data' || packet.kind === 'error') return length >= 4;
  if (packet.kind !== 'readRequest' && packet.kind !== 'optionAck') return false;
  for (let kept = 0; kept < packet.options.length; kept += 1) {
    const shorter = { ...packet, options: packet.options.slice(0, kept) };
    if (encodePacket(shorter).length === length) return true;
  }
  return false;
}

const text = fc.stringMatching(/^[\x01-\x7f]{0,20}$/);
const optionName = fc.stringMatching(/^[\x01-\x7f]{1,20}$/);
const options = fc.array(fc.tuple(optionName, text), { maxLength: 6 });
const block = fc.nat(0xffff);
const anyPacket: fc.Arbitrary<TftpPacket> = fc.oneof(
  fc.record({
    kind: fc.constantFrom('readRequest' as const, 'writeRequest' as const),
    fileName: text,
    mode: text,
    options,
  }),
  fc.record({ kind: fc.constant('data' as const), block, bytes: fc.uint8Array() }),
  fc.record({ kind: fc.constant('ack' as const), block }),
  fc.record({ kind: fc.constant('error' as const), code: block, message: text }),
  fc.record({ kind: fc.constant('optionAck' as const), options }),
);

test('any packet survives encoding and decoding, unknown options included', () => {
  fc.assert(
    fc.property(anyPacket, (packet) => {
      const decoded = decodePacket(encodePacket(packet));
      expect(decoded).toEqual(packet);
    }),
  );
});

test('the codec throws nothing but its own error, whatever it is given', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 600 }), fc.nat(7), (bytes, opcode) => {
      if (bytes.length > 1) {
        bytes[0] = 0;
        bytes[1] = opcode;
      }
      try {
        decodePacket(bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(DecodeError);
      }
    }),
    { numRuns: 2_000 },
  );
});

test('the codec refuses opcodes that do not exist and requests larger than RFC 2347 allows', () => {
  expect(() => decodePacket(Uint8Array.of(0, 7))).toThrow('opcode 7');
  const long = bytesOf('00 01', `'${'x'.repeat(510)}'`, '00', "'octet'", '00');
  expect(() => decodePacket(long)).toThrow('more than 512 bytes');
});

test('a request may be padded with NUL, as some firmware does, to any length', () => {
  fc.assert(
    fc.property(anyPacket, fc.nat(600), (packet, padding) => {
      if (packet.kind !== 'readRequest' && packet.kind !== 'writeRequest') return;
      const bytes = encodePacket(packet);
      const padded = new Uint8Array(bytes.length + padding);
      padded.set(bytes);
      expect(decodePacket(padded)).toEqual(packet);
    }),
  );
});
