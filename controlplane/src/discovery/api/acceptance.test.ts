/** Machines that become hosts by a line of the manifest or a rule, over a whole control plane. */
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { type Host, store as wire } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { failureOf, violatedFields } from '../../services/rpc.fixture.ts';
import { discoverySite, expectedSpec, finding, macOf, policy } from './discovery.fixture.ts';

const site = discoverySite();
const { expectHost, hostNames, listed, pass, report, setPolicy } = site;

test('a machine is accepted by its manifest line, whichever of the two comes first', async () => {
  await expectHost(1);
  await report(finding(1));
  await report(finding(2));
  await expectHost(2);
  await pass();
  expect(await listed()).toEqual([]);
  expect(await hostNames()).toEqual(['hosts/e1', 'hosts/e2']);
  const { expectedHosts } = await site.fixture.discovery.listExpectedHosts({});
  expect(expectedHosts.map(({ host, conflict }) => [host, conflict])).toEqual([
    ['hosts/e1', ''],
    ['hosts/e2', ''],
  ]);
  const audit = { actor: 'system:discovery' };
  const { records } = await site.fixture.audit.listAuditRecords(audit);
  expect(records.map(({ resource, kind, message }) => `${resource} ${kind} ${message}`)).toEqual([
    expect.stringMatching(
      /^hosts\/e2 acceptance discoveredMachines\/\S+ in racks\/r1, by expectedHosts\/e2$/,
    ),
    expect.stringContaining('by expectedHosts/e1'),
  ]);
  const { revisions } = await site.fixture.hosts.listHostRevisions({ name: 'hosts/e2' });
  const first = revisions.at(-1);
  expect([first?.actor, first?.cause]).toEqual([
    'system:discovery',
    'accepted by expectedHosts/e2',
  ]);
  const taken = site.fixture.discovery.updateExpectedHost({
    expectedHost: { name: 'expectedHosts/e1', labels: { a: 'b' } },
  });
  expect((await failureOf(taken)).message).toContain('it is hosts/e1');
});

test('a line that fits in part takes nothing and says why, until it is corrected', async () => {
  const match = { serial: 'SN-1', mac: macOf(2) };
  await site.fixture.discovery.createExpectedHost({
    expectedHostId: 'e1',
    expectedHost: { match, spec: expectedSpec },
  });
  await report(finding(1));
  await pass();
  const name = 'expectedHosts/e1';
  const line = await site.fixture.discovery.getExpectedHost({ name });
  expect(line.conflict).toContain(`has serial SN-1, but not MAC ${macOf(2)}`);
  expect((await listed())[0]?.notAccepted).toContain('in part');
  const corrected = { name, match: { serial: 'SN-1' } };
  await site.fixture.discovery.updateExpectedHost({
    expectedHost: corrected,
    updateMask: { paths: ['match'] },
  });
  await pass();
  expect(await hostNames()).toEqual(['hosts/e1']);
});

test('a line says no more of a machine that was dropped, also by its boot MAC', async () => {
  const name = 'expectedHosts/e1';
  await site.fixture.discovery.createExpectedHost({
    expectedHostId: 'e1',
    expectedHost: { match: { serial: 'SN-9', mac: macOf(9) }, spec: expectedSpec },
  });
  // Its inventory lacks the interface.
  await report(finding(1, {}, macOf(9)));
  const conflict = async () => (await site.fixture.discovery.getExpectedHost({ name })).conflict;
  expect(await conflict()).toContain(`has MAC ${macOf(9)}, but not serial SN-9`);
  const [machine] = await listed();
  await site.fixture.discovery.deleteDiscoveredMachine({ name: machine?.name ?? '' });
  await expect.poll(conflict, { timeout: 2_000 }).toBe('');
});

