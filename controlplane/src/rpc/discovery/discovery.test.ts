/** Discovered machines and the manifest, over a whole control plane. */

import type { Message, MessageInitShape } from '@bufbuild/protobuf';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { agent, type Host, HostState, type InventorySchema, store as wire } from '@rackwright/api';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { preparedHost, putHost } from '../prepared.fixture.ts';
import {
  addSurroundings,
  type Fixture,
  failureOf,
  specOf,
  startFixture,
  violatedFields,
} from '../rpc.fixture.ts';

let fixture: Fixture;

beforeEach(async () => {
  fixture = await startFixture();
  await addSurroundings(fixture);
  await fixture.racks.updateRack({
    rack: { name: 'racks/r1', spec: { discovery: policy() } },
  });
});

afterEach(() => fixture.stop());

const macOf = (n: number) => `52:54:00:00:01:${n.toString(16).padStart(2, '0')}`;
const bmc = { address: '192.0.2.200', credential: 'credentials/bmc' };

type InventoryInit = MessageInitShape<typeof InventorySchema>;

const policy = (change: object = {}) => ({
  ...{ enabled: true, machinesMax: 5, bmcNetworks: ['192.0.2.0/24'] },
  ...change,
});

async function setPolicy(change: object): Promise<void> {
  await fixture.racks.updateRack({
    rack: { name: 'racks/r1', spec: { discovery: policy(change) } },
    updateMask: { paths: ['spec.discovery'] },
  });
}

let findings = 0;

function finding(n: number, change: Exclude<InventoryInit, Message> = {}, bootMac = '') {
  findings += 1;
  const uuid = Uint8Array.from({ length: 16 }, (_, at) => (at * 5 + n) & 0xff);
  return create(agent.DiscoveredSchema, {
    id: `f${findings}`,
    bootMac: bootMac || macOf(n),
    bmcAddress: `192.0.2.${n}`,
    inventory: {
      system: { manufacturer: 'Acme', product: 'Box', serial: `SN-${n}`, uuid },
      interfaces: [{ name: 'eth0', mac: macOf(n) }],
      memoryBytes: 1_073_741_824n,
      ...change,
    },
  });
}

const report = (told: agent.Discovered, rack = 'r1') =>
  fixture.controlPlane.discovery.report(rack, told);

async function listed() {
  return (await fixture.discovery.listDiscoveredMachines({})).discoveredMachines;
}

async function hostNames(): Promise<string[]> {
  return (await fixture.hosts.listHosts({})).hosts.map(({ name }) => name);
}

/** Everything that was asked for before has been looked at. */
async function looked(): Promise<void> {
  fixture.controlPlane.discovery.wake();
  await fixture.controlPlane.discovery.accept(
    'none',
    { hostId: 'x', labels: {}, spec: undefined, by: '', requestId: '', actor: '' },
    true,
  );
}

async function recordOf(host: string): Promise<wire.HostRecord> {
  const kept = await fixture.store.get(`hosts.${host}`);
  if (kept.kind !== 'found') throw new Error('no host');
  return fromBinary(wire.HostRecordSchema, kept.value);
}

test('lists a machine once, from whatever interface it boots', async () => {
  expect(await report(finding(1))).toBe('');
  const both = [macOf(9), macOf(1)].map((mac) => ({ mac }));
  expect(await report(finding(1, { interfaces: both }, macOf(9)))).toBe('');
  const notAccepted = 'no expected host and no rule of its rack fits it';
  const one = { bootMac: macOf(9), identifiedBy: 'uuid', remarks: [], notAccepted };
  expect(await listed()).toMatchObject([one]);
});

test('lists a machine that two racks tell of in each of them', async () => {
  await fixture.racks.createRack({ rackId: 'r2', rack: { spec: { discovery: policy() } } });
  expect(await report(finding(1))).toBe('');
  const [before] = await listed();
  expect(await report(finding(1), 'r2')).toBe('');
  const [one, two] = (await listed()).sort((a, b) => a.rack.localeCompare(b.rack));
  expect(one).toEqual(before);
  expect(two).toMatchObject({ rack: 'racks/r2', bootMac: macOf(1), remarks: [] });
  const words = `${one?.name}: a machine that says it is this machine netbooted in racks/r2`;
  const { causes } = await fixture.racks.explainRack({ name: 'racks/r1' });
  expect(JSON.stringify(causes)).toContain(words);
});

