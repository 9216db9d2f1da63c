/** WatchEvents through a whole control plane on loopback. */
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  EventTypeSchema,
  WatchEventsResponse_Kind as Kind,
  Role,
  type WatchEventsRequest,
  type WatchEventsResponse,
} from '@rackwright/messages';
import { operatorClients } from '@rackwright/rpc';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  addSurroundings,
  type Fixture,
  failureOf,
  specOf,
  startFixture,
  violatedFields,
} from '../../services/rpc.fixture.ts';

let fixture: Fixture;

beforeEach(async () => {
  fixture = await startFixture();
  await addSurroundings(fixture);
});

afterEach(() => fixture.stop());

type WatchOptions = Partial<Pick<WatchEventsRequest, 'filter' | 'position'>>;

/** Opens a watch; `until` returns its responses up to the first match. */
async function watching(asked: WatchOptions = {}, { events }: Pick<Fixture, 'events'> = fixture) {
  const stopping = new AbortController();
  const stream = events.watchEvents(asked, { signal: stopping.signal })[Symbol.asyncIterator]();
  const until = async (fits: (told: WatchEventsResponse) => boolean) => {
    const told: WatchEventsResponse[] = [];
    for (;;) {
      const next = await stream.next();
      if (next.done === true) throw new Error('the watch has ended');
      told.push(next.value);
      if (fits(next.value)) return told;
    }
  };
  const [started] = await until(({ kind }) => kind === Kind.STARTED);
  return { until, position: started?.position ?? '', stop: () => stopping.abort() };
}

const typeOf = ({ event }: WatchEventsResponse) =>
  EventTypeSchema.value[event?.type ?? 0]?.localName ?? '';
const is = (type: string) => (told: WatchEventsResponse) => typeOf(told) === type;
const textOf = (told: WatchEventsResponse) => `${told.event?.subject} ${typeOf(told)}`;

test('a watch reports each new change with its author, and no earlier change', async () => {
  const watch = await watching();
  await fixture.hosts.createHost({ hostId: 'h1', host: { spec: specOf(1) } });
  await fixture.hosts.claimHost({ name: 'hosts/h1', reason: 'mine' });
  await fixture.fleet.freezeFleet({ reason: 'fire' });
  const told = await watch.until(is('CLAIM_CHANGED'));
  expect(textOf(told[0] as WatchEventsResponse)).toBe('hosts/h1 HOST_CREATED');
  const claim = told.at(-1)?.event;
  expect(claim).toMatchObject({ subject: 'hosts/h1', rack: 'racks/r1', actor: 'user:admin' });
  expect(claim?.data.value).toMatchObject({ from: '', to: 'user:admin', reason: 'mine' });
  if (!told.some(is('FREEZE_STARTED'))) await watch.until(is('FREEZE_STARTED'));
  watch.stop();
});

test('a resumed watch reports the same events as one that never broke off', async () => {
  const { position, stop } = await watching();
  stop();
  await fixture.hosts.createHost({ hostId: 'h1', host: { spec: specOf(1) } });
  await fixture.hosts.claimHost({ name: 'hosts/h1' });
  const filter = 'host = h1 AND (type = host-created OR type = claim-changed)';
  const first = await watching({ position, filter });
  const told = await first.until(is('CLAIM_CHANGED'));
  first.stop();
  expect(told.map(typeOf)).toEqual(['HOST_CREATED', 'CLAIM_CHANGED']);
  const again = await watching({ position: told[0]?.position ?? '', filter });
  const rest = await again.until(is('CLAIM_CHANGED'));
  again.stop();
  expect(rest.map(({ event }) => event?.id)).toEqual([told[1]?.event?.id]);
});

test('a position of a store before it was restored goes on from now, and says so', async () => {
  const { position, stop } = await watching();
  stop();
  const old = position.replace(/^[^.]+/, 'another');
  const stopping = new AbortController();
  const { signal } = stopping;
  const told: WatchEventsResponse[] = [];
  for await (const each of fixture.events.watchEvents({ position: old }, { signal })) {
    told.push(each);
    if (each.kind === Kind.STARTED) break;
  }
  stopping.abort();
  expect(told.map(textOf)).toEqual(['fleet GAP', 'undefined UNSPECIFIED']);
});

test('a wrong position or filter is refused by its field', async () => {
  const open = async (asked: WatchOptions) => {
    for await (const _ of fixture.events.watchEvents(asked)) break;
  };
  expect(await violatedFields(open({ position: 'yesterday' }))).toEqual(['position']);
  expect(await violatedFields(open({ filter: 'colour = red' }))).toEqual(['filter']);
  expect((await failureOf(open({ filter: 'type = run-endde' }))).message).toContain('run-ended');
});

