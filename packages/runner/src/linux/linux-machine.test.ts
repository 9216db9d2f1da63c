import { expect, test } from 'vitest';
import { addressIn } from './linux-machine.ts';

const lanPrint = [
  'Set in Progress         : Set Complete',
  'IP Address Source       : DHCP Address',
  'IP Address              : 192.0.2.21',
  'Subnet Mask             : 255.255.255.0',
  'Default Gateway IP      : 192.0.2.1',
];

test('the reader takes the address of the BMC, not its source, mask or gateway', () => {
  expect(addressIn(lanPrint.join('\n'))).toBe('192.0.2.21');
});

test('the reader takes no address for one that is not set, and words for none', () => {
  const unset = lanPrint.map((line) => line.replace('192.0.2.21', '0.0.0.0'));
  expect(addressIn(unset.join('\n'))).toBe('');
  expect(addressIn('Invalid channel: 255\n')).toBe('');
});
