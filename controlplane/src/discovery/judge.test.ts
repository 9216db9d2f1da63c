import { create } from '@bufbuild/protobuf';
import {
  AcceptanceRuleSchema,
  DiscoveredMachineSchema,
  ExpectedHostSchema,
  RackSchema,
  Transport,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { traitsOf } from '../fleet-view/index.ts';
import { conflictOf, hostIdBy, hostOf, judge, matchOf, ruleFits } from './judge.ts';
import type { KeptExpected, KeptMachine } from './kept.ts';
import { acceptedBy } from './request.ts';
import type { DiscoverySnapshot, KnownHost } from './snapshot.ts';

const mac = '52:54:00:00:00:01';

function machine(id = 'u-1', serial = 'SW-1', boot = mac): KeptMachine {
  const made = create(DiscoveredMachineSchema, {
    name: `discoveredMachines/${id}`,
    uid: id,
    rack: 'racks/r1',
    bootMac: boot,
    bmcAddress: '192.0.2.1',
    inventory: {
      system: { manufacturer: 'Acme', product: 'Box 7', serial },
      memoryBytes: 8n,
      devices: [{ transport: Transport.SATA }, { transport: Transport.OPTICAL }],
      interfaces: [{ mac: boot }],
    },
  });
  return { id, machine: made, traits: traitsOf(made.inventory, boot), revision: 1 };
}

type MatchInit = { serial?: string; mac?: string; bmcAddress?: string };

function line(id: string, match: MatchInit, rack = 'racks/r1'): KeptExpected {
  const name = `expectedHosts/${id}`;
  const expected = create(ExpectedHostSchema, { name, uid: `uid-${id}`, match, spec: { rack } });
  return { id, expected, revision: 1 };
}

function snapshot(change: Partial<DiscoverySnapshot> = {}): DiscoverySnapshot {
  const { hosts = [] } = change;
  return {
    ...{ hosts, machines: [machine()], expected: [], racks: new Map(), ...change },
    listedIn: () => 1,
    rackOf: () => undefined,
    isHost: (id) => hosts.some(({ hostId }) => hostId === id),
    madeByRule: (rule) => hosts.filter(({ acceptedByRule }) => acceptedByRule === rule).length,
  };
}

const host: KnownHost = {
  ...{ hostId: 'h9', name: 'hosts/h9', uid: 'u9', bootMacs: [], traits: undefined },
  ...{
    rack: 'racks/r1',
    bmcIdentity: undefined,
    requestIds: [],
    acceptedIdentity: false,
    hasInventory: false,
    acceptedByRule: '',
  },
};

test('a machine that is a host by MAC, inventory or BMC is not accepted', () => {
  const byMac = { ...host, bootMacs: [mac] };
  const byTraits = { ...host, traits: machine().traits };
  const byBmc = { ...host, bmcIdentity: { guid: new Uint8Array(), serial: 'SW-1' } };
  const expected = [line('h1', { serial: 'SW-1' })];
  for (const known of [byMac, byTraits, byBmc]) {
    expect(judge(machine(), snapshot({ hosts: [known], expected })).kind).toBe('host');
  }
  expect(hostOf(machine(), [byMac])?.text).toBe('it is hosts/h9');
  const moved = { ...byMac, rack: 'racks/r2' };
  expect(hostOf(machine(), [moved])?.text).toBe('it is hosts/h9 of racks/r2');
  expect(hostOf(machine(), [byTraits])?.text).toContain(`whose boot MACs lack ${mac}`);
  expect(judge(machine(), snapshot({ hosts: [host], expected })).kind).toBe('accept');
});

test('a machine that is a host of another rack stays on the list of its rack', () => {
  const byMac = { ...host, bootMacs: [mac], rack: 'racks/r2' };
  expect(judge(machine(), snapshot({ hosts: [byMac] }))).toEqual({
    kind: 'wait',
    fits: true,
    text: 'it is hosts/h9 of racks/r2',
  });
  // The other rack's agent reports this of its own host; that does not count for this machine.
  const byTraits = { ...host, traits: machine().traits, rack: 'racks/r2' };
  const expected = [line('h1', { serial: 'SW-1' })];
  expect(judge(machine(), snapshot({ hosts: [byTraits], expected })).kind).toBe('accept');
  const here = { ...byTraits, hostId: 'h8', name: 'hosts/h8', rack: 'racks/r1' } as const;
  expect(judge(machine(), snapshot({ hosts: [byTraits, here], expected })).kind).toBe('host');
});

test('a machine matches a line only if every value of the line fits', () => {
  const accepted = judge(machine(), snapshot({ expected: [line('h1', { serial: 'sw-1', mac })] }));
  expect(accepted).toMatchObject({
    kind: 'accept',
    acceptance: { hostId: 'h1', by: 'expectedHosts/h1', expectedUid: 'uid-h1' },
  });
  const partly = line('h1', { serial: 'SW-1', mac: '52:54:00:00:00:02', bmcAddress: '192.0.2.9' });
  expect(matchOf(partly.expected, machine()).kind).toBe('partly');
  expect(judge(machine(), snapshot({ expected: [partly] }))).toEqual({
    kind: 'wait',
    fits: true,
    text: 'it fits expectedHosts/h1 in part only; see what is said there',
  });
  expect(conflictOf(partly, snapshot({ expected: [partly] }))).toBe(
    'discoveredMachines/u-1 has serial SW-1, but not MAC 52:54:00:00:00:02: it has the MACs ' +
      `${mac}, not BMC 192.0.2.9: it has the BMC 192.0.2.1`,
  );
  expect(conflictOf(line('h2', { serial: 'other' }), snapshot())).toBe('');
});

test('a machine that fits two lines, or one of another rack, is taken for none', () => {
  const expected = [line('h1', { serial: 'SW-1' }), line('h2', { mac })];
  const [first] = expected;
  expect(judge(machine(), snapshot({ expected })).kind).toBe('wait');
  if (first === undefined) throw new Error('no line');
  expect(conflictOf(first, snapshot({ expected }))).toContain('fits expectedHosts/h2 as well');
  const elsewhere = line('h1', { serial: 'SW-1' }, 'racks/r2');
  expect(judge(machine(), snapshot({ expected: [elsewhere] }))).toEqual({
    kind: 'wait',
    fits: true,
    text: 'expectedHosts/h1: discoveredMachines/u-1 is in racks/r1, not in racks/r2',
  });
  const taken = snapshot({ expected: [line('h9', { serial: 'SW-1' })], hosts: [host] });
  expect(judge(machine(), taken)).toMatchObject({ text: expect.stringContaining('exists') });
});

test('a filler word is no serial number, neither in a line nor in a name', () => {
  for (const filler of ['To be filled by O.E.M.', 'Default string']) {
    const nameless = machine('u-2', filler);
    expect(judge(nameless, snapshot({ expected: [line('h1', { serial: filler })] })).kind).toBe(
      'wait',
    );
    expect(hostIdBy('node-{serial}', nameless)).toBeUndefined();
    expect(hostIdBy('node-{mac}', nameless)).toBe('node-525400000001');
  }
});

test('many machines are compared with a full manifest in a short time', {
  timeout: 5_000,
}, () => {
  const expected = Array.from({ length: 10_000 }, (_, n) => line(`h${n}`, { serial: `SW-1${n}` }));
  const machines = Array.from({ length: 2_000 }, (_, n) => {
    return machine(
      `u-${n}`,
      `SW-1${n}`,
      `52:54:00:00:${(n >> 8).toString(16).padStart(2, '0')}:01`,
    );
  });
  const all = snapshot({ expected, machines });
  const kinds = machines.map((each) => judge(each, all).kind);
  expect(new Set(kinds)).toEqual(new Set(['accept']));
  expect(expected.map((each) => conflictOf(each, all)).filter(Boolean)).toEqual([]);
});

test('a rule compares whole texts, with wildcards, in any case', () => {
  const fits = (init: object) => ruleFits(create(AcceptanceRuleSchema, init), machine());
  expect(fits({})).toBe(true);
  expect(fits({ manufacturer: 'ACME', product: 'box*', serial: '*-1' })).toBe(true);
  expect(fits({ product: 'b*x*7' })).toBe(true);
  expect(fits({ product: 'box' })).toBe(false);
  expect(fits({ product: '*8' })).toBe(false);
  expect(fits({ product: 'box 7*7' })).toBe(false);
  expect(fits({ memoryBytesMin: 9n })).toBe(false);
  expect(fits({ disksMin: 1 })).toBe(true);
  expect(fits({ disksMin: 2 })).toBe(false);
});

test('the first rule of the rack that fits accepts, while discovery is on there', () => {
  const rules = [
    { name: 'none', product: 'x', hostId: 'x-{mac}' },
    { name: 'boxes', product: 'box *', hostId: '{product}-{serial}' },
    { name: 'rest', hostId: 'rest-{mac}' },
  ];
  const racks = (enabled: boolean) =>
    new Map([['racks/r1', create(RackSchema, { spec: { discovery: { enabled, rules } } })]]);
  expect(judge(machine(), snapshot({ racks: racks(true) }))).toMatchObject({
    kind: 'accept',
    acceptance: { hostId: 'box-7-sw-1', by: 'rule boxes' },
  });
  expect(judge(machine(), snapshot({ racks: racks(false) })).kind).toBe('wait');
  expect(hostIdBy('a-{mac}', machine())).toBe('a-525400000001');
});

test('a host names the rule or line that accepted it, and none if a person did', () => {
  const surroundings = snapshot({ expected: [line('h9', {}), line('h1', {})] });
  const by = (requestId: string, acceptedByRule = ''): string | undefined =>
    acceptedBy(machine(), { ...host, requestIds: [requestId], acceptedByRule }, surroundings);
  expect(by('create:discovered.u-1', 'racks/r1 rule small')).toBe('racks/r1 rule small');
  expect(by('create:discovered.u-2', 'racks/r1 rule small')).toBeUndefined();
  expect(by('create:expected.uid-h9')).toBe('expectedHosts/h9');
  expect(by('create:expected.uid-h1'), 'the line of another host').toBeUndefined();
  expect(by('create:by-hand')).toBeUndefined();
});
