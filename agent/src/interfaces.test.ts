import { problemIn, valid } from '@rackwright/platform';
import { checkConfig } from '@rackwright/platform/config';
import { describe, expect, test } from 'vitest';
import { parseConfig } from './config.ts';
import {
  bootInterfaces,
  closedText,
  divideInterfaces,
  type HandedOver,
  strayAddresses,
} from './interfaces.ts';

const two = `
interfaces:
  - name: eth1
    serverAddress: 10.77.0.1
  - name: eth2.7
    serverAddress: 10.78.0.1
    dhcp:
      mode: reservation
      subnet: {network: 10.78.0.0/24}
      range: {first: 10.78.0.100, last: 10.78.0.109}
`;

const alike = Array.from({ length: 33 }, () => ({ name: 'eth1', serverAddress: '10.77.0.1' }));

describe('a list of interfaces', () => {
  test('gives each its address and its way of DHCP, with defaults of its own', () => {
    const config = parseConfig(two);
    expect(config).not.toHaveProperty('serverAddress');
    expect(config).not.toHaveProperty('dhcp');
    expect(config.interfaces).toMatchObject([
      { name: 'eth1', serverAddress: '10.77.0.1', dhcp: { mode: 'proxy', port: 67 } },
      { name: 'eth2.7', serverAddress: '10.78.0.1', dhcp: { mode: 'reservation' } },
    ]);
  });

  test('keeps the leases of each apart', () => {
    const told = bootInterfaces(parseConfig(two), '/state');
    expect(told[1]).toMatchObject({ name: 'eth2.7', serverAddress: '10.78.0.1' });
    expect(told[1]?.dhcp).toHaveProperty('leasesPath', '/state/dhcp-leases-eth2.7');
    // The path of the leases in a configuration without a list.
    expect(told[1]?.dhcp).toHaveProperty('formerLeasesPath', '/state/dhcp-leases');
  });

  test.each([
    ['an address beside it', 'serverAddress: 10.0.0.1', 'serverAddress has to stand in each of'],
    ['IPv6 beside it', 'serverAddress6: "fd00::1"', 'serverAddress6 has to stand in each of'],
    ['DHCP beside it', 'dhcp: {mode: off}', 'dhcp has to stand in each of interfaces instead'],
    ['one address for TFTP', 'tftp: {address: 10.77.0.1}', 'tftp.address has to be 0.0.0.0'],
    ['one address for HTTP', 'http: {address: 10.77.0.1}', 'http.address has to be 0.0.0.0'],
    ['one address for runners', 'runner: {address: 10.77.0.1}', 'runner.address has to be 0.0.0.0'],
  ])('takes no %s', (_what, line, text) => {
    expect(() => parseConfig(`${two}${line}\n`)).toThrow(text);
  });

  test.each([
    ['a name', '{serverAddress: 10.0.0.1}', 'interfaces[2].name is missing'],
    ['an address', '{name: eth3}', 'interfaces[2].serverAddress is missing'],
    ['a name that can be', '{name: a/b, serverAddress: 10.0.0.1}', 'the name of an interface'],
    ['a short name', '{name: sixteen-letters-, serverAddress: 10.0.0.1}', 'the name of an'],
    ['another name', '{name: eth1, serverAddress: 10.0.0.1}', 'than that of interfaces[0]'],
    ['another address', '{name: eth3, serverAddress: 10.78.0.1}', 'than that of interfaces[1]'],
    ['an address as it is written', '{name: eth3, serverAddress: 10.0.0.03}', 'an IPv4 address'],
    ['an address to answer at', '{name: eth3, serverAddress: 0.0.0.0}', 'an IPv4 address'],
    ['an address of its own', '{name: eth3, serverAddress: 224.0.0.1}', 'an IPv4 address'],
    ['IPv6 as it is written', '{name: eth3, serverAddress6: "fd00:0::1"}', 'an IPv6 address'],
    ['IPv6 beyond the link', '{name: eth3, serverAddress6: "fe80::1"}', 'an IPv6 address'],
    ['IPv6 of its own', '{name: eth3, serverAddress6: "::1"}', 'an IPv6 address'],
    ['no IPv4 as IPv6', '{name: eth3, serverAddress6: "::ffff:a00:1"}', 'an IPv6 address'],
    ['keys that there are', '{name: eth3, serverAddres: 10.0.0.1}', 'did you mean serverAddress?'],
  ])('needs of each %s', (_what, entry, text) => {
    expect(() => parseConfig(`${two}  - ${entry}\n`)).toThrow(text);
  });

  test('has all its problems told at once, with those of the rest', () => {
    const text = [
      'interfaces:',
      '  - {name: eth1, serverAddress: 10.77.0.1}',
      '  - {name: eth1, serverAddress: 10.77.0.2}',
      '  - {name: eth3, serverAddress: 10.77.0.1}',
      'dhcp: {mode: off}',
      'tftp: {address: 10.77.0.1}',
      'traces: {url: "ftp://x"}',
      '',
    ].join('\n');
    const checked = checkConfig(text, parseConfig);
    const problems = checked.kind === 'bad' ? checked.problems : [];
    expect(problems.map(({ line, message }) => `${line} ${message.split(' ', 1)[0]}`)).toEqual([
      '3 interfaces[1].name',
      '4 interfaces[2].serverAddress',
      '5 dhcp',
      '6 tftp.address',
      '7 traces.url',
    ]);
  });

  test('is bounded', () => {
    const many = Array.from({ length: 33 }, (_, index) => {
      return { name: `eth${index}`, serverAddress: `10.0.${index}.1` };
    });
    expect(() => parseConfig(JSON.stringify({ interfaces: many }))).toThrow('at most 32');
    expect(() => parseConfig(JSON.stringify({ interfaces: many.slice(1) }))).not.toThrow();
  });

  test.each([
    ['too long', JSON.stringify({ interfaces: alike }), 'a list of at most 32'],
    ['no list', 'interfaces: 5', 'a list'],
  ])('has one problem when it is %s', (_what, text, form) => {
    const checked = checkConfig(text, parseConfig);
    const message = `interfaces has to be ${form}`;
    expect(checked).toEqual({ kind: 'bad', problems: [{ line: 1, message }] });
  });
});

