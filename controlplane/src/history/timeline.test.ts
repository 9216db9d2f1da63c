import { create, toBinary } from '@bufbuild/protobuf';
import { timestampDate, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { HostState, ListHostRevisionsRequestSchema, store as wire } from '@rackwright/messages';
import { nodeRandom } from '@rackwright/platform/node';
import { openMemoryStore, RETENTION_DEFAULT, type StateStore } from '@rackwright/store';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  addSurroundings,
  type Fixture,
  failureOf,
  specOf,
  startFixture,
} from '../services/rpc.fixture.ts';
import { hostAt, listHostRevisions } from './timeline.ts';

const startMs = Date.parse('2026-01-01T00:00:00Z');
const minuteMs = 60_000;
const dayMs = 86_400_000;

let nowMs: number;
let store: StateStore;
let revision: number | 'absent';
const clock = { nowMs: () => nowMs };
const deps = () => ({ store, clock: clock as never });

beforeEach(async () => {
  nowMs = startMs;
  revision = 'absent';
  const retention = { ...RETENTION_DEFAULT, historyPrefixes: ['hosts', 'facts'] };
  store = await openMemoryStore({ random: nodeRandom(), clock, retention });
});

async function putHost(labels: Record<string, string>, cause: string, uid = 'u1') {
  const record = create(wire.HostRecordSchema, {
    host: { name: 'hosts/h1', uid, labels, status: { state: HostState.MANAGEABLE } },
    change: { actor: 'user:admin', cause, time: timestampFromMs(nowMs) },
  });
  const value = toBinary(wire.HostRecordSchema, record);
  const written = await store.put('hosts.h1', value, revision);
  if (written.kind === 'ok') revision = written.revision;
  nowMs += minuteMs;
}

async function putFacts(serial: string, hostUid = 'u1') {
  const facts = create(wire.HostFactsSchema, { hostUid, inventory: { devices: [{ serial }] } });
  const before = (await store.get('facts.h1')).revision ?? 'absent';
  await store.put('facts.h1', toBinary(wire.HostFactsSchema, facts), before);
}

const list = (given: object) =>
  listHostRevisions(
    { store },
    create(ListHostRevisionsRequestSchema, { name: 'hosts/h1', ...given }),
  );
const causes = (answer: Awaited<ReturnType<typeof list>>) =>
  answer.revisions?.map(({ cause }) => cause);
const at = (ms: number) => timestampFromMs(ms);
const failure = async (call: Promise<unknown>) => failureOf(call);

describe('the timeline', () => {
  test('comes in pages that together are all of it, newest first, beyond the last 64', async () => {
    const all: string[] = [];
    for (let each = 0; each < 150; each += 1) {
      await putHost({ n: `${each}` }, `change ${each}`);
      all.unshift(`change ${each}`);
    }
    const seen: string[] = [];
    let pageToken = '';
    do {
      const page = await list({ pageSize: 40, pageToken });
      seen.push(...(causes(page) as string[]));
      pageToken = page.nextPageToken ?? '';
    } while (pageToken !== '');
    expect(seen).toEqual(all);
  });

  test('is cut to a range of times, its end not included', async () => {
    for (let each = 0; each < 10; each += 1) await putHost({}, `change ${each}`);
    const startTime = at(startMs + 3 * minuteMs);
    const endTime = at(startMs + 6 * minuteMs);
    expect(causes(await list({ startTime, endTime }))).toEqual([5, 4, 3].map((n) => `change ${n}`));
    const first = await list({ startTime, endTime, pageSize: 2 });
    expect(causes(first)).toEqual(['change 5', 'change 4']);
    const rest = { startTime, endTime, pageToken: first.nextPageToken };
    expect(causes(await list(rest))).toEqual(['change 3']);
    const other = await failure(list({ startTime, pageToken: first.nextPageToken }));
    expect(other.message).toContain('other filters');
    const turned = await failure(list({ startTime: endTime, endTime: startTime }));
    expect(turned.message).toContain('must be after start_time');
  });

  test('looks at a bounded number of revisions for one page, and goes on from there', async () => {
    for (let each = 0; each < 4_200; each += 1) await putHost({}, `change ${each}`);
    const endTime = at(startMs + 2 * minuteMs);
    const none = await list({ endTime });
    expect(none.revisions).toEqual([]);
    expect(none.nextPageToken).not.toBe('');
    const found = await list({ endTime, pageToken: none.nextPageToken });
    expect(causes(found)).toEqual(['change 1', 'change 0']);
    expect(found.nextPageToken).toBe('');
  });
});