test('tells board clones apart, and says of each that the other has its UUID', async () => {
  const uuid = Uint8Array.from({ length: 16 }, (_, at) => at + 1);
  for (const n of [1, 2]) {
    const system = { serial: `SN-${n}`, uuid };
    expect(await report(finding(n, { system }))).toBe('');
    expect(await report(finding(n, { system }))).toBe('');
  }
  const machines = await listed();
  expect(machines.map(({ identifiedBy }) => identifiedBy).sort()).toEqual(['serial', 'uuid']);
  for (const { remarks, name } of machines) {
    const other = machines.find((each) => each.name !== name);
    expect(remarks).toEqual([`${other?.name} has the same UUID`]);
  }
});

test('lists no more machines than the rack may have, and none while discovery is off', async () => {
  for (const n of [1, 2, 3, 4, 5]) expect(await report(finding(n))).toBe('');
  expect(await report(finding(6))).toBe('racks/r1 lists 5 machines already, of 5: accept some');
  expect(await report(finding(5)), 'known machines are taken in').toBe('');
  await fixture.racks.updateRack({
    rack: { name: 'racks/r1', spec: { discovery: { enabled: false, machinesMax: 9 } } },
    updateMask: { paths: ['spec.discovery'] },
  });
  expect(await report(finding(6))).toContain('takes in no machines');
  expect(await listed()).toHaveLength(5);
});

test('refuses findings that say nothing', async () => {
  expect(await report(create(agent.DiscoveredSchema, { id: 'f', bootMac: 'x' }))).toContain('MAC');
  const bare = create(agent.DiscoveredSchema, { id: 'f', bootMac: macOf(1) });
  expect(await report(bare)).toBe('the finding has no inventory');
  expect(await listed()).toEqual([]);
});

test('makes a machine a host by hand, once, with what was found of it', async () => {
  await report(finding(1));
  const [machine] = await listed();
  const request = {
    name: machine?.name ?? '',
    hostId: 'h1',
    host: { labels: { role: 'worker' }, spec: { bmc: { ...bmc, address: '' } } },
    requestId: 'once',
  };
  const tried = await fixture.discovery.acceptDiscoveredMachine({ ...request, validateOnly: true });
  expect(tried.spec?.bmc?.address).toBe('192.0.2.1');
  expect(await hostNames()).toEqual([]);
  const host = await fixture.discovery.acceptDiscoveredMachine(request);
  const again = await fixture.discovery.acceptDiscoveredMachine(request);
  expect([host.uid, host.labels['role']]).toEqual([again.uid, 'worker']);
  expect(host.spec).toMatchObject({ rack: 'racks/r1', bootMacs: [macOf(1)] });
  expect(await listed()).toEqual([]);
  const kept = await fixture.hosts.getHost({ name: 'hosts/h1' });
  expect(kept.status?.inventory?.system?.serial).toBe('SN-1');
  expect((await recordOf('h1')).acceptedIdentity?.serial).toBe('SN-1');
  const other = failureOf(
    fixture.discovery.acceptDiscoveredMachine({ ...request, requestId: 'b' }),
  );
  expect((await other).kind).toBe('notFound');
});

test('refuses to accept what no host could be, and leaves the machine listed', async () => {
  await report(finding(1));
  await fixture.hosts.createHost({ hostId: 'h2', host: { spec: specOf(2) } });
  const [machine] = await listed();
  const name = machine?.name ?? '';
  const accept = (hostId: string, spec: object) =>
    fixture.discovery.acceptDiscoveredMachine({ name, hostId, host: { spec } });
  expect(await violatedFields(accept('H!', { bmc }))).toEqual(['host_id']);
  expect(await violatedFields(accept('h1', {}))).toEqual(['host.spec.bmc']);
  expect((await failureOf(accept('h2', { bmc }))).kind).toBe('alreadyExists');
  const taken = accept('h1', { bmc: specOf(2).bmc });
  expect((await failureOf(taken)).message).toContain('belongs to hosts/h2');
  expect(await listed()).toHaveLength(1);
  expect(await hostNames()).toEqual(['hosts/h2']);
});