test('one address alone is told of whatever interface', () => {
  const dhcp = 'dhcp: {mode: reservation, subnet: {network: 10.77.0.0/24}}';
  const [only, ...others] = bootInterfaces(
    parseConfig(`serverAddress: 10.77.0.1\n${dhcp}`),
    '/state',
  );
  expect(others).toEqual([]);
  expect(only).not.toHaveProperty('name');
  expect(only?.serverAddress).toBe('10.77.0.1');
  expect(only?.dhcp).toHaveProperty('leasesPath', '/state/dhcp-leases');
});

describe('the sockets that were handed over', () => {
  const one = parseConfig('serverAddress: 10.77.0.1');
  const listed = parseConfig(two);
  const handed = (...names: string[]): HandedOver => ({ interfaces: names.length, names });
  const nowhere = (): boolean => false;
  const anywhere = (): boolean => true;

  test('may be of one interface, or none, where one address is given', () => {
    for (const some of [handed(), handed('eth7')]) {
      const none = { served: [], awaited: [], closed: [] };
      expect(divideInterfaces(one, some, anywhere)).toEqual(valid(none));
    }
    expect(problemIn(divideInterfaces(one, handed('eth1', 'eth2'), anywhere))).toContain(
      'is enabled for 2 interfaces, and hosts are told of one serverAddress',
    );
  });

  test('serve the interfaces that they are of', () => {
    const division = divideInterfaces(listed, handed('eth2.7', 'eth1'), anywhere);
    const { interfaces: served } = listed;
    expect(division).toEqual(valid({ served, awaited: [], closed: [] }));
  });

  test('may lack those of an interface that is not there yet', () => {
    const division = divideInterfaces(listed, handed('eth2.7'), nowhere);
    const served = [listed.interfaces[1]];
    expect(division).toEqual(valid({ served, awaited: ['eth1'], closed: [] }));
  });

  test('the sockets of one interface are served when another comes without its own', () => {
    const some = handed('eth1');
    const served = [listed.interfaces[0]];
    const before = divideInterfaces(listed, some, (name) => name === 'eth1');
    expect(before).toEqual(valid({ served, awaited: ['eth2.7'], closed: [] }));
    const after = divideInterfaces(listed, some, anywhere);
    expect(after).toEqual(valid({ served, awaited: [], closed: ['eth2.7'] }));
    expect(closedText('eth2.7')).toContain('systemctl status rackwright-agent@eth2.7.socket');
  });

  test.each([
    ['of an interface without an entry', handed('eth1', 'eth9'), 'interfaces has no entry for it'],
    ['none at all', handed(), 'enable rackwright-agent@eth1.socket'],
  ])('are refused when they are %s', (_what, some, text) => {
    expect(problemIn(divideInterfaces(listed, some, anywhere))).toContain(text);
  });

  test('are waited for by a new start when there is nothing to serve', () => {
    expect(problemIn(divideInterfaces(listed, handed(), nowhere))).toBe(
      'there is no interface eth1, eth2.7 on this machine yet',
    );
  });
});

describe('an address that hosts are told', () => {
  const { interfaces } = parseConfig(two);

  test('is one of its interface', () => {
    const own = new Map([
      ['eth1', ['10.77.0.9', '10.77.0.1']],
      ['eth2.7', ['10.78.0.1']],
    ]);
    expect(strayAddresses(interfaces, own)).toEqual([]);
  });

  test('is told to be wrong when two are swapped, or it is nowhere', () => {
    const swapped = new Map([
      ['eth1', ['10.78.0.1']],
      ['eth2.7', ['10.77.0.1']],
    ]);
    expect(strayAddresses(interfaces, swapped)).toEqual([
      'hosts on eth1 are told 10.77.0.1, which is no address of it but of eth2.7; it has 10.78.0.1',
      'hosts on eth2.7 are told 10.78.0.1, which is no address of it but of eth1; it has 10.77.0.1',
    ]);
    expect(strayAddresses(interfaces.slice(0, 1), new Map())).toEqual([
      'hosts on eth1 are told 10.77.0.1, which is no address of it; it has none',
    ]);
  });
});