describe('a host as of a time', () => {
  test('is as its record said then, with the inventory of then', async () => {
    await putFacts('OLD');
    await putHost({ role: 'a' }, 'created');
    await putHost({ role: 'b' }, 'updated');
    await putFacts('NEW');
    await putHost({ role: 'c' }, 'updated');
    const roles = [];
    for (const ms of [0, 0.5, 1, 1.5, 2, 9]) {
      nowMs = startMs + 10 * minuteMs;
      const { host } = await hostAt(deps(), 'hosts/h1', at(startMs + ms * minuteMs));
      const serials = host.status?.inventory?.devices.map(({ serial }) => serial);
      roles.push(`${host.labels['role']} ${serials?.join()} ${host.status?.display}`);
    }
    expect(roles).toEqual([
      'a OLD manageable',
      'a OLD manageable',
      'b OLD manageable',
      'b OLD manageable',
      'c NEW manageable',
      'c NEW manageable',
    ]);
  });

  test('was not there before it was made, nor between its removal and its next life', async () => {
    nowMs += minuteMs;
    await putHost({}, 'created');
    const early = await failure(hostAt(deps(), 'hosts/h1', at(startMs)));
    expect(early).toMatchObject({ kind: 'notFound' });
    expect(early.message).toBe('hosts/h1 did not exist at 2026-01-01T00:00:00.000Z.');
    const gone = await store.delete('hosts.h1', Number(revision));
    revision = gone.kind === 'ok' ? 'absent' : revision;
    const goneMs = nowMs;
    nowMs += minuteMs;
    await putFacts('OF-THE-FIRST');
    await putHost({}, 'created', 'u2');
    const between = await failure(hostAt(deps(), 'hosts/h1', at(goneMs + 1)));
    expect(between.message).toContain('did not exist at');
    expect((await hostAt(deps(), 'hosts/h1', at(goneMs - 1))).host.uid).toBe('u1');
    const { host } = await hostAt(deps(), 'hosts/h1', at(nowMs));
    expect(host.uid).toBe('u2');
    expect(host.status?.inventory).toBeUndefined();
    expect((await failure(hostAt(deps(), 'hosts/h2', at(startMs)))).kind).toBe('notFound');
  });

  test('is refused for a time before what is kept, naming the oldest that is', async () => {
    for (let each = 0; each < 80; each += 1) await putHost({}, `change ${each}`);
    expect((await hostAt(deps(), 'hosts/h1', at(startMs))).revision).toBe(1);
    nowMs += 401 * dayMs;
    const oldest = timestampDate(at(startMs + 16 * minuteMs)).toISOString();
    const refused = await failure(hostAt(deps(), 'hosts/h1', at(startMs)));
    expect(refused).toMatchObject({ kind: 'outOfRange', reason: 'READ_TIME_TOO_OLD' });
    expect(refused.message).toContain(oldest);
    const { revision: first } = await hostAt(deps(), 'hosts/h1', at(Date.parse(oldest)));
    expect(first).toBe(17);
    const ahead = await failure(hostAt(deps(), 'hosts/h1', at(nowMs + dayMs)));
    expect(ahead.message).toContain('lies ahead');
  });
});

describe('over the API', () => {
  let fixture: Fixture;

  beforeAll(async () => {
    fixture = await startFixture();
    await addSurroundings(fixture);
  });

  afterAll(() => fixture.stop());

  test('a host is read back as it was, and the difference of two times is told', async () => {
    const { hosts, history } = fixture;
    const made = await hosts.createHost({ hostId: 'h1', host: { spec: specOf(1) } });
    await hosts.updateHost({ host: { name: 'hosts/h1', labels: { role: 'a', site: 'x' } } });
    const labelled = (await hosts.listHostRevisions({ name: 'hosts/h1', pageSize: 1 })).revisions;
    const fromTime = labelled[0]?.time ?? at(0);
    // The next change has a later time than this one.
    const isLater = () => Date.now() > timestampMs(fromTime);
    await expect.poll(isLater, { interval: 1, message: 'the clock stands still' }).toBe(true);
    const labels = { role: 'b' };
    const updateMask = { paths: ['labels', 'spec.boot_macs'] };
    const spec = { bootMacs: [...specOf(1).bootMacs, '52:54:00:00:00:99'] };
    await hosts.updateHost({ host: { name: 'hosts/h1', labels, spec }, updateMask });
    const then = await hosts.getHost({ name: 'hosts/h1', readTime: fromTime });
    expect(then).toMatchObject({ uid: made.uid, labels: { role: 'a', site: 'x' } });
    expect(then.etag).not.toBe((await hosts.getHost({ name: 'hosts/h1' })).etag);
    const answer = await history.diffHost({ name: 'hosts/h1', fromTime });
    const shown = answer.differences.map(
      ({ path, before, after }) => `${path}: ${before}>${after}`,
    );
    expect(shown.filter((line) => !line.startsWith('status.'))).toEqual([
      'labels[role]: a>b',
      'labels[site]: x>',
      'spec.boot_macs[1]: >52:54:00:00:00:99',
    ]);
    expect(answer.toRevision).toBeGreaterThan(answer.fromRevision);
    const missing = await failure(history.diffHost({ name: 'hosts/h1' }));
    expect(missing.message).toContain('from_time: is missing');
  });
});

test('a read goes back a limited number of changes, and is refused beyond', async () => {
  await putHost({}, 'first');
  const record = create(wire.HostRecordSchema, { host: { name: 'hosts/h1', uid: 'u1' } });
  for (let n = 0; n < 16_384; n += 1) {
    record.change = create(wire.ChangeSchema, { time: timestampFromMs(nowMs) });
    nowMs += 1;
    const written = await store.put('hosts.h1', toBinary(wire.HostRecordSchema, record), revision);
    if (written.kind === 'ok') revision = written.revision;
  }
  const far = await failureOf(hostAt(deps(), 'hosts/h1', timestampFromMs(startMs)));
  expect([far.kind, far.message]).toEqual([
    'outOfRange',
    expect.stringContaining('16384 changes since 2026-01-01T00:01:00.000Z are gone over'),
  ]);
});