test('never lists what is a host already', async () => {
  await report(finding(1));
  const [machine] = await listed();
  const spec = { bmc, bootMacs: [macOf(1)] };
  const name = machine?.name ?? '';
  await fixture.discovery.acceptDiscoveredMachine({ name, hostId: 'h1', host: { spec } });
  expect(await report(finding(1))).toBe('');
  expect(await listed()).toEqual([]);
});

test('shows a host that netboots from an interface that it was not known to have', async () => {
  const situation = { state: HostState.AVAILABLE, kind: undefined };
  const prepared = preparedHost(1, situation);
  await putHost(fixture.store, prepared);
  const [known = ''] = prepared.host?.spec?.bootMacs ?? [];
  const interfaces = [known, macOf(9)].map((mac) => ({ mac }));
  expect(await report(finding(1, { interfaces }, macOf(9)))).toContain(
    `it is hosts/h1, whose boot MACs lack ${macOf(9)}`,
  );
  expect(await listed()).toEqual([]);
  const { status } = (await recordOf('h1')).host ?? {};
  expect([status?.useEpoch, status?.dirty]).toEqual([2n, true]);
});

test('an agent’s word of a host of another rack changes nothing of it, and is shown', async () => {
  await fixture.racks.createRack({
    rackId: 'r2',
    rack: { spec: { discovery: { enabled: true } } },
  });
  const prepared = preparedHost(1, { state: HostState.AVAILABLE, kind: undefined });
  await putHost(fixture.store, prepared);
  const [known = ''] = prepared.host?.spec?.bootMacs ?? [];
  const interfaces = [{ mac: known }];
  expect(await report(finding(1, { interfaces }, known))).toBe('');
  expect((await recordOf('h1')).host?.status?.dirty, 'its agent may be slow').toBe(false);
  const words = 'it says that it is a host of another rack';
  expect(await report(finding(1, { interfaces }, known), 'r2')).toBe(words);
  const { status } = (await recordOf('h1')).host ?? {};
  expect([status?.dirty, status?.useEpoch]).toEqual([false, 1n]);
  expect(await listed()).toEqual([]);
  for (const name of ['racks/r1', 'racks/r2']) {
    const { causes } = await fixture.racks.explainRack({ name });
    expect(causes.map(({ text }) => text).join('\n')).toContain(
      'hosts/h1: a machine that says it is this host netbooted in racks/r2',
    );
  }
});

const expectedSpec = { rack: 'racks/r1', bmc: { ...bmc, address: '' } };

async function expectHost(n: number): Promise<void> {
  await fixture.discovery.createExpectedHost({
    expectedHostId: `e${n}`,
    expectedHost: { match: { serial: `SN-${n}` }, labels: { n: `${n}` }, spec: expectedSpec },
  });
}

test('accepts by the manifest, whichever comes first, the line or the machine', async () => {
  await expectHost(1);
  await report(finding(1));
  await report(finding(2));
  await expectHost(2);
  await looked();
  expect(await listed()).toEqual([]);
  expect(await hostNames()).toEqual(['hosts/e1', 'hosts/e2']);
  const { expectedHosts } = await fixture.discovery.listExpectedHosts({});
  expect(expectedHosts.map(({ host, conflict }) => [host, conflict])).toEqual([
    ['hosts/e1', ''],
    ['hosts/e2', ''],
  ]);
  const audit = { actor: 'system:discovery' };
  const { records } = await fixture.audit.listAuditRecords(audit);
  expect(records.map(({ resource, kind, message }) => `${resource} ${kind} ${message}`)).toEqual([
    expect.stringMatching(
      /^hosts\/e2 acceptance discoveredMachines\/\S+ in racks\/r1, by expectedHosts\/e2$/,
    ),
    expect.stringContaining('by expectedHosts/e1'),
  ]);
  const { revisions } = await fixture.hosts.listHostRevisions({ name: 'hosts/e2' });
  const first = revisions.at(-1);
  expect([first?.actor, first?.cause]).toEqual([
    'system:discovery',
    'accepted by expectedHosts/e2',
  ]);
  const taken = fixture.discovery.updateExpectedHost({
    expectedHost: { name: 'expectedHosts/e1', labels: { a: 'b' } },
  });
  expect((await failureOf(taken)).message).toContain('it is hosts/e1');
});

