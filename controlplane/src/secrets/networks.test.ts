import { expect, test } from 'vitest';
import { liesWithin, networkProblem } from './networks.ts';

test('an address lies in a network if all bits of the prefix are equal', () => {
  const networks = ['10.0.8.0/22', '192.0.2.7/32', 'fd00:8::/64'];
  const inside = ['10.0.8.0', '10.0.11.255', '192.0.2.7', 'fd00:8::1', 'fd00:8:0:0:ffff::'];
  const outside = ['10.0.12.0', '10.0.7.255', '192.0.2.6', 'fd00:8:0:1::1', '::1'];
  expect(inside.filter((each) => liesWithin(each, networks))).toEqual(inside);
  expect(outside.filter((each) => liesWithin(each, networks))).toEqual([]);
  expect(liesWithin('10.0.8.1', [])).toBe(false);
});

test('names, zoned addresses and addresses mapped from another family are in no network', () => {
  const all = ['::/1', '0.0.0.0/1', '::ffff:0:0/96', '0.0.0.0/0', 'nonsense'];
  for (const each of ['bmc.example.org', '', 'fe80::1%eth0', '::ffff:10.0.0.5', '::ffff:a00:5']) {
    expect(liesWithin(each, all), each).toBe(false);
  }
  expect(liesWithin('200.0.0.1', all), 'a network of every address counts for none').toBe(false);
});

test('a wrong network is refused with its problem', () => {
  expect(['10.0.8.0/24', '10.0.8.1/32', 'fd00::/128'].map(networkProblem)).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  for (const each of ['10.0.8.0', '10.0.8.0/33', '10.0.8.0/08', 'fd00::/129', 'a/8', '1.2.3/8']) {
    expect(networkProblem(each), each).toContain('must be a network with its prefix');
  }
  expect(networkProblem('0.0.0.0/0')).toContain('every address');
});
