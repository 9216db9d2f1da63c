import { expect, test } from 'vitest';
import {
  entriesNaming,
  internalAddress,
  internalEntryProblem,
  mayBeReached,
} from './internal-address.ts';

test.each([
  ['127.0.0.1', 'a loopback address'],
  ['127.255.1.2', 'a loopback address'],
  ['0.0.0.0', 'an address of this machine'],
  ['169.254.169.254', 'a link-local address'],
  ['192.0.0.192', 'an address of special purpose'],
  ['100.100.100.200', 'the address of a cloud’s metadata'],
  ['224.0.0.1', 'a multicast address'],
  ['255.255.255.255', 'a reserved address'],
  ['::', 'an address of this machine'],
  ['::1', 'a loopback address'],
  ['fe80::1%eth0', 'a link-local address'],
  ['febf::1', 'a link-local address'],
  ['fd00:ec2::254', 'the address of a cloud’s metadata'],
  ['::ffff:127.0.0.1', 'a loopback address'],
  ['::ffff:7f00:1', 'a loopback address'],
  ['0:0:0:0:0:ffff:a9fe:a9fe', 'a link-local address'],
  ['::127.0.0.1', 'a loopback address'],
  ['64:ff9b::169.254.169.254', 'a link-local address'],
  ['2002:7f00:1::', 'a loopback address'],
])('%s is %s', (text, what) => {
  expect(internalAddress(text)).toBe(what);
  expect(mayBeReached(text, 443, [])).toBe(false);
});

test.each([
  '10.0.0.1',
  '172.16.0.1',
  '192.168.1.1',
  '126.255.255.255',
  '128.0.0.1',
  '169.253.1.1',
  '169.255.1.1',
  '8.8.8.8',
  'fd00::1',
  '2001:db8::1',
  '::ffff:10.0.0.1',
])('%s needs no entry', (text) => {
  expect(internalAddress(text)).toBeUndefined();
  expect(mayBeReached(text, 443, [])).toBe(true);
});

test('a text that is no address is not reached', () => {
  for (const text of ['', 'localhost', '2130706433', '0x7f.1', '127.1']) {
    expect(mayBeReached(text, 443, ['127.0.0.0/8']), text).toBe(false);
  }
});

test.each([
  ['127.0.0.1', 5_000, ['127.0.0.1:5000'], true],
  ['127.0.0.1', 5_001, ['127.0.0.1:5000'], false],
  ['127.0.0.2', 5_000, ['127.0.0.1:5000'], false],
  ['127.0.0.1', 5_001, ['127.0.0.1'], true],
  ['127.9.9.9', 1, ['127.0.0.0/8'], true],
  ['169.254.1.1', 1, ['127.0.0.0/8'], false],
  ['::ffff:127.0.0.1', 5_000, ['127.0.0.1:5000'], true],
  ['127.0.0.1', 5_000, ['[::ffff:127.0.0.1]:5000'], true],
  ['::1', 5_000, ['[::1]:5000'], true],
  ['::1', 5_001, ['[::1]:5000'], false],
  ['fe80::1%eth0', 1, ['fe80::/10'], true],
  ['127.0.0.1', 1, ['0.0.0.0/0', 'nonsense', '::/0'], false],
] as const)('%s at port %i may be reached with %j listed: %s', (address, port, listed, may) => {
  expect(mayBeReached(address, port, listed)).toBe(may);
});

test('an entry is an address, with a port or not, or a network', () => {
  const good = [
    '127.0.0.1',
    '127.0.0.1:1',
    '127.0.0.0/8',
    '127.0.0.0/8:80',
    '::1',
    '[::1]:65535',
    'fe80::/10',
  ];
  expect(good.map(internalEntryProblem)).toEqual(good.map(() => undefined));
  const bad = ['', 'localhost', '127.0.0.1:0', '127.0.0.1:65536', '127.1', '10.0.0.0/33', '::1%lo'];
  for (const text of [...bad, '0.0.0.0/0', '::/0', '0.0.0.0/0:80']) {
    expect(internalEntryProblem(text), text).toBeDefined();
  }
});

test('a caller who names an internal address lists it, with its port; a name lists nothing', () => {
  expect(entriesNaming('127.0.0.1:5000', 443)).toEqual(['127.0.0.1:5000']);
  expect(entriesNaming('127.0.0.1:80', 443)).toEqual(['127.0.0.1:80']);
  expect(entriesNaming('[::1]', 443)).toEqual(['[::1]:443']);
  expect(entriesNaming('2130706433:9', 443)).toEqual(['127.0.0.1:9']);
  expect(entriesNaming('localhost:5000', 443)).toEqual(['127.0.0.1:5000', '[::1]:5000']);
  expect(entriesNaming('registry.example.org', 443)).toEqual([]);
  expect(entriesNaming('a:b@127.0.0.1', 443)).toEqual([]);
});
