/** Events follow from the store alone: none is missed, and the same change has the same events. */
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import {
  asIncarnation,
  asRunNumber,
  EventSchema,
  EventTypeSchema,
  FaultSeverity,
  HostState,
  RunKind,
  RunOutcome,
  RunPhase,
  store as wire,
} from '@rackwright/messages';
import { afterMicrotasks } from '@rackwright/platform/testing';
import { seededRandom } from '@rackwright/sim';
import { HISTORY_PER_KEY, openMemoryStore, type StateStore } from '@rackwright/store';
import { beforeEach, describe, expect, test } from 'vitest';
import { eventFeed, type FeedStore } from './feed.ts';
import { formatPositions, type Positions, parsePositions, positionsFrom } from './positions.ts';

let store: StateStore;

beforeEach(async () => {
  store = await openMemoryStore({ random: seededRandom(1) });
});

const revisions = new Map<string, number>();

async function put(key: string, value: Uint8Array): Promise<number> {
  const found = await store.get(key);
  const written = await store.put(key, value, found.kind === 'found' ? found.revision : 'absent');
  if (written.kind !== 'ok') throw new Error(`${key} was not written`);
  revisions.set(key, written.revision);
  return written.revision;
}

type Init = Omit<MessageInitShape<typeof wire.HostRecordSchema>, '$typeName' | 'host'>;

function putHost(id: string, status: object, more: Init = {}): Promise<number> {
  const host = {
    ...{ name: `hosts/${id}`, uid: `uid-${id}`, labels: { site: 'fra1' } },
    ...{ spec: { rack: 'racks/r1' }, status },
  };
  const record = create(wire.HostRecordSchema, { host, ...more });
  return put(`hosts.${id}`, toBinary(wire.HostRecordSchema, record));
}

/** All events after `from`, up to the present end of the store. */
async function toldAfter(from: Positions, of: FeedStore = store) {
  const stopping = new AbortController();
  const told: { subject: string; type: string; id: string; value: unknown }[] = [];
  const feed = eventFeed(of, from, stopping.signal);
  const done = (async () => {
    for await (const { events } of feed) {
      for (const { event } of events) {
        const { subject, type, id, data } = event;
        told.push({
          subject,
          type: EventTypeSchema.value[type]?.localName ?? '',
          id,
          value: data.value,
        });
      }
    }
  })();
  await afterMicrotasks(2_000);
  stopping.abort();
  await done;
  return told;
}

const types = (told: Awaited<ReturnType<typeof toldAfter>>, subject = 'hosts/h1') =>
  told.filter((each) => each.subject === subject).map(({ type }) => type);

