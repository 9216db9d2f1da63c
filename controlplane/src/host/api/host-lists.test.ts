/** Lists of hosts by their indexed fields, in pages, in the state at the time of the call. */
import { create, toBinary } from '@bufbuild/protobuf';
import { HostView, Role, store as wire } from '@rackwright/messages';
import { operatorClients } from '@rackwright/rpc';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { tokenFor } from '../../services/access.fixture.ts';
import {
  addSurroundings,
  type Fixture,
  failureOf,
  specOf,
  startFixture,
} from '../../services/rpc.fixture.ts';

let fixture: Fixture;

beforeAll(async () => {
  fixture = await startFixture();
  await addSurroundings(fixture);
  await fixture.racks.createRack({ rackId: 'r2' });
  for (let n = 1; n <= 12; n += 1) await make(n, n % 2 === 0 ? 'racks/r2' : 'racks/r1');
});

afterAll(() => fixture.stop());

const make = (n: number, rack: string) =>
  fixture.hosts.createHost({ hostId: `h${n}`, host: { spec: { ...specOf(n), rack } } });

async function listed(rack: string, pageSize: number): Promise<string[]> {
  const names: string[] = [];
  let pageToken = '';
  do {
    const page = await fixture.hosts.listHosts({ rack, pageSize, pageToken });
    expect(page.hosts.length).toBeLessThanOrEqual(pageSize);
    names.push(...page.hosts.map(({ name }) => name));
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  return names;
}

const even = ['h10', 'h12', 'h2', 'h4', 'h6', 'h8'].map((id) => `hosts/${id}`);
const odd = ['h1', 'h11', 'h3', 'h5', 'h7', 'h9'].map((id) => `hosts/${id}`);

test.each([1, 2, 5, 6, 100])('pages of %i show each host once, in one order', async (size) => {
  expect(await listed('racks/r2', size)).toEqual(even);
  expect(await listed('', size)).toEqual([...odd, ...even].toSorted());
});

test('a new host is in the list of its rack at once, and a removed one in no list', async () => {
  for (let n = 20; n < 30; n += 1) {
    await make(n, 'racks/r2');
    expect(await listed('racks/r2', 100)).toContain(`hosts/h${n}`);
  }
  const { entries } = await fixture.store.list('hosts.h20');
  await fixture.store.delete('hosts.h20', entries[0]?.revision ?? 0);
  expect(await listed('racks/r2', 100)).not.toContain('hosts/h20');
});

test('a rack is not deleted while the host that was just made is in it', async () => {
  await fixture.racks.createRack({ rackId: 'r3' });
  await make(40, 'racks/r3');
  const refused = await failureOf(fixture.racks.deleteRack({ name: 'racks/r3' }));
  expect(refused).toMatchObject({ reason: 'RACK_HAS_HOSTS' });
});

test('a page token that names no resource is refused', async () => {
  const text = JSON.stringify([fixture.store.incarnation, '', 'hosts. or so']);
  const pageToken = Buffer.from(text).toString('base64url');
  const refused = await failureOf(fixture.hosts.listHosts({ pageToken }));
  expect(refused).toMatchObject({ kind: 'invalidArgument' });
});

const found = async (filter: string, orderBy = '', pageSize = 1_000) => {
  const names: string[] = [];
  let pageToken = '';
  do {
    const page = await fixture.hosts.listHosts({ filter, orderBy, pageSize, pageToken });
    names.push(...page.hosts.map(({ name }) => name.slice('hosts/'.length)));
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  return names;
};

test.each([
  ['name = h1', ['h1']],
  ['rack = r2 AND (name = h2 OR name = h3 OR name = h4)', ['h2', 'h4']],
  ['boot_macs:52:54:00:00:00:0A', ['h10']],
  ['bmc.address = 192.0.2.11', ['h11']],
  ['name = h* AND NOT name = h1* AND NOT name = h2* AND rack = r1', ['h3', 'h5', 'h7', 'h9']],
  ['rack = nowhere', []],
])('a filter finds what matches: %s', async (filter, ids) => {
  for (const size of [1, 2, 100]) expect(await found(filter, '', size)).toEqual(ids);
});

test.each([1, 2, 3, 100])('a sorted list in pages of %i has each host once', async (size) => {
  const filter = 'name = h1 OR name = h2 OR name = h3 OR name = h4 OR name = h10';
  expect(await found(filter, 'rack desc, name desc', size)).toEqual([
    'h4',
    'h2',
    'h10',
    'h3',
    'h1',
  ]);
  expect(await found(filter, 'rack', size)).toEqual(['h1', 'h3', 'h10', 'h2', 'h4']);
  const newest = await found(filter, 'create_time desc', size);
  expect(newest).toEqual(['h10', 'h4', 'h3', 'h2', 'h1']);
});

test('a list that leaves out hosts begins where a scroll bar points', async () => {
  const { hosts } = fixture;
  const names = async (request: Parameters<Fixture['hosts']['listHosts']>[0]) =>
    (await hosts.listHosts(request)).hosts.map(({ name }) => name.slice('hosts/'.length));
  const all = await found('');
  expect(await names({ skip: 5, pageSize: 3 })).toEqual(all.slice(5, 8));
  const odds = odd.map((name) => name.slice('hosts/'.length));
  expect(await names({ filter: 'rack = r1', skip: 4 })).toEqual(
    (await found('rack = r1')).slice(4),
  );
  expect(await names({ rack: 'racks/r1', skip: 1, pageSize: 2 })).toEqual(odds.slice(1, 3));
  const sorted = await found('', 'name desc');
  const orderBy = 'name desc';
  expect(await names({ orderBy, skip: 3, pageSize: 2 })).toEqual(sorted.slice(3, 5));
  expect(await names({ skip: all.length })).toEqual([]);
  const { nextPageToken } = await hosts.listHosts({ orderBy, skip: 3, pageSize: 2 });
  const pageToken = nextPageToken;
  expect(await names({ orderBy, pageToken, pageSize: 2 })).toEqual(sorted.slice(5, 7));
  expect(await names({ orderBy, pageToken, skip: 1, pageSize: 2 })).toEqual(sorted.slice(6, 8));
  const refused = await failureOf(hosts.listHosts({ orderBy, skip: 10_001 }));
  expect(refused).toMatchObject({ violations: [{ field: 'skip' }] });
});

test('a page goes on behind its last host, whatever has changed before it', async () => {
  const ask = { filter: 'name = h1 OR name = h2 OR name = h3', orderBy: 'name desc', pageSize: 1 };
  const first = await fixture.hosts.listHosts(ask);
  expect(first.hosts[0]?.name).toBe('hosts/h3');
  const labels = { moved: 'yes' };
  const updateMask = { paths: ['labels'] };
  await fixture.hosts.updateHost({ host: { name: 'hosts/h3', labels }, updateMask });
  const next = await fixture.hosts.listHosts({ ...ask, pageToken: first.nextPageToken });
  expect(next.hosts[0]?.name).toBe('hosts/h2');
  for (const other of [{ orderBy: 'name' }, { filter: 'name = h1' }, { rack: 'racks/r1' }]) {
    const call = fixture.hosts.listHosts({ ...ask, ...other, pageToken: first.nextPageToken });
    expect(await failureOf(call)).toMatchObject({ violations: [{ field: 'page_token' }] });
  }
  const [, bound] = JSON.parse(
    Buffer.from(first.nextPageToken, 'base64url').toString(),
  ) as string[];
  for (const place of ['', 'hosts.h1', '["h1"]', '[{},"h1"]', '["h1",1]']) {
    const text = JSON.stringify([fixture.store.incarnation, bound, place || '[]']);
    const pageToken = Buffer.from(text).toString('base64url');
    const call = fixture.hosts.listHosts({ ...ask, pageToken });
    expect(await failureOf(call)).toMatchObject({ violations: [{ field: 'page_token' }] });
  }
});

test('a list by labels shows every label change that was written just before', async () => {
  for (let n = 0; n < 10; n += 1) {
    const host = { name: 'hosts/h5', labels: { round: String(n) } };
    await fixture.hosts.updateHost({ host, updateMask: { paths: ['labels'] } });
    expect(await found(`labels.round = ${n}`)).toEqual(['h5']);
    expect(await found(`labels.round = ${n - 1}`)).toEqual([]);
  }
});

test('a filter and an order that are wrong are refused with their place', async () => {
  const { hosts } = fixture;
  const wrong = [
    [hosts.listHosts({ filter: 'rack = r1 AND stat = x' }), 'filter', 'at character 15'],
    [hosts.listHosts({ orderBy: 'rack, size' }), 'order_by', 'at character 7'],
    [hosts.countHosts({ filter: '(' }), 'filter', 'at character 2'],
    [hosts.countHosts({ groupBy: 'size' }), 'group_by', 'boot_macs'],
  ] as const;
  for (const [call, field, place] of wrong) {
    const violations = [{ field, description: expect.stringContaining(place) }];
    expect(await failureOf(call)).toMatchObject({ kind: 'invalidArgument', violations });
  }
});

test('hosts are counted by a field, the largest group first', async () => {
  const filter = 'name = h1 OR name = h2 OR name = h4';
  const byRack = await fixture.hosts.countHosts({ filter, groupBy: 'rack' });
  expect(byRack).toMatchObject({
    total: 3,
    groups: [
      { value: 'racks/r2', count: 2 },
      { value: 'racks/r1', count: 1 },
    ],
    groupsLeftOut: 0,
  });
  expect(await fixture.hosts.countHosts({ filter })).toMatchObject({ total: 3, groups: [] });
  const byLabel = await fixture.hosts.countHosts({ filter, groupBy: 'labels.site' });
  expect(byLabel.groups).toMatchObject([{ value: '', count: 3 }]);
  const byMac = await fixture.hosts.countHosts({ filter, groupBy: 'boot_macs' });
  expect(byMac.groups.map(({ count }) => count)).toEqual([1, 1, 1]);
});

test('a caller with a scope finds and counts what is in it, and nothing else', async () => {
  const scope = { racks: ['racks/r2'] };
  const token = await tokenFor(fixture, 'of-r2', Role.VIEWER, scope);
  const { hosts } = operatorClients(fixture.channel, token);
  const filter = 'name = h1 OR name = h2';
  for (const orderBy of ['', 'name desc']) {
    const page = await hosts.listHosts({ filter, orderBy });
    expect(page.hosts.map(({ name }) => name)).toEqual(['hosts/h2']);
  }
  const counts = await hosts.countHosts({ groupBy: 'rack' });
  expect(counts.groups.map(({ value }) => value)).toEqual(['racks/r2']);
  expect(counts.total).toBe(counts.groups[0]?.count);
});

test('a row tells no inventory, and a host that cannot be decoded stops no list', async () => {
  const facts = create(wire.HostFactsSchema, { inventory: { memoryBytes: 1n } });
  const { uid } = await fixture.hosts.getHost({ name: 'hosts/h1' });
  const bytes = toBinary(wire.HostFactsSchema, { ...facts, hostUid: uid });
  await fixture.store.put('facts.h1', bytes, 'absent');
  const shown = async (view: HostView) =>
    (await fixture.hosts.listHosts({ filter: 'name = h1', view })).hosts[0]?.status?.inventory;
  expect(await shown(HostView.UNSPECIFIED)).toMatchObject({ memoryBytes: 1n });
  expect(await shown(HostView.FULL)).toMatchObject({ memoryBytes: 1n });
  expect(await shown(HostView.BASIC)).toBeUndefined();
  await fixture.store.put('hosts.broken', Uint8Array.of(255, 255), 'absent');
  const counted = await fixture.hosts.countHosts({ groupBy: 'state' });
  expect(counted.unreadable).toBe(1);
  for (const ask of [{}, { filter: 'name:*' }, { orderBy: 'rack' }]) {
    const page = await fixture.hosts.listHosts({ ...ask, pageSize: 1_000 });
    expect(page.hosts).toHaveLength(counted.total);
    expect(page.unreadable).toMatchObject([{ name: 'hosts/broken' }]);
  }
  const token = await tokenFor(fixture, 'of-r1', Role.VIEWER, { racks: ['racks/r1'] });
  const scoped = await operatorClients(fixture.channel, token).hosts.listHosts({});
  expect(scoped.hosts.length).toBeGreaterThan(1);
  expect(scoped.unreadable).toEqual([]);
});
