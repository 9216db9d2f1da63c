import { expect, test } from 'vitest';
import { networkOf } from './caller-network.ts';

test('an IPv4 address is a caller, however a socket shows it', () => {
  expect(networkOf('192.0.2.7')).toBe('192.0.2.7');
  expect(networkOf('::ffff:192.0.2.7')).toBe('192.0.2.7');
  expect(networkOf('::FFFF:192.0.2.8')).toBe('192.0.2.8');
});

test('addresses of one IPv6 network of 64 bits are one caller', () => {
  const one = networkOf('2001:db8:1:2::1');
  expect(one).toBe('2001:db8:1:2::/64');
  expect(networkOf('2001:DB8:1:2:ffff:0:0:9')).toBe(one);
  expect(networkOf('2001:db8:1:2:3:4:5:6%eth0')).toBe(one);
  expect(networkOf('2001:db8:1:3::1')).not.toBe(one);
  expect(networkOf('2001:db8::1:2:3:4:5')).toBe('2001:db8:0:1::/64');
  expect(networkOf('::1')).toBe('0:0:0:0::/64');
  expect(networkOf('fe80::1%eth0')).toBe('fe80:0:0:0::/64');
});
