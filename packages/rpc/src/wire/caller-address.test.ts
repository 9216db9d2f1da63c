import { expect, test } from 'vitest';
import { hostOfPeer } from './caller-address.ts';

test('a peer is its address without its port', () => {
  expect(hostOfPeer('192.0.2.7:443')).toBe('192.0.2.7');
  expect(hostOfPeer('2001:db8::1:443')).toBe('2001:db8::1');
  expect(hostOfPeer('unknown')).toBe('');
});
