import { expect, test } from 'vitest';
import { nodeOwnAddresses } from './own-addresses.ts';

test('the addresses of this machine are told by their interfaces', () => {
  expect(nodeOwnAddresses().get('lo')).toContain('127.0.0.1');
  expect([...nodeOwnAddresses().keys()].join()).not.toContain(':');
});