describe('the events of a host', () => {
  test('are those of each step of its life, in order', async () => {
    const state = (each: HostState, more: object = {}) => ({ state: each, ...more });
    const run = { kind: RunKind.CLEAN, number: 1n, phase: RunPhase.RUNNING };
    const failed = { ...run, phase: RunPhase.ENDED, outcome: RunOutcome.FAILED };
    const fault = { type: 'bmcUnreachable', message: 'no', severity: FaultSeverity.ERROR };
    await putHost('h1', state(HostState.NEW));
    await putHost('h1', state(HostState.MANAGEABLE, { poweredOn: false }));
    await putHost('h1', state(HostState.MANAGEABLE, { poweredOn: true, run }), { runCount: 1n });
    await putHost('h1', state(HostState.MANAGEABLE, { poweredOn: true, run, faults: [fault] }), {
      runCount: 1n,
    });
    await putHost('h1', state(HostState.AVAILABLE, { poweredOn: true, run: failed }), {
      runCount: 1n,
    });
    await store.delete('hosts.h1', revisions.get('hosts.h1') ?? 0);
    const told = await toldAfter(positionsFrom(store, 0));
    expect(types(told)).toEqual([
      'HOST_CREATED',
      ...['HOST_STATE_CHANGED', 'POWER_CHANGED'],
      ...['POWER_CHANGED', 'RUN_STARTED'],
      'FAULT_RAISED',
      ...['RUN_ENDED', 'HOST_STATE_CHANGED', 'FAULT_CLEARED'],
      'HOST_REMOVED',
    ]);
    expect(new Set(told.map(({ id }) => id)).size).toBe(told.length);
  });

  test('name both ends of a run that came and went between two records', async () => {
    const ended = (number: bigint) => ({
      ...{
        kind: RunKind.VERIFY,
        number: asRunNumber(number),
        phase: RunPhase.ENDED,
        outcome: RunOutcome.SUCCEEDED,
      },
    });
    const running = { kind: RunKind.CLEAN, number: asRunNumber(3), phase: RunPhase.RUNNING };
    await putHost('h1', { run: { ...ended(1n), phase: RunPhase.RUNNING } }, { runCount: 1n });
    const since = await store.latestRevision();
    const finishedRuns = [ended(1n), ended(2n)];
    await putHost('h1', { run: running }, { runCount: 3n, finishedRuns });
    const told = await toldAfter(positionsFrom(store, since));
    expect(told.map(({ type, value }) => [type, (value as { number: bigint }).number])).toEqual([
      ['RUN_ENDED', 1n],
      ['RUN_STARTED', 2n],
      ['RUN_ENDED', 2n],
      ['RUN_STARTED', 3n],
    ]);
  });
});

test('the same events have the same ids, whoever derives them, from wherever', async () => {
  for (const state of [HostState.NEW, HostState.MANAGEABLE, HostState.AVAILABLE]) {
    await putHost('h1', { state });
    await putHost('h2', { state });
  }
  const all = await toldAfter(positionsFrom(store, 0));
  const since = Number(all[2]?.id.split('_')[1]);
  const later = await toldAfter(positionsFrom(store, since));
  expect(later).toEqual(all.filter(({ id }) => Number(id.split('_')[1]) > since));
  expect(later.length).toBeGreaterThan(0);
});

describe('where the store no longer has every change', () => {
  const faulty = (n: number) => ({ faults: [{ type: `f${n}` }] });

  test('its past tells what is kept, and a gap that it is to be read again', async () => {
    const kept = { historyPrefixes: ['hosts'], historyAgeMs: 1e9, logAgeMs: 1e9 };
    const clock = { nowMs: () => 1_000 };
    store = await openMemoryStore({ random: seededRandom(1), clock, retention: kept });
    await putHost('h1', faulty(0));
    const since = await store.latestRevision();
    const changes = HISTORY_PER_KEY + 10;
    for (let n = 1; n <= changes; n += 1) await putHost('h1', faulty(n));
    const told = await toldAfter(positionsFrom(store, since), compactingOnce(store));
    const raised = told.filter(({ type }) => type === 'FAULT_RAISED');
    expect(raised.map(({ value }) => (value as { fault: string }).fault)).toEqual(
      Array.from({ length: changes }, (_, index) => `f${index + 1}`),
    );
    expect(told.filter(({ type }) => type === 'GAP').map(({ subject }) => subject)).toEqual([
      'hosts',
    ]);
  });

  test('a record whose past is gone says so before what is kept of it', async () => {
    await putHost('h1', faulty(0));
    const since = await store.latestRevision();
    for (let n = 1; n <= 2 * HISTORY_PER_KEY; n += 1) await putHost('h1', faulty(n));
    const told = await toldAfter(positionsFrom(store, since));
    expect(types(told)[0]).toBe('GAP');
    expect(types(told).filter((type) => type === 'FAULT_RAISED').length).toBeGreaterThan(
      HISTORY_PER_KEY / 2,
    );
    expect(types(told, 'hosts')).toEqual(['GAP']);
    expect(new Set(told.map(({ id }) => id)).size).toBe(told.length);
  });

  test('a watch that is left, or that breaks off, leaves none behind', async () => {
    const signals: (AbortSignal | undefined)[] = [];
    const breaking: FeedStore = {
      incarnation: store.incarnation,
      list: (...of) => store.list(...of),
      historyBackwards: (...of) => store.historyBackwards(...of),
      async *watch(from, prefix, signal) {
        signals.push(signal);
        if (prefix === 'pools') throw new Error('the store is away');
        yield* store.watch(from, prefix, signal);
      },
    };
    const { signal } = new AbortController();
    const reading = async () => {
      for await (const _ of eventFeed(breaking, positionsFrom(store, 0), signal)) break;
    };
    await expect(reading()).rejects.toThrow('the store is away');
    expect(signals.map((each) => each?.aborted)).toEqual(signals.map(() => true));
    expect(signals.length).toBeGreaterThan(5);
  });

  test('later events follow without a gap', async () => {
    await putHost('h1', faulty(0));
    const since = await store.latestRevision();
    for (let n = 1; n <= 2 * HISTORY_PER_KEY; n += 1) await putHost('h1', faulty(n));
    const stopping = new AbortController();
    const types: string[] = [];
    const done = (async () => {
      for await (const { events } of eventFeed(
        store,
        positionsFrom(store, since),
        stopping.signal,
      )) {
        for (const { event } of events)
          types.push(EventTypeSchema.value[event.type]?.localName ?? '');
      }
    })();
    await afterMicrotasks(2_000);
    const before = types.length;
    await putHost('h1', { state: HostState.NEW });
    await putHost('h1', { state: HostState.MANAGEABLE });
    await afterMicrotasks(2_000);
    stopping.abort();
    await done;
    expect(types.slice(before)).toEqual([
      ...['HOST_STATE_CHANGED', 'FAULT_CLEARED'],
      'HOST_STATE_CHANGED',
    ]);
  });
});

