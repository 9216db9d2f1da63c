/** Discovered machines, over a whole control plane. */
import { create, fromBinary } from '@bufbuild/protobuf';
import { agent, type HostId, HostState, store as wire } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { preparedHost, putHost } from '../../services/prepared.fixture.ts';
import { failureOf, specOf, violatedFields } from '../../services/rpc.fixture.ts';
import { bmc, discoverySite, expectedSpec, finding, macOf, policy } from './discovery.fixture.ts';

const site = discoverySite();
const { expectHost, hostNames, listed, pass, report } = site;

const isListed = { kind: 'listed' };
const isKnown = { kind: 'known' };
const { DISABLED, FULL, HOST, HOST_ELSEWHERE, INVALID } = agent.DiscoveryRefusalKind;
const refusedBy = (cause: agent.DiscoveryRefusalKind, text: string) => {
  return { kind: 'refused', cause, text: expect.stringContaining(text) };
};

async function recordOf(host: string): Promise<wire.HostRecord> {
  const kept = await site.fixture.store.get(`hosts.${host}`);
  if (kept.kind !== 'found') throw new Error('no host');
  return fromBinary(wire.HostRecordSchema, kept.value);
}

test('a machine is listed once, whichever interface it boots from', async () => {
  expect(await report(finding(1))).toEqual(isListed);
  const both = [macOf(9), macOf(1)].map((mac) => ({ mac }));
  expect(await report(finding(1, { interfaces: both }, macOf(9)))).toEqual(isListed);
  const notAccepted = 'no expected host and no rule of its rack fits it';
  const one = { bootMac: macOf(9), identifiedBy: 'uuid', remarks: [], notAccepted };
  expect(await listed()).toMatchObject([one]);
});

test('a machine that two racks report is listed in each of them', async () => {
  await site.fixture.racks.createRack({ rackId: 'r2', rack: { spec: { discovery: policy() } } });
  expect(await report(finding(1))).toEqual(isListed);
  const [before] = await listed();
  expect(await report(finding(1), 'r2')).toEqual(isListed);
  const [one, two] = (await listed()).sort((a, b) => a.rack.localeCompare(b.rack));
  expect(one).toEqual(before);
  expect(two).toMatchObject({ rack: 'racks/r2', bootMac: macOf(1), remarks: [] });
  const text = `${one?.name}: a machine that says it is this machine netbooted in racks/r2`;
  const { causes } = await site.fixture.racks.explainRack({ name: 'racks/r1' });
  expect(JSON.stringify(causes)).toContain(text);
});

test('boards with one UUID are listed apart, each with a note on the other', async () => {
  const uuid = Uint8Array.from({ length: 16 }, (_, at) => at + 1);
  for (const n of [1, 2]) {
    const system = { serial: `SN-${n}`, uuid };
    expect(await report(finding(n, { system }))).toEqual(isListed);
    expect(await report(finding(n, { system }))).toEqual(isListed);
  }
  const machines = await listed();
  expect(machines.map(({ identifiedBy }) => identifiedBy).sort()).toEqual(['serial', 'uuid']);
  for (const { remarks, name } of machines) {
    const other = machines.find((each) => each.name !== name);
    expect(remarks).toEqual([`${other?.name} has the same UUID`]);
  }
});

test('a rack lists machines up to its limit, and none while discovery is off', async () => {
  for (const n of [1, 2, 3, 4, 5]) expect(await report(finding(n))).toEqual(isListed);
  expect(await report(finding(6))).toEqual(
    refusedBy(FULL, 'racks/r1 lists 5 machines already, of 5: accept some'),
  );
  expect(await report(finding(5)), 'known machines are taken in').toEqual(isListed);
  await site.fixture.racks.updateRack({
    rack: { name: 'racks/r1', spec: { discovery: { enabled: false, machinesMax: 9 } } },
    updateMask: { paths: ['spec.discovery'] },
  });
  expect(await report(finding(6))).toEqual(refusedBy(DISABLED, 'takes in no machines'));
  expect(await listed()).toHaveLength(5);
});

test('a finding without content is refused', async () => {
  const misread = create(agent.DiscoveredSchema, { id: 'f', bootMac: 'x' });
  expect(await report(misread)).toEqual(refusedBy(INVALID, 'MAC'));
  const bare = create(agent.DiscoveredSchema, { id: 'f', bootMac: macOf(1) });
  expect(await report(bare)).toEqual(refusedBy(INVALID, 'the finding has no inventory'));
  expect(await listed()).toEqual([]);
});

