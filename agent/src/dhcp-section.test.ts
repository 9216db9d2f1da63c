import { checkConfig } from '@rackwright/platform/config';
import { describe, expect, test } from 'vitest';
import { parseConfig, parseWholeConfig } from './config.ts';

const reservation = `serverAddress: 10.77.0.1
dhcp:
  mode: reservation
  subnet: {network: 10.77.0.0/24}
  range: {first: 10.77.0.100, last: 10.77.0.199}
`;

const withSubnet = 'dhcp: {mode: reservation, subnet: {network: 10.77.0.0/24}';

describe('reservation mode', () => {
  test('needs a network and has a visible default for the rest', () => {
    expect(parseConfig(reservation).dhcp).toEqual({
      mode: 'reservation',
      address: '0.0.0.0',
      port: 67,
      pxeAddress: '0.0.0.0',
      pxePort: 4011,
      clientPort: 68,
      relayPort: 67,
      broadcastAddress: '255.255.255.255',
      subnet: { network: '10.77.0.0/24', routers: [], dnsServers: [], leaseSeconds: 3_600 },
      reservations: [],
      range: { first: '10.77.0.100', last: '10.77.0.199' },
      declinedMs: 3_600_000,
      otherServer: { quietMs: 300_000, probeMs: 60_000 },
    });
  });

  test('takes reservations, a range for strangers, and all that a subnet has', () => {
    const text = JSON.stringify({
      serverAddress: '10.77.0.1',
      dhcp: {
        mode: 'reservation',
        subnet: {
          network: '10.77.0.0/24',
          routers: ['10.77.0.254'],
          dnsServers: ['192.0.2.53'],
          domainName: 'rack1.example',
          leaseSeconds: 600,
        },
        reservations: [{ mac: '52-54-00-77-00-AB', address: '10.77.0.50' }],
        discovery: { first: '10.77.0.200', last: '10.77.0.220' },
        declinedMs: 1_000,
        otherServer: { quietMs: 60_000, probeMs: 0 },
      },
    });
    const { dhcp } = parseConfig(text);
    expect(dhcp).toMatchObject({
      subnet: { domainName: 'rack1.example', leaseSeconds: 600 },
      reservations: [{ mac: '52:54:00:77:00:ab', address: '10.77.0.50' }],
      discovery: { first: '10.77.0.200', last: '10.77.0.220' },
      otherServer: { quietMs: 60_000, probeMs: 0 },
    });
    expect(dhcp).not.toHaveProperty('range');
  });

  test.each([
    ['no subnet', 'dhcp: {mode: reservation}', 'dhcp.subnet.network is missing'],
    [
      'a MAC that is none',
      `${withSubnet}, reservations: [{mac: x, address: y}]}`,
      'dhcp.reservations[0].mac has to be a MAC like 52:54:00:77:00:01, not x',
    ],
    [
      'a lease of a second',
      'dhcp: {mode: reservation, subnet: {network: 10.77.0.0/24, leaseSeconds: 1}}',
      'dhcp.subnet.leaseSeconds has to be a whole number from 60',
    ],
    ['half a range', `${withSubnet}, range: {first: 10.77.0.9}}`, 'dhcp.range.last is missing'],
    ['a range in proxy mode', 'dhcp: {range: {first: a, last: b}}', 'dhcp.range is no key'],
  ])('is refused with %s', (_name, text, problem) => {
    expect(() => parseConfig(`serverAddress: 10.77.0.1\n${text}\n`)).toThrow(problem);
  });

  const withReservations = (...entries: string[]) => {
    const files = 'files: [{name: vmlinuz, path: /v}, {name: initrd, path: /i}]';
    const lines = entries.map((entry) => `    - ${entry}\n`).join('');
    const text = `${files}\n${reservation}  reservations:\n${lines}`;
    const checked = checkConfig(text, parseWholeConfig);
    return checked.kind === 'bad' ? checked.problems : [];
  };

  test('each reservation without a MAC is told with its line', () => {
    const text = 'has to be a MAC like 52:54:00:77:00:01, not';
    expect(
      withReservations(
        '{mac: x, address: 10.77.0.50}',
        "{mac: '52:54:00:77:00:01', address: 10.77.0.51}",
        '{mac: y, address: 10.77.0.52}',
      ),
    ).toEqual([
      { line: 8, message: `dhcp.reservations[0].mac ${text} x` },
      { line: 10, message: `dhcp.reservations[2].mac ${text} y` },
    ]);
  });

  test('a reservation that is not of the network is told with its line', () => {
    expect(
      withReservations(
        "{mac: '52:54:00:77:00:01', address: 10.77.0.51}",
        "{mac: '52:54:00:77:00:02', address: 10.78.0.51}",
      ),
    ).toEqual([
      {
        line: 9,
        message: "dhcp.reservations[1].address 10.78.0.51 must be a host's address in 10.77.0.0/24",
      },
    ]);
  });
});