/** Like a driver whose watch keeps less than its history. */
function compactingOnce(inner: StateStore): FeedStore {
  let compacted = false;
  return {
    incarnation: inner.incarnation,
    list: (...of) => inner.list(...of),
    historyBackwards: (...of) => inner.historyBackwards(...of),
    async *watch(from, prefix, signal) {
      if (prefix === 'hosts' && !compacted) {
        compacted = true;
        yield { kind: 'compacted', reason: 'trimmed' };
        return;
      }
      yield* inner.watch(from, prefix, signal);
    },
  };
}

test('a record that cannot be read is a gap, and stops nothing', async () => {
  await put('hosts.h1', Uint8Array.of(255, 255, 255));
  await putHost('h2', { state: HostState.NEW });
  const told = await toldAfter(positionsFrom(store, 0));
  expect(types(told)).toEqual(['GAP']);
  expect(types(told, 'hosts/h2')).toEqual(['HOST_CREATED']);
});

test('positions read back as they were written, and other texts are refused', () => {
  const positions = {
    incarnation: asIncarnation('x_-1'),
    since: 3,
    revisions: { hosts: 7, racks: 4 },
  };
  expect(parsePositions(formatPositions(positions))).toEqual(positions);
  for (const text of ['', 'x', 'x.', '.1', 'x.1.hosts', 'x.1.hosts-', 'x.1;drop', 'x.1.a-1.']) {
    expect(parsePositions(text), text).toBeUndefined();
  }
  expect(parsePositions('x.1.noMore-5')).toEqual({ incarnation: 'x', since: 1, revisions: {} });
});

test('a password never comes into an event', async () => {
  await put('credentials.bmc', new TextEncoder().encode('secret'));
  await put('tokens.t', new TextEncoder().encode('secret'));
  expect(await toldAfter(positionsFrom(store, 0))).toEqual([]);
});

test('each type of an event has data of its own, and none is without a type', () => {
  const cases = EventSchema.oneofs[0]?.fields.map(({ name }) => name.toUpperCase());
  const names = EventTypeSchema.values.map(({ localName }) => localName);
  expect(names.filter((name) => name !== 'UNSPECIFIED').sort()).toEqual(cases?.sort());
});