test('a machine that a person accepts becomes a host once, with its found data', async () => {
  await report(finding(1));
  const [machine] = await listed();
  const request = {
    name: machine?.name ?? '',
    hostId: 'h1',
    host: { labels: { role: 'worker' }, spec: { bmc: { ...bmc, address: '' } } },
    requestId: 'once',
  };
  const tried = await site.fixture.discovery.acceptDiscoveredMachine({
    ...request,
    validateOnly: true,
  });
  expect(tried.spec?.bmc?.address).toBe('192.0.2.1');
  expect(await hostNames()).toEqual([]);
  const host = await site.fixture.discovery.acceptDiscoveredMachine(request);
  const again = await site.fixture.discovery.acceptDiscoveredMachine(request);
  expect([host.uid, host.labels['role']]).toEqual([again.uid, 'worker']);
  expect(host.spec).toMatchObject({ rack: 'racks/r1', bootMacs: [macOf(1)] });
  expect(await listed()).toEqual([]);
  const kept = await site.fixture.hosts.getHost({ name: 'hosts/h1' });
  expect(kept.status?.inventory?.system?.serial).toBe('SN-1');
  expect((await recordOf('h1')).acceptedIdentity?.serial).toBe('SN-1');
  const other = failureOf(
    site.fixture.discovery.acceptDiscoveredMachine({ ...request, requestId: 'b' }),
  );
  expect((await other).kind).toBe('notFound');
});

test('a machine that cannot be a host is not accepted, and stays listed', async () => {
  await report(finding(1));
  await site.fixture.hosts.createHost({ hostId: 'h2', host: { spec: specOf(2) } });
  const [machine] = await listed();
  const name = machine?.name ?? '';
  const accept = (hostId: HostId, spec: object) =>
    site.fixture.discovery.acceptDiscoveredMachine({ name, hostId, host: { spec } });
  expect(await violatedFields(accept('H!', { bmc }))).toEqual(['host_id']);
  expect(await violatedFields(accept('h1', {}))).toEqual(['host.spec.bmc']);
  expect((await failureOf(accept('h2', { bmc }))).kind).toBe('alreadyExists');
  const taken = accept('h1', { bmc: specOf(2).bmc });
  expect((await failureOf(taken)).message).toContain('belongs to hosts/h2');
  expect(await listed()).toHaveLength(1);
  expect(await hostNames()).toEqual(['hosts/h2']);
});

test('a machine that is already a host is never listed', async () => {
  await report(finding(1));
  const [machine] = await listed();
  const spec = { bmc, bootMacs: [macOf(1)] };
  const name = machine?.name ?? '';
  await site.fixture.discovery.acceptDiscoveredMachine({ name, hostId: 'h1', host: { spec } });
  expect(await report(finding(1))).toEqual(isKnown);
  expect(await listed()).toEqual([]);
});

test('a host that netboots from an unknown interface is shown with it', async () => {
  const situation = { state: HostState.AVAILABLE, kind: undefined };
  const prepared = preparedHost(1, situation);
  await putHost(site.fixture.store, prepared);
  const [known = ''] = prepared.host?.spec?.bootMacs ?? [];
  const interfaces = [known, macOf(9)].map((mac) => ({ mac }));
  expect(await report(finding(1, { interfaces }, macOf(9)))).toEqual({
    ...refusedBy(HOST, `it is hosts/h1, whose boot MACs lack ${macOf(9)}`),
    hostUid: prepared.host?.uid,
  });
  expect(await listed()).toEqual([]);
  const { status } = (await recordOf('h1')).host ?? {};
  expect([status?.useEpoch, status?.dirty]).toEqual([2n, true]);
});

