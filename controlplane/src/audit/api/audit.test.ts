import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type AuditRecord, HostState } from '@rackwright/messages';
import { nodeClock } from '@rackwright/platform/node';
import { operatorClients } from '@rackwright/rpc';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { preparedHost, putHost } from '../../services/prepared.fixture.ts';
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
});

afterAll(() => fixture.stop());

async function find(search: object): Promise<AuditRecord[]> {
  return (await fixture.audit.listAuditRecords(search)).records;
}

/** Refusals are recorded outside the path of the call. */
async function findSoon(search: object): Promise<AuditRecord[]> {
  for (let round = 0; round < 100; round += 1) {
    const found = await find(search);
    if (found.length > 0) return found;
    await new Promise<void>((resolve) => nodeClock().after(10, resolve));
  }
  return [];
}

test('a change is on record when its call is answered: who, what, which, from where', async () => {
  const { hosts } = fixture;
  await hosts.createHost({ hostId: 'h1', host: { spec: specOf(1) }, requestId: 'a-1' });
  const [made] = await find({ resource: 'hosts/h1' });
  expect(made).toMatchObject({
    actor: 'user:admin',
    kind: 'request',
    action: 'HostService.CreateHost',
    resource: 'hosts/h1',
    outcome: 'ok',
    requestId: 'a-1',
  });
  expect(made?.peer).toMatch(/^127\.0\.0\.1:\d+$/);
  await hosts.updateHost({
    host: { name: 'hosts/h1', labels: { a: '1' } },
    updateMask: { paths: ['labels'] },
  });
  await hosts.claimHost({ name: 'hosts/h1', reason: 'my database' });
  const found = await find({ resource: 'hosts/h1' });
  expect(found.map(({ action, message }) => `${action} ${message}`)).toEqual([
    'HostService.ClaimHost my database',
    'HostService.UpdateHost fields labels',
    'HostService.CreateHost ',
  ]);
  expect(found.map(({ id }) => id)).toEqual(
    found
      .map(({ id }) => id)
      .toSorted()
      .toReversed(),
  );
});

test('a refusal is on record with its words, and what only looks or checks is not', async () => {
  const { hosts } = fixture;
  await hosts.getHost({ name: 'hosts/h1' });
  await hosts.createHost({ hostId: 'h2', host: { spec: specOf(2) }, validateOnly: true });
  const refused = await failureOf(hosts.deleteHost({ name: 'hosts/h1', reason: 'gone' }));
  const [record] = await findSoon({ action: 'deletehost' });
  expect(record).toMatchObject({ outcome: 'FAILED_PRECONDITION', resource: 'hosts/h1' });
  expect(record?.message).toBe(refused.message);
  await failureOf(hosts.createHost({ hostId: 'BAD', host: { spec: specOf(3) } }));
  const [bad] = await findSoon({ outcome: 'invalid_argument', action: 'CreateHost' });
  expect(bad).toMatchObject({ resource: 'hosts/BAD' });
  expect(await find({ resource: 'hosts/h2' })).toEqual([]);
  expect(await find({ action: 'GetHost' })).toEqual([]);
});

test('a plan is kept, and so on record', async () => {
  await fixture.plans.planRun({ parent: 'hosts/h1', run: { case: 'clean', value: {} } });
  const [record] = await find({ action: 'PlanRun' });
  expect(record).toMatchObject({ outcome: 'ok', resource: 'hosts/h1', actor: 'user:admin' });
});

test('a password is nowhere in it, a join token neither', async () => {
  const { credentials, racks, store } = fixture;
  const credential = { username: 'root', password: 'sesame-open' };
  await credentials.createCredential({ credentialId: 'c2', credential });
  const { token } = await racks.createJoinToken({ rack: 'racks/r1' });
  expect(await find({ resource: 'credentials/c2' })).toHaveLength(1);
  const [made] = await find({ action: 'RackService.CreateJoinToken' });
  expect(made).toMatchObject({ resource: 'racks/r1', outcome: 'ok' });
  const { entries } = await store.log.back(500);
  const all = entries.map(({ value }) => Buffer.from(value).toString('latin1')).join();
  expect(all).not.toContain('sesame');
  expect(all).not.toContain(token.split('.').at(-1));
});

test('a caller who is not let in is on record, as nobody', async () => {
  const { channel, enrolment } = fixture;
  await failureOf(operatorClients(channel, 'rwa1.guess').hosts.listHosts({}));
  const [stranger] = await findSoon({ outcome: 'UNAUTHENTICATED' });
  expect(stranger).toMatchObject({ kind: 'signIn', actor: '', action: 'HostService.ListHosts' });
  await failureOf(enrolment.issueCertificate({}));
  const [agent] = await findSoon({ action: 'EnrolmentService.IssueCertificate' });
  expect(agent).toMatchObject({ kind: 'enrolment', actor: '', outcome: 'INVALID_ARGUMENT' });
});

test('the audit stream is searched by each trait, in pages, and in a range of times', async () => {
  const { hosts, audit } = fixture;
  await hosts.createHost({ hostId: 'h7', host: { spec: specOf(7) } });
  for (let at = 0; at < 25; at += 1) {
    const updateMask = { paths: ['labels'] };
    await hosts.updateHost({ host: { name: 'hosts/h7', labels: { n: `${at}` } }, updateMask });
  }
  const search = { resource: 'hosts/h7', action: 'UpdateHost', text: 'LABELS', pageSize: 10 };
  const sizes: number[] = [];
  const ids = new Set<string>();
  let pageToken = '';
  do {
    const page = await audit.listAuditRecords({ ...search, pageToken });
    sizes.push(page.records.length);
    for (const { id } of page.records) ids.add(id);
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  expect(sizes.filter((size) => size > 0)).toEqual([10, 10, 5]);
  expect(ids.size).toBe(25);
  expect(await find({ resource: 'hosts/h7', actor: 'user:other' })).toEqual([]);
  expect(await find({ resource: 'hosts' })).not.toEqual([]);
  const nowMs = nodeClock().nowMs();
  expect(await find({ resource: 'hosts/h7', endTime: timestampFromMs(nowMs - 3_600_000) })).toEqual(
    [],
  );
  const recent = { resource: 'hosts/h7', startTime: timestampFromMs(nowMs - 3_600_000) };
  expect(await find({ ...recent, pageSize: 100 })).toHaveLength(26);
  const { nextPageToken } = await audit.listAuditRecords(search);
  const other = await failureOf(audit.listAuditRecords({ ...recent, pageToken: nextPageToken }));
  expect(other.message).toContain('other filters');
});

test('the reason of what destroys data is on record', async () => {
  const { hosts, store } = fixture;
  const image = `registry.example/os@sha256:${'a'.repeat(64)}`;
  const states = [HostState.MANAGEABLE, HostState.AVAILABLE, HostState.PROVISIONED] as const;
  for (const [index, state] of states.entries()) {
    await putHost(store, preparedHost(11 + index, { state, kind: undefined }));
  }
  await hosts.cleanHost({ name: 'hosts/h11', reason: 'sold' });
  await hosts.provisionHost({ name: 'hosts/h12', image, reason: 'a new web server' });
  await hosts.releaseHost({ name: 'hosts/h13', reason: 'not used any more' });
  for (const [action, message] of [
    ['CleanHost', 'sold'],
    ['ProvisionHost', 'a new web server'],
    ['ReleaseHost', 'not used any more'],
  ] as const) {
    const [record] = await find({ action });
    expect(record).toMatchObject({ message, outcome: 'ok', actor: 'user:admin' });
  }
});