test('a later rule accepts a machine; the reasons why a rule did not are shown', async () => {
  await report(finding(1));
  const rule = { name: 'boxes', product: 'box', hostId: 'node-{serial}' };
  const setRule = (spec: object) =>
    site.fixture.racks.updateRack({
      rack: {
        name: 'racks/r1',
        spec: { discovery: policy({ rules: [{ ...rule, spec }] }) },
      },
      updateMask: { paths: ['spec.discovery'] },
    });
  expect(await violatedFields(setRule({}))).toEqual(['rack.spec.discovery.rules[0].spec.bmc']);
  await setRule({ bmc: { address: '', credential: 'credentials/none' } });
  await pass();
  expect((await listed())[0]?.notAccepted).toContain('credentials/none, which does not exist');
  await setRule({ bmc: { address: '', credential: 'credentials/bmc' } });
  await pass();
  expect(await hostNames()).toEqual(['hosts/node-sn-1']);
  expect(await listed()).toEqual([]);
  const { records } = await site.fixture.audit.listAuditRecords({ resource: 'hosts/node-sn-1' });
  expect(records.map(({ actor, message }) => [actor, message])).toEqual([
    ['system:discovery', expect.stringMatching(/ by racks\/r1 rule boxes$/)],
  ]);
});

test('a crash after the host was made lists nothing twice and makes no second host', async () => {
  await report(finding(1));
  const [machine] = await listed();
  const stored = await site.fixture.store.get(`discoveredMachines.${machine?.name.split('/')[1]}`);
  await expectHost(1);
  await pass();
  expect(await hostNames()).toEqual(['hosts/e1']);
  const acceptances = () => site.fixture.audit.listAuditRecords({ actor: 'system:discovery' });
  expect((await acceptances()).records).toHaveLength(1);
  // As after a crash: host created, line not marked, machine still listed, no facts.
  const name = 'expectedHosts.e1';
  const line = await site.fixture.store.get(name);
  if (stored.kind !== 'found' || line.kind !== 'found') throw new Error('not kept');
  const record = fromBinary(wire.ExpectedHostRecordSchema, line.value);
  if (record.expectedHost !== undefined) record.expectedHost.host = '';
  await site.fixture.store.put(
    name,
    toBinary(wire.ExpectedHostRecordSchema, record),
    line.revision,
  );
  await site.fixture.store.put(stored.key, stored.value, 'absent');
  const facts = await site.fixture.store.get('facts.e1');
  if (facts.kind === 'found') await site.fixture.store.delete('facts.e1', facts.revision);
  await pass();
  expect(await listed()).toEqual([]);
  expect(await hostNames()).toEqual(['hosts/e1']);
  const marked = await site.fixture.discovery.getExpectedHost({ name: 'expectedHosts/e1' });
  expect([marked.host, marked.conflict]).toEqual(['hosts/e1', '']);
  const host: Host = await site.fixture.hosts.getHost({ name: 'hosts/e1' });
  expect(host.status?.inventory?.system?.serial).toBe('SN-1');
  expect((await acceptances()).records).toHaveLength(1);
});

const boxes = { name: 'boxes', hostId: 'node-{serial}' };
const sameCredential = { bmc: { address: '', credential: 'credentials/bmc' } };

test('no credential goes to an address that only the machine has reported', async () => {
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
  await site.fixture.discovery.createExpectedHost({ expectedHostId: 'e3', expectedHost });
  await report(finding(3));
  expect(await hostNames(), 'a person wrote it in the line').toEqual(['hosts/e3']);
  await setPolicy({ bmcNetworks: ['192.0.2.0/24'], rules: [{ ...boxes, spec: sameCredential }] });
  await pass();
  expect(await hostNames()).toEqual(['hosts/e2', 'hosts/e3', 'hosts/node-sn-1']);
});

test('a rule makes hosts up to its limit, and another once one of them is gone', async () => {
  await setPolicy({ rules: [{ ...boxes, hostsMax: 2, spec: sameCredential }] });
  for (const n of [1, 2, 3]) await report(finding(n));
  expect(await hostNames()).toEqual(['hosts/node-sn-1', 'hosts/node-sn-2']);
  const [machine] = await listed();
  expect(machine?.notAccepted).toContain('has made 2 hosts already, of 2');
});