test('a caller with a scope is told of what is in it, and of nothing else', async () => {
  await fixture.racks.createRack({ rackId: 'r2' });
  const expireTime = timestampFromMs(Date.now() + 3_600_000);
  const { secret } = await fixture.access.createToken({
    tokenId: 'r2-viewer',
    token: { role: Role.VIEWER, scope: { racks: ['racks/r2'] }, expireTime },
  });
  const scoped = operatorClients(fixture.channel, secret);
  const watch = await watching({}, scoped);
  await fixture.hosts.createHost({ hostId: 'h1', host: { spec: specOf(1) } });
  await fixture.racks.freezeRack({ name: 'racks/r1', reason: 'no' });
  const spec = { ...specOf(2), rack: 'racks/r2' };
  await fixture.hosts.createHost({ hostId: 'h2', host: { spec } });
  await fixture.racks.freezeRack({ name: 'racks/r2', reason: 'yes' });
  const told = await watch.until(is('FREEZE_STARTED'));
  const rest = told.some(is('HOST_CREATED')) ? [] : await watch.until(is('HOST_CREATED'));
  watch.stop();
  const subjects = new Set([...told, ...rest].map(({ event }) => event?.subject));
  expect(subjects).toEqual(new Set(['hosts/h2', 'racks/r2']));
});

describe('what has happened to one record', () => {
  const typesOf = async (subject: string, more: { filter?: string; pageSize?: number } = {}) => {
    const types: string[] = [];
    let pageToken = '';
    do {
      const page = await fixture.events.listEvents({ subject, pageToken, ...more });
      types.push(...page.events.map(({ type }) => EventTypeSchema.value[type]?.localName ?? ''));
      pageToken = page.nextPageToken;
    } while (pageToken !== '');
    return types;
  };

  beforeEach(async () => {
    await fixture.hosts.createHost({ hostId: 'h1', host: { spec: specOf(1) } });
    await fixture.hosts.claimHost({ name: 'hosts/h1', reason: 'mine' });
    await fixture.hosts.unclaimHost({ name: 'hosts/h1', reason: 'not mine' });
  });

  test('is told newest first, the same as to whoever followed, in pages of any size', async () => {
    const about = 'type = claim-changed OR type = host-created';
    const expected = ['CLAIM_CHANGED', 'CLAIM_CHANGED', 'HOST_CREATED'];
    for (const pageSize of [1, 2, 100]) {
      expect(await typesOf('hosts/h1', { filter: about, pageSize })).toEqual(expected);
    }
    const { position, stop } = await watching();
    stop();
    const start = position.replace(/\.\d+/, '.0');
    const followed = await watching({ position: start, filter: `host = h1 AND (${about})` });
    let count = 0;
    const told = await followed.until((each) => typeOf(each) === 'CLAIM_CHANGED' && ++count === 2);
    followed.stop();
    const { events } = await fixture.events.listEvents({ subject: 'hosts/h1', filter: about });
    const ids = told.filter(({ kind }) => kind === Kind.EVENT).map(({ event }) => event?.id);
    expect(events.map(({ id }) => id)).toEqual(ids.toReversed());
  });

  test('is told of what is gone, and ends in a gap where older changes are not kept', async () => {
    await fixture.racks.createRack({ rackId: 'r9' });
    for (let round = 0; round < 70; round += 1) {
      const rack = { name: 'racks/r9', labels: { round: String(round) } };
      await fixture.racks.updateRack({ rack, updateMask: { paths: ['labels'] } });
    }
    await fixture.racks.deleteRack({ name: 'racks/r9' });
    expect(await typesOf('racks/r9')).toEqual(['RACK_REMOVED', 'GAP']);
    expect(await typesOf('racks/r1')).toEqual(['RACK_CREATED']);
    await fixture.fleet.freezeFleet({ reason: 'fire' });
    expect((await typesOf('fleet')).at(0)).toBe('FREEZE_STARTED');
  });

  test('is refused for an unknown record, a bad name and the page token of another', async () => {
    const list = (asked: object) => fixture.events.listEvents(asked);
    expect(await failureOf(list({ subject: 'hosts/h9' }))).toMatchObject({ kind: 'notFound' });
    for (const subject of ['', 'h1', 'credentials/bmc', 'hosts/../h1', 'tokens/admin']) {
      expect(await violatedFields(list({ subject }))).toEqual(['subject']);
    }
    expect(await violatedFields(list({ subject: 'fleet', filter: 'a = b' }))).toEqual(['filter']);
    const { nextPageToken } = await list({ subject: 'hosts/h1', pageSize: 1 });
    const other = { subject: 'racks/r1', pageToken: nextPageToken };
    expect(await violatedFields(list(other))).toEqual(['page_token']);
  });
});
