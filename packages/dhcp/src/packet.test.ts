import { DecodeError, EncodeError } from '@rackwright/bytes';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { packetBytesMax } from './limits.ts';
import { anyAddress } from './option/test-codec.ts';
import { dhcpOption, readOption } from './options.ts';
import { type DhcpPacket, decodeDhcp, encodeDhcp } from './packet.ts';
import { captures } from './test-captures.ts';

const captured = Object.entries(captures).map(([name, bytes]) => ({ name, bytes }));

describe.each(captured)('$name', ({ bytes }) => {
  test('is encoded to the same bytes again', () => {
    expect([...encodeDhcp(decodeDhcp(bytes))]).toEqual([...bytes]);
  });

  test('is refused at every length before its end', () => {
    // U-Boot's has padding behind the end.
    const end = bytes.lastIndexOf(0xff);
    for (let length = 0; length <= end; length += 1) {
      expect(() => decodeDhcp(bytes.subarray(0, length))).toThrow(DecodeError);
    }
  });
});

test('the codec reads every field of a packet of iPXE', () => {
  const packet = decodeDhcp(captures.ipxeRomDiscover);
  expect(packet).toMatchObject({
    op: 'request',
    hardwareType: 1,
    hops: 0,
    transactionId: 0xcec48332,
    seconds: 4,
    flags: 0,
    clientAddress: '0.0.0.0',
    relayAddress: '0.0.0.0',
    serverName: '',
    bootFile: '',
  });
  expect([...packet.hardwareAddress]).toEqual([0x52, 0x54, 0, 0x78, 0, 1]);
  expect([...packet.options.keys()]).toEqual([53, 57, 93, 94, 60, 77, 55, 175, 61, 97]);
  expect(readOption(packet, dhcpOption.messageType)).toBe('discover');
  expect(readOption(packet, dhcpOption.messageBytesMax)).toBe(1_472);
  expect(readOption(packet, dhcpOption.architectures)).toEqual([0]);
  expect(readOption(packet, dhcpOption.networkInterface)).toEqual({ type: 1, major: 2, minor: 1 });
  expect(readOption(packet, dhcpOption.vendorClass)).toBe('PXEClient:Arch:00000:UNDI:002001');
  expect(readOption(packet, dhcpOption.userClass)).toEqual({ form: 'plain', classes: ['iPXE'] });
  expect(readOption(packet, dhcpOption.ipxe)).toHaveLength(14);
  expect(readOption(packet, dhcpOption.hostName)).toBeUndefined();
});

test('the codec reads the boot item that EDK2 chose', () => {
  const packet = decodeDhcp(captures.edk2PxeRequest);
  expect(packet.clientAddress).toBe('10.78.0.135');
  expect(readOption(packet, dhcpOption.pxe)?.bootItem).toEqual({ type: 0x8000, layer: 0 });
});

/** Fixed fields with the given server name and file, cookie and options. */
function packetBytes(serverName: number[], bootFile: number[], options: number[]): Uint8Array {
  const bytes = new Uint8Array(240 + options.length);
  bytes.set([1, 1, 6]);
  bytes.set(serverName, 44);
  bytes.set(bootFile, 108);
  bytes.set([0x63, 0x82, 0x53, 0x63, ...options], 236);
  return bytes;
}

test('the codec reads options out of the file and the server name when told so (option 52)', () => {
  const both = packetBytes([12, 1, 98, 255], [60, 2, 97, 98, 255], [52, 1, 3, 255]);
  const { options, serverName, bootFile } = decodeDhcp(both);
  expect([...options.keys()]).toEqual([60, 12]);
  expect([serverName, bootFile]).toEqual(['', '']);
  const fileOnly = packetBytes([104, 105], [60, 2, 97, 98], [52, 1, 1, 255]);
  expect(decodeDhcp(fileOnly)).toMatchObject({ serverName: 'hi', bootFile: '' });
  expect(decodeDhcp(packetBytes([104], [102], [255]))).toMatchObject({
    serverName: 'h',
    bootFile: 'f',
  });
});