test('a line that fits in part takes nothing and says why, until it is corrected', async () => {
  const match = { serial: 'SN-1', mac: macOf(2) };
  await fixture.discovery.createExpectedHost({
    expectedHostId: 'e1',
    expectedHost: { match, spec: expectedSpec },
  });
  await report(finding(1));
  await looked();
  const name = 'expectedHosts/e1';
  const line = await fixture.discovery.getExpectedHost({ name });
  expect(line.conflict).toContain(`has serial SN-1, but not MAC ${macOf(2)}`);
  expect((await listed())[0]?.notAccepted).toContain('in part');
  const corrected = { name, match: { serial: 'SN-1' } };
  await fixture.discovery.updateExpectedHost({
    expectedHost: corrected,
    updateMask: { paths: ['match'] },
  });
  await looked();
  expect(await hostNames()).toEqual(['hosts/e1']);
});

test('accepts by a rule that comes later, and says what a rule lacks', async () => {
  await report(finding(1));
  const rule = { name: 'boxes', product: 'box', hostId: 'node-{serial}' };
  const setRule = (spec: object) =>
    fixture.racks.updateRack({
      rack: {
        name: 'racks/r1',
        spec: { discovery: policy({ rules: [{ ...rule, spec }] }) },
      },
      updateMask: { paths: ['spec.discovery'] },
    });
  expect(await violatedFields(setRule({}))).toEqual(['rack.spec.discovery.rules[0].spec.bmc']);
  await setRule({ bmc: { address: '', credential: 'credentials/none' } });
  await looked();
  expect((await listed())[0]?.notAccepted).toContain('credentials/none, which does not exist');
  await setRule({ bmc: { address: '', credential: 'credentials/bmc' } });
  await looked();
  expect(await hostNames()).toEqual(['hosts/node-sn-1']);
  expect(await listed()).toEqual([]);
  const { records } = await fixture.audit.listAuditRecords({ resource: 'hosts/node-sn-1' });
  expect(records.map(({ actor, message }) => [actor, message])).toEqual([
    ['system:discovery', expect.stringMatching(/ by racks\/r1 rule boxes$/)],
  ]);
});

test('a crash after the host was made lists nothing twice and makes no second host', async () => {
  await report(finding(1));
  const [machine] = await listed();
  const stored = await fixture.store.get(`discoveredMachines.${machine?.name.split('/')[1]}`);
  await expectHost(1);
  await looked();
  expect(await hostNames()).toEqual(['hosts/e1']);
  const acceptances = () => fixture.audit.listAuditRecords({ actor: 'system:discovery' });
  expect((await acceptances()).records).toHaveLength(1);
  // As a crash would have left it: host made, line not marked, machine still listed, no facts.
  const name = 'expectedHosts.e1';
  const line = await fixture.store.get(name);
  if (stored.kind !== 'found' || line.kind !== 'found') throw new Error('not kept');
  const record = fromBinary(wire.ExpectedHostRecordSchema, line.value);
  if (record.expectedHost !== undefined) record.expectedHost.host = '';
  await fixture.store.put(name, toBinary(wire.ExpectedHostRecordSchema, record), line.revision);
  await fixture.store.put(stored.key, stored.value, 'absent');
  const facts = await fixture.store.get('facts.e1');
  if (facts.kind === 'found') await fixture.store.delete('facts.e1', facts.revision);
  await looked();
  expect(await listed()).toEqual([]);
  expect(await hostNames()).toEqual(['hosts/e1']);
  const marked = await fixture.discovery.getExpectedHost({ name: 'expectedHosts/e1' });
  expect([marked.host, marked.conflict]).toEqual(['hosts/e1', '']);
  const host: Host = await fixture.hosts.getHost({ name: 'hosts/e1' });
  expect(host.status?.inventory?.system?.serial).toBe('SN-1');
  expect((await acceptances()).records).toHaveLength(1);
});

