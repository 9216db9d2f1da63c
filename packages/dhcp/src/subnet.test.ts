import { EncodeError } from '@rackwright/bytes';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addressNumber } from './address.ts';
import {
  broadcastAddress,
  dottedAddress,
  isHostAddress,
  parseSubnet,
  rangeHas,
  rangeNumbers,
  subnetHas,
  subnetMask,
} from './subnet.ts';

function subnet(text: string) {
  const parsed = parseSubnet(text);
  if (parsed === undefined) throw new Error(`${text} is no subnet`);
  return parsed;
}

describe('a subnet', () => {
  test.each([
    ['10.77.0.0/24', '255.255.255.0', '10.77.0.255'],
    ['10.77.4.0/22', '255.255.252.0', '10.77.7.255'],
    ['192.168.1.4/30', '255.255.255.252', '192.168.1.7'],
    ['128.0.0.0/1', '128.0.0.0', '255.255.255.255'],
  ])('%s has the mask %s and the broadcast address %s', (text, mask, broadcast) => {
    expect(subnetMask(subnet(text))).toBe(mask);
    expect(broadcastAddress(subnet(text))).toBe(broadcast);
  });

  test.each([
    '10.77.0.1/24',
    '10.77.0.0',
    '10.77.0.0/0',
    '10.77.0.0/31',
    '10.77.0.0/024',
    '10.77.256.0/24',
    '10.77.0/24',
    '010.77.0.0/24',
    'fd77::/64',
    '',
  ])('is not %j', (text) => {
    expect(parseSubnet(text)).toBeUndefined();
  });

  test('has its ends, but no host has them', () => {
    const four = subnet('10.77.0.4/30');
    const addresses = [3, 4, 5, 6, 7, 8].map((last) => `10.77.0.${last}`);
    expect(addresses.map((address) => subnetHas(four, address))).toEqual([
      ...[false, true, true, true, true, false],
    ]);
    expect(addresses.map((address) => isHostAddress(four, address))).toEqual([
      ...[false, false, true, true, false, false],
    ]);
    expect(subnetHas(four, 'x')).toBe(false);
  });
});

test('an address is its number, and back', () => {
  expect(addressNumber('255.255.255.255')).toBe(0xffff_ffff);
  fc.assert(
    fc.property(fc.nat(0xffff_ffff), (number) => {
      expect(addressNumber(dottedAddress(number))).toBe(number);
    }),
  );
});

test.each(['', '1.2.3', '1.2.3.4.', '1.2.3.4.5', '1.2.3.256', '01.2.3.4', '1..2.3', 'a.b.c.d'])(
  '%j is no address',
  (text) => {
    expect(addressNumber(text)).toBeUndefined();
  },
);

test('a range has both of its ends', () => {
  const range = { first: '10.77.0.10', last: '10.77.0.12' };
  const found = [9, 10, 11, 12, 13].map((last) => rangeHas(range, `10.77.0.${last}`));
  expect(found).toEqual([false, true, true, true, false]);
  expect(rangeHas(range, '')).toBe(false);
  expect(() => rangeNumbers({ first: 'x', last: '10.77.0.1' })).toThrow(EncodeError);
});