test('the codec joins the pieces of one option in the order of RFC 3396', () => {
  const { options } = decodeDhcp(
    packetBytes([67, 1, 4, 255], [67, 1, 3, 255], [67, 1, 1, 52, 1, 3, 67, 1, 2, 255]),
  );
  expect([...(options.get(67) ?? [])]).toEqual([1, 2, 3, 4]);
});

test('a long option is written in pieces and an empty one once', () => {
  const long = Uint8Array.from({ length: 600 }, (_, index) => index & 0xff);
  const packet = { ...decodeDhcp(captures.edk2HttpDiscover), serverName: 'name', bootFile: 'file' };
  const options = new Map([
    [67, long],
    [80, new Uint8Array()],
  ]);
  const again = decodeDhcp(encodeDhcp({ ...packet, options }));
  expect(again).toEqual({ ...packet, options });
});

test.each([
  ['option 52 with another value', packetBytes([], [], [52, 1, 4, 255])],
  ['a mangled overloaded field', packetBytes([], [60, 200], [52, 1, 1, 255])],
  ['another cookie', packetBytes([], [], [255]).with(236, 0)],
  ['another op', packetBytes([], [], [255]).with(0, 3)],
  ['a hardware address beyond its field', packetBytes([], [], [255]).with(2, 17)],
  [
    'a packet larger than any',
    packetBytes([], [], [255, ...Array.from({ length: packetBytesMax }, () => 0)]),
  ],
])('the codec refuses %s', (_name, bytes) => {
  expect(() => decodeDhcp(bytes)).toThrow(DecodeError);
});

test('the codec refuses to write values that do not fit a packet', () => {
  const packet = decodeDhcp(captures.edk2HttpDiscover);
  const wrong: Partial<DhcpPacket>[] = [
    { bootFile: 'x'.repeat(129) },
    { serverName: 'a\0b' },
    { hardwareAddress: new Uint8Array(17) },
    { transactionId: 2 ** 32 },
    { yourAddress: '10.0.0' },
    { options: new Map([[52, Uint8Array.of(1)]]) },
    { options: new Map([[255, new Uint8Array()]]) },
    { options: new Map([[67, new Uint8Array(packetBytesMax)]]) },
  ];
  for (const change of wrong) {
    expect(() => encodeDhcp({ ...packet, ...change })).toThrow(EncodeError);
  }
});

const anyPacket: fc.Arbitrary<DhcpPacket> = fc.record({
  op: fc.constantFrom('request' as const, 'reply' as const),
  hardwareType: fc.nat(255),
  hops: fc.nat(255),
  transactionId: fc.nat(0xffff_ffff),
  seconds: fc.nat(0xffff),
  flags: fc.nat(0xffff),
  clientAddress: anyAddress,
  yourAddress: anyAddress,
  nextServerAddress: anyAddress,
  relayAddress: anyAddress,
  hardwareAddress: fc.uint8Array({ maxLength: 16 }),
  serverName: fc.string({ unit: 'grapheme-ascii', maxLength: 64 }),
  bootFile: fc.string({ unit: 'grapheme-ascii', maxLength: 128 }),
  options: fc
    .uniqueArray(
      fc.tuple(
        fc.integer({ min: 1, max: 254 }).filter((code) => code !== 52),
        fc.uint8Array({ maxLength: 300 }),
      ),
      { selector: ([code]) => code, maxLength: 5 },
    )
    .map((entries) => new Map(entries)),
});

test('any packet survives encoding and decoding, whatever options it has', () => {
  fc.assert(
    fc.property(anyPacket, (packet) => {
      expect(decodeDhcp(encodeDhcp(packet))).toEqual(packet);
    }),
  );
});

test('the codec throws nothing but its own error for captures with bytes changed', () => {
  const change = fc.tuple(fc.nat(400), fc.nat(255));
  fc.assert(
    fc.property(fc.constantFrom(...captured), fc.array(change), ({ bytes }, changes) => {
      const mangled = bytes.slice();
      for (const [at, value] of changes) mangled[at] = value;
      try {
        const packet = decodeDhcp(mangled);
        for (const kind of Object.values(dhcpOption)) readOption<unknown>(packet, kind);
      } catch (error) {
        expect(error).toBeInstanceOf(DecodeError);
      }
    }),
    { numRuns: 1_000 },
  );
});