test('names what is wrong with a line, a rule and a policy', async () => {
  const line = (expectedHost: object, expectedHostId = 'e1') =>
    fixture.discovery.createExpectedHost({ expectedHostId, expectedHost });
  expect(await violatedFields(line({ spec: expectedSpec }))).toEqual(['expected_host.match']);
  expect(await violatedFields(line({ match: { mac: 'AA' }, spec: {} }))).toEqual([
    'expected_host.match.mac',
    'expected_host.spec.rack',
    'expected_host.spec.bmc',
  ]);
  const nowhere = { ...expectedSpec, rack: 'racks/none' };
  expect(await violatedFields(line({ match: { serial: 'SN-a' }, spec: nowhere }))).toEqual([
    'expected_host.spec.rack',
  ]);
  for (const serial of ['To be filled by O.E.M.', 'Default string', '0000000']) {
    const filler = line({ match: { serial }, spec: expectedSpec });
    expect(await violatedFields(filler), serial).toEqual(['expected_host.match.serial']);
  }
  await line({ match: { serial: 'SN-a' }, spec: expectedSpec });
  const twice = line({ match: { serial: 'SN-a' }, spec: expectedSpec }, 'e2');
  expect(await violatedFields(twice)).toEqual(['expected_host.match.serial']);
  const racked = (discovery: object) =>
    fixture.racks.createRack({ rackId: 'r9', rack: { spec: { discovery } } });
  const spec = { bmc: { credential: 'credentials/bmc' } };
  const rules = [
    { name: 'a', hostId: 'same', spec },
    { name: 'a', hostId: '{mac}', spec: { ...spec, rack: 'racks/r1', bootMacs: [macOf(1)] } },
  ];
  expect(
    await violatedFields(racked({ machinesMax: 0, rules, bmcNetworks: ['10.0.0.1'] })),
  ).toEqual([
    'rack.spec.discovery.machines_max',
    'rack.spec.discovery.bmc_networks[0]',
    'rack.spec.discovery.rules[0].host_id',
    'rack.spec.discovery.rules[1].host_id',
    'rack.spec.discovery.rules[1].spec.rack',
    'rack.spec.discovery.rules[1].spec.boot_macs',
    'rack.spec.discovery.rules[1].name',
  ]);
});

test('drops a machine until it boots again, and one whose rack is gone', async () => {
  await report(finding(1));
  const [machine] = await listed();
  const name = machine?.name ?? '';
  const stale = fixture.discovery.deleteDiscoveredMachine({ name, etag: 'x.1' });
  expect((await failureOf(stale)).kind).toBe('aborted');
  await fixture.discovery.deleteDiscoveredMachine({ name });
  expect(await listed()).toEqual([]);
  await report(finding(1));
  await fixture.racks.deleteRack({ name: 'racks/r1' });
  await looked();
  expect(await listed()).toEqual([]);
});

const boxes = { name: 'boxes', hostId: 'node-{serial}' };
const sameCredential = { bmc: { address: '', credential: 'credentials/bmc' } };

test('sends no credential to an address that only the machine has said', async () => {
  await setPolicy({ bmcNetworks: ['10.0.8.0/24'], rules: [{ ...boxes, spec: sameCredential }] });
  await report(finding(1));
  await expectHost(2);
  await report(finding(2));
  const waiting = (await listed()).map(({ notAccepted }) => notAccepted).sort();
  expect(waiting).toEqual([
    expect.stringContaining('expectedHosts/e2 fits, but its BMC says 192.0.2.2, which lies in no'),
    expect.stringContaining('--bmc-network 10.0.8.0/24 --bmc-network NETWORK'),
  ]);
  expect(await hostNames()).toEqual([]);
  const match = { serial: 'SN-3', bmcAddress: '192.0.2.3' };
  const expectedHost = { match, spec: expectedSpec };
  await fixture.discovery.createExpectedHost({ expectedHostId: 'e3', expectedHost });
  await report(finding(3));
  expect(await hostNames(), 'a person wrote it in the line').toEqual(['hosts/e3']);
  await setPolicy({ bmcNetworks: ['192.0.2.0/24'], rules: [{ ...boxes, spec: sameCredential }] });
  await looked();
  expect(await hostNames()).toEqual(['hosts/e2', 'hosts/e3', 'hosts/node-sn-1']);
});