test('an agent’s word of a host of another rack changes nothing of it, and is shown', async () => {
  await site.fixture.racks.createRack({
    rackId: 'r2',
    rack: { spec: { discovery: { enabled: true } } },
  });
  const prepared = preparedHost(1, { state: HostState.AVAILABLE, kind: undefined });
  await putHost(site.fixture.store, prepared);
  const [known = ''] = prepared.host?.spec?.bootMacs ?? [];
  const interfaces = [{ mac: known }];
  expect(await report(finding(1, { interfaces }, known))).toEqual(isKnown);
  expect((await recordOf('h1')).host?.status?.dirty, 'its agent may be slow').toBe(false);
  const reason = 'it says that it is a host of another rack';
  expect(await report(finding(1, { interfaces }, known), 'r2')).toEqual(
    refusedBy(HOST_ELSEWHERE, reason),
  );
  const { status } = (await recordOf('h1')).host ?? {};
  expect([status?.dirty, status?.useEpoch]).toEqual([false, 1n]);
  expect(await listed()).toEqual([]);
  for (const name of ['racks/r1', 'racks/r2']) {
    const { causes } = await site.fixture.racks.explainRack({ name });
    expect(causes.map(({ text }) => text).join('\n')).toContain(
      'hosts/h1: a machine that says it is this host netbooted in racks/r2',
    );
  }
});

test('a wrong line, rule or policy is refused by the names of its fields', async () => {
  const line = (expectedHost: object, expectedHostId = 'e1') =>
    site.fixture.discovery.createExpectedHost({ expectedHostId, expectedHost });
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
    site.fixture.racks.createRack({ rackId: 'r9', rack: { spec: { discovery } } });
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

test('a dropped machine is listed again when it boots; with its rack a machine goes', async () => {
  await report(finding(1));
  const [machine] = await listed();
  const name = machine?.name ?? '';
  const stale = site.fixture.discovery.deleteDiscoveredMachine({ name, etag: 'x.1' });
  expect((await failureOf(stale)).kind).toBe('aborted');
  await site.fixture.discovery.deleteDiscoveredMachine({ name });
  expect(await listed()).toEqual([]);
  await report(finding(1));
  await site.fixture.racks.deleteRack({ name: 'racks/r1' });
  await pass();
  expect(await listed()).toEqual([]);
});

test('a full list locks out no machine that is expected, and says that it is full', async () => {
  for (const n of [1, 2, 3, 4, 5]) await report(finding(n));
  const record = create(wire.RackRecordSchema, {
    rack: { name: 'racks/r1', spec: { discovery: policy() } },
  });
  expect(site.fixture.controlPlane.discovery.policyFor(record)).toMatchObject({ enabled: true });
  const { causes } = await site.fixture.racks.explainRack({ name: 'racks/r1' });
  expect(causes.map(({ text }) => text)).toContainEqual(
    expect.stringContaining('5 discovered machines are listed, of 5'),
  );
  await expectHost(7);
  expect(await report(finding(6))).toEqual(refusedBy(FULL, 'lists 5 machines already'));
  expect(await report(finding(7))).toEqual(isListed);
  expect(await hostNames()).toEqual(['hosts/e7']);
  expect(await listed()).toHaveLength(4);
});

test('a full list makes room even if another replica saw the entry to drop again', async () => {
  for (const n of [1, 2, 3, 4, 5]) await report(finding(n));
  await expectHost(7);
  const { store } = site.fixture;
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
  expect(await report(finding(7))).toEqual(isListed);
  expect(isFirst).toBe(false);
  expect(await hostNames()).toEqual(['hosts/e7']);
  expect(await listed()).toHaveLength(4);
});

test('a person accepts only the machine that was shown, and none that is a host', async () => {
  await report(finding(1));
  const [machine] = await listed();
  const { name = '', etag = '' } = machine ?? {};
  await report(finding(1, { memoryBytes: 1n }));
  const request = { name, hostId: 'h1', host: { spec: { bmc } }, etag };
  const stale = await failureOf(site.fixture.discovery.acceptDiscoveredMachine(request));
  expect([stale.kind, stale.message]).toEqual([
    'aborted',
    expect.stringContaining('says its BMC is 192.0.2.1. Look and decide'),
  ]);
  const again = await site.fixture.discovery.getDiscoveredMachine({ name });
  const kept = await site.fixture.store.get(`discoveredMachines.${name.split('/')[1]}`);
  if (kept.kind !== 'found') throw new Error('not kept');
  await site.fixture.discovery.acceptDiscoveredMachine({ ...request, etag: again.etag });
  await site.fixture.store.put(kept.key, kept.value, 'absent');
  const other = { spec: { bmc: { ...bmc, address: '192.0.2.99' }, bootMacs: [macOf(8)] } };
  const twice = { name, hostId: 'h2', host: other };
  const refused = await failureOf(site.fixture.discovery.acceptDiscoveredMachine(twice));
  expect([refused.kind, refused.message]).toEqual([
    'failedPrecondition',
    expect.stringContaining('it is hosts/h1'),
  ]);
});
