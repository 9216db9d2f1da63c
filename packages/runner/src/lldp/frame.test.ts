import { DecodeError } from '@rackwright/bytes';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeCapture } from './capture.ts';
import { decodeLldp } from './frame.ts';
import { frameOf, hexOf, lldpdCapture, mandatory, tlv } from './lldp.fixture.ts';

const [said, leave] = decodeCapture(lldpdCapture).map(({ bytes }) => bytes);

test('the reader reads all that lldpd says of a port', () => {
  expect(decodeLldp(said as Uint8Array)).toEqual({
    chassisId: '9a:69:f2:28:6e:c7',
    portId: 'Ethernet7',
    ttlSeconds: 120,
    systemName: 'leaf-1',
    portDescription: 'to host h1',
    systemDescription: 'rackswitch',
    managementAddresses: ['192.0.2.7'],
    portVlan: 42,
  });
  expect(decodeLldp(leave as Uint8Array)).toMatchObject({ portId: 'Ethernet7', ttlSeconds: 0 });
});

test('the reader refuses a frame that is cut off, and never reads past its end', () => {
  const bytes = frameOf(mandatory);
  for (let length = 0; length < bytes.length; length += 1) {
    expect(() => decodeLldp(bytes.subarray(0, length))).toThrow(DecodeError);
  }
  const overlong = mandatory + tlv(5, hexOf('leaf')).replace(/^..../u, '0a05');
  expect(() => decodeLldp(frameOf(overlong))).toThrow(DecodeError);
});

test.each([
  ['another destination', frameOf(mandatory, '020000000009')],
  ['a second chassis id', frameOf(mandatory + tlv(1, '04020000000001'))],
  ['the port before the chassis', frameOf(tlv(2, '0531') + tlv(1, '0731') + tlv(3, '0078'))],
  ['an empty id', frameOf(tlv(1, '04') + tlv(2, '0531') + tlv(3, '0078'))],
  [
    'an id of 257 bytes',
    frameOf(tlv(1, `07${'61'.repeat(256)}`) + tlv(2, '0531') + tlv(3, '0078')),
  ],
  ['a jumbo frame', frameOf(mandatory + tlv(5, '61'.repeat(511)).repeat(3))],
])('the reader refuses %s', (_what, bytes) => {
  expect(() => decodeLldp(bytes)).toThrow(DecodeError);
});

test('the reader leaves out an optional TLV that breaks its format, and keeps the rest', () => {
  const bytes = frameOf(
    mandatory +
      tlv(8, '0501c000020702000000') + // cut off
      tlv(8, '0501c0000208020000000100') +
      tlv(8, '1102fe80000000000000000000000000000a020000000100') +
      tlv(127, '0080c201ffff') + // no VLAN
      tlv(127, '00120f0103') + // another organisation
      tlv(99, 'abcd') +
      tlv(5, hexOf('a\u001b[2Jb\u202e c')) +
      tlv(0, '') +
      'ffff',
  );
  expect(decodeLldp(bytes)).toMatchObject({
    chassisId: '02:00:00:00:00:01',
    systemName: 'a [2Jb c',
    managementAddresses: ['192.0.2.8', 'fe80::a'],
    portVlan: undefined,
  });
});

test.each([
  ['0501c0000207', '192.0.2.7'],
  ['05010102', '01:02'],
  [`07${hexOf(' rack 7 ')}`, 'rack 7'],
  ['07000102', '00:01:02'],
  ['63abcd', 'ab:cd'],
])('the reader reads the chassis id %s as %s', (hex, id) => {
  const bytes = frameOf(tlv(1, hex) + tlv(2, '0531') + tlv(3, '0078'));
  expect(decodeLldp(bytes).chassisId).toBe(id);
});

test('the reader gives a decode error or bounded, printable texts for any bytes', () => {
  const tlvs = fc.array(fc.tuple(fc.nat(9), fc.uint8Array({ maxLength: 300 })), { maxLength: 5 });
  const some = tlvs.map((all) =>
    frameOf(
      mandatory +
        all.map(([type, value]) => tlv(type, Buffer.from(value).toString('hex'))).join(''),
    ),
  );
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 2_000 }), some), (bytes) => {
      try {
        const { managementAddresses, ttlSeconds: _, portVlan = 1, ...texts } = decodeLldp(bytes);
        for (const text of [...Object.values(texts), ...managementAddresses]) {
          expect(text.length).toBeLessThanOrEqual(3 * 256);
          expect(text).not.toMatch(/[\p{Cc}\p{Cf}]/u);
        }
        expect(managementAddresses.length).toBeLessThanOrEqual(4);
        expect(portVlan).toBeLessThanOrEqual(4_094);
      } catch (error) {
        expect(error).toBeInstanceOf(DecodeError);
      }
    }),
  );
});