test('a rule makes so many hosts and no more, until one of them is gone', async () => {
  await setPolicy({ rules: [{ ...boxes, hostsMax: 2, spec: sameCredential }] });
  for (const n of [1, 2, 3]) await report(finding(n));
  expect(await hostNames()).toEqual(['hosts/node-sn-1', 'hosts/node-sn-2']);
  const [machine] = await listed();
  expect(machine?.notAccepted).toContain('has made 2 hosts already, of 2');
});

test('a full list locks out no machine that is expected, and says that it is full', async () => {
  for (const n of [1, 2, 3, 4, 5]) await report(finding(n));
  const record = create(wire.RackRecordSchema, {
    rack: { name: 'racks/r1', spec: { discovery: policy() } },
  });
  expect(fixture.controlPlane.discovery.policyFor(record)).toMatchObject({ enabled: true });
  const { causes } = await fixture.racks.explainRack({ name: 'racks/r1' });
  expect(causes.map(({ text }) => text)).toContainEqual(
    expect.stringContaining('5 discovered machines are listed, of 5'),
  );
  await expectHost(7);
  expect(await report(finding(6))).toContain('lists 5 machines already');
  expect(await report(finding(7))).toBe('');
  expect(await hostNames()).toEqual(['hosts/e7']);
  expect(await listed()).toHaveLength(4);
});

test('makes room again when what was to go was seen again by another replica', async () => {
  for (const n of [1, 2, 3, 4, 5]) await report(finding(n));
  await expectHost(7);
  const { store } = fixture;
  const remove = store.delete.bind(store);
  let isFirst = true;
  store.delete = async (key, expected, writeId) => {
    const kept = await store.get(key);
    if (isFirst && kept.kind === 'found' && key.startsWith('discoveredMachines.')) {
      isFirst = false;
      await store.put(key, kept.value, kept.revision);
    }
    return remove(key, expected, writeId);
  };
  expect(await report(finding(7))).toBe('');
  expect(isFirst).toBe(false);
  expect(await hostNames()).toEqual(['hosts/e7']);
  expect(await listed()).toHaveLength(4);
});

test('accepts by hand what was looked at, and nothing that is a host', async () => {
  await report(finding(1));
  const [machine] = await listed();
  const { name = '', etag = '' } = machine ?? {};
  await report(finding(1, { memoryBytes: 1n }));
  const request = { name, hostId: 'h1', host: { spec: { bmc } }, etag };
  const stale = await failureOf(fixture.discovery.acceptDiscoveredMachine(request));
  expect([stale.kind, stale.message]).toEqual([
    'aborted',
    expect.stringContaining('says its BMC is 192.0.2.1. Look and decide'),
  ]);
  const again = await fixture.discovery.getDiscoveredMachine({ name });
  const kept = await fixture.store.get(`discoveredMachines.${name.split('/')[1]}`);
  if (kept.kind !== 'found') throw new Error('not kept');
  await fixture.discovery.acceptDiscoveredMachine({ ...request, etag: again.etag });
  await fixture.store.put(kept.key, kept.value, 'absent');
  const other = { spec: { bmc: { ...bmc, address: '192.0.2.99' }, bootMacs: [macOf(8)] } };
  const twice = { name, hostId: 'h2', host: other };
  const refused = await failureOf(fixture.discovery.acceptDiscoveredMachine(twice));
  expect([refused.kind, refused.message]).toEqual([
    'failedPrecondition',
    expect.stringContaining('it is hosts/h1'),
  ]);
});
