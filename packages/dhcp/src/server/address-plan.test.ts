import { describe, expect, test } from 'vitest';
import { asMac } from '../mac.ts';
import {
  type AddressPlan,
  type AddressPlanSettings,
  isInPlan,
  isOurRelay,
  makeAddressPlan,
} from './address-plan.ts';

const mac = asMac('52:54:00:77:00:01');
const other = asMac('52:54:00:77:00:02');
const good: AddressPlanSettings = {
  network: '10.77.0.0/24',
  reservations: [{ mac, address: '10.77.0.50' }],
  range: { first: '10.77.0.40', last: '10.77.0.60' },
  discovery: { first: '10.77.0.200', last: '10.77.0.220' },
};
const taken = [{ whose: 'the server', address: '10.77.0.1' }];

function range(first: number, last: number) {
  return { first: `10.77.0.${first}`, last: `10.77.0.${last}` };
}

function goodPlan(): AddressPlan {
  const made = makeAddressPlan(good, taken);
  if (made.kind === 'bad') throw new Error(made.problem.text);
  return made.value;
}

describe('a plan', () => {
  test('gives a reserved address to its MAC alone, and ranges to all', () => {
    const plan = goodPlan();
    expect(isInPlan(plan, mac, '10.77.0.50')).toBe(true);
    expect(isInPlan(plan, other, '10.77.0.50')).toBe(false);
    expect(isInPlan(plan, other, '10.77.0.51')).toBe(true);
    expect(isInPlan(plan, other, '10.77.0.200')).toBe(true);
    expect(isInPlan(plan, mac, '10.77.0.61')).toBe(false);
  });

  test('is about clients on its subnet, with a relay or without', () => {
    const plan = goodPlan();
    const relays = ['0.0.0.0', '10.77.0.254', '10.78.0.254'];
    expect(relays.map((relay) => isOurRelay(plan, relay))).toEqual([true, true, false]);
  });

  test.each<[string, object, string, RegExp]>([
    [
      'no network',
      { network: '10.77.0.1/24' },
      'subnet.network',
      /^10.77.0.1\/24 must be a network/,
    ],
    [
      'a range elsewhere',
      { range: { first: '10.77.0.9', last: '10.78.0.9' } },
      'range.last',
      /^10.78/,
    ],
    ['the network address', { range: range(0, 60) }, 'range.first', /^10.77.0.0 must be a host's/],
    ['the broadcast address', { discovery: range(250, 255) }, 'discovery.last', /^10.77.0.255/],
    [
      'a range that ends first',
      { range: range(60, 40) },
      'range.last',
      /^must not be before range/,
    ],
    ['its own address in a range', { range: range(1, 9) }, 'range', /the address of the server$/],
    [
      'ranges that overlap',
      { discovery: range(60, 70) },
      'range',
      /^and discovery must not overlap/,
    ],
    [
      'a range in a range',
      { discovery: range(45, 46) },
      'range',
      /^and discovery must not overlap/,
    ],
    [
      'a range too large to search',
      { network: '10.64.0.0/12', range: { first: '10.64.0.1', last: '10.64.4.1' } },
      'range',
      /at most 1024 addresses/,
    ],
    [
      'nothing to give',
      { reservations: [], range: undefined, discovery: undefined },
      'reservations',
      /^must have at least one entry unless range or discovery is given$/,
    ],
    [
      'a reservation of its own address',
      { reservations: [{ mac, address: '10.77.0.1' }] },
      'reservations[0].address',
      /^10.77.0.1 must not be the address of the server/,
    ],
    [
      'a reservation elsewhere',
      { reservations: [{ mac, address: '10.78.0.1' }] },
      'reservations[0].address',
      /^10.78.0.1 must be a host's address in 10.77.0.0\/24/,
    ],
    [
      'no MAC',
      { reservations: [{ mac: 'x', address: '10.77.0.9' }] },
      'reservations[0].mac',
      /^x must be a MAC/,
    ],
    [
      'two reservations for a MAC',
      { reservations: [9, 10].map((last) => ({ mac, address: `10.77.0.${last}` })) },
      'reservations[1].mac',
      /^52:54:00:77:00:01 must have no other reservation/,
    ],
    [
      'two reservations of an address',
      { reservations: [mac, other].map((one) => ({ mac: one, address: '10.77.0.9' })) },
      'reservations[1].address',
      /^10.77.0.9 must have no other reservation/,
    ],
  ])('is refused with %s', (_name, change, key, message) => {
    const problem = { key, text: expect.stringMatching(message) };
    expect(makeAddressPlan({ ...good, ...change }, taken)).toEqual({ kind: 'bad', problem });
  });
});
