import { asMac } from '@rackwright/dhcp';
import { describe, expect, test } from 'vitest';
import {
  addressPlanOf,
  dhcpListenDefault,
  type ReservationDhcpConfig,
  type SubnetConfig,
  subnetProblem,
} from './dhcp-config.ts';

const subnet: SubnetConfig = {
  network: '10.77.0.0/24',
  routers: ['10.77.0.254'],
  dnsServers: ['10.77.0.2', '192.0.2.53'],
  domainName: 'rack1.example',
  leaseSeconds: 3_600,
};

const good: ReservationDhcpConfig = {
  mode: 'reservation',
  ...dhcpListenDefault,
  subnet,
  reservations: [{ mac: asMac('52-54-00-77-00-AB'), address: '10.77.0.50' }],
  range: { first: '10.77.0.40', last: '10.77.0.60' },
  declinedMs: 1,
  otherServer: { quietMs: 1, probeMs: 0 },
  leasesPath: '/state/dhcp-leases',
};

function planOf(config: ReservationDhcpConfig) {
  const plan = addressPlanOf(config, '10.77.0.1');
  if (plan.kind === 'bad') throw new Error(plan.problem.text);
  return plan.value;
}

test('the reader takes a MAC in any spelling', () => {
  expect(planOf(good).reservedFor.get(asMac('52:54:00:77:00:ab'))).toBe('10.77.0.50');
});

describe('the addresses of others are not given to hosts:', () => {
  test.each([
    ['this agent', '10.77.0.1'],
    ['a router', '10.77.0.254'],
    ['a DNS server', '10.77.0.2'],
  ])('a range does not hold the address of %s', (whose, address) => {
    const range = { first: address, last: address };
    expect(addressPlanOf({ ...good, range }, '10.77.0.1')).toEqual({
      kind: 'bad',
      problem: { key: 'range', text: `must not contain ${address}, the address of ${whose}` },
    });
  });
});

const nine = (address: string): string[] => Array(9).fill(address);

test.each<[string, Partial<SubnetConfig>, keyof SubnetConfig, RegExp]>([
  ['a router elsewhere', { routers: ['10.78.0.1'] }, 'routers', /^10.78.0.1 must be in/],
  ['a router that is a name', { routers: ['gateway'] }, 'routers', /^gateway must be in/],
  ['a name for a DNS server', { dnsServers: ['dns'] }, 'dnsServers', /^dns must be an IPv4/],
  ['too many routers', { routers: nine('10.77.0.254') }, 'routers', /^must be at most 8$/],
  ['too many DNS servers', { dnsServers: nine('10.77.0.2') }, 'dnsServers', /^must be at most 8$/],
  ['no domain', { domainName: 'a b' }, 'domainName', /^"a b" must be a domain name/],
  ['a lease of no time', { leaseSeconds: 0 }, 'leaseSeconds', /^must be from 60/],
  ['half a second', { leaseSeconds: 60.5 }, 'leaseSeconds', /^must be from 60/],
])('the reader refuses %s', (_name, change, key, text) => {
  expect(subnetProblem({ ...subnet, ...change }, planOf(good))).toEqual({
    key: `subnet.${key}`,
    text: expect.stringMatching(text),
  });
  expect(subnetProblem(subnet, planOf(good))).toBeUndefined();
});
