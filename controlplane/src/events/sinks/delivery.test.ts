/**
 * Deliveries to one sink on a simulated clock: what arrives, and in which order, despite failures.
 */
import { create, toBinary } from '@bufbuild/protobuf';
import {
  asIncarnation,
  asReplicaId,
  asSinkUid,
  type Event,
  EventTypeSchema,
  HostState,
  unavailable,
  store as wire,
} from '@rackwright/messages';
import type { Clock, Log } from '@rackwright/platform';
import { quietLog as log } from '@rackwright/platform/testing';
import { EventHeap, SimProcess, seededRandom } from '@rackwright/sim';
import { HISTORY_PER_KEY, openMemoryStore, type StateStore } from '@rackwright/store';
import { beforeEach, describe, expect, test } from 'vitest';
import { parseFilter } from '../../filter/index.ts';
import { measuredStore } from '../../metrics/index.ts';
import { readRecord } from '../../records/index.ts';
import { eventFields } from '../event-fields.ts';
import { positionsFrom } from '../positions.ts';
import { cursorKey } from './cursor.ts';
import { deadLetterOf, deadLettersOf } from './dead-letters.ts';
import { type DeliveredSink, SinkWorker } from './sink-worker.ts';
import { type DeliveryAttempt, DeliveryWindow, windowEventsMax } from './window.ts';

const uid = asSinkUid('sink-uid');
const quiet = () => undefined;
const retention = { historyPrefixes: ['hosts'], historyAgeMs: 1e12, logAgeMs: 1e12 };

let heap: EventHeap;
let store: StateStore;
let clock: Clock;

beforeEach(async () => {
  heap = new EventHeap();
  ({ clock } = new SimProcess('p', heap, 0, () => false));
  store = await openMemoryStore({ random: seededRandom(1), clock, retention });
});

/** The same store, with these overrides. */
function over(changes: Partial<StateStore>): StateStore {
  return { ...measuredStore(store, () => 0, quiet), ...changes };
}

async function advance(ms: number): Promise<void> {
  const untilMs = heap.nowMs + ms;
  heap.after(ms, quiet);
  await heap.run(untilMs, () => false);
}

async function putHost(id: string, state: HostState, faults: readonly string[] = []) {
  const key = `hosts.${id}`;
  const status = { state, faults: faults.map((type) => ({ type })) };
  const host = { name: `hosts/${id}`, uid: `uid-${id}`, status };
  const value = toBinary(wire.HostRecordSchema, create(wire.HostRecordSchema, { host }));
  const found = await store.get(key);
  await store.put(key, value, found.kind === 'found' ? found.revision : 'absent');
}

/** The received events, in order of arrival. */
type Arrived = { readonly id: string; readonly subject: string; readonly word: string }[];

const wordOf = (event: Event) => {
  const type = EventTypeSchema.value[event.type]?.localName ?? '';
  return event.data.case === 'faultRaised' ? `${type} ${event.data.value.fault}` : type;
};

type Answer = (event: Event) => DeliveryAttempt | Promise<DeliveryAttempt>;
const taken: DeliveryAttempt = { kind: 'delivered' };
const away: DeliveryAttempt = { kind: 'failed', problem: 'connection refused' };

interface Setting {
  readonly of?: StateStore;
  readonly replicaId?: string;
  readonly answer?: Answer;
  readonly begin?: number;
  readonly filter?: string;
  readonly log?: Log;
}

/** Starts a replica that delivers; received events are added to `arrived`. */
function deliver(arrived: Arrived, setting: Setting = {}) {
  const {
    of = store,
    replicaId = 'single',
    answer = () => taken,
    begin = 0,
    filter = '',
    log: ownLog = log,
  } = setting;
  const stopping = new AbortController();
  const counts = { delivered: 0, failed: 0, dead: 0 };
  const sink: DeliveredSink = {
    ...{ sinkId: 's', uid, begin, filter: parseFilter(filter, eventFields), attemptMs: 10_000 },
    send: async (event) => {
      const attempted = await answer(event);
      const { id, subject } = event;
      if (attempted.kind === 'delivered') arrived.push({ id, subject, word: wordOf(event) });
      return attempted;
    },
    meter: (what) => {
      counts[what] += 1;
    },
  };
  const parts = {
    store: of,
    clock,
    log: ownLog,
    replicaId: asReplicaId(replicaId),
    retryDelayMs: 1_000,
  };
  const worker = new SinkWorker(parts, sink, stopping.signal);
  const ended = worker.run();
  return { counts, worker, ended, stop: () => stopping.abort() };
}

const wordsOf = (arrived: Arrived, subject: string) =>
  arrived.filter((each) => each.subject === subject).map(({ word }) => word);

/** Without repeated events: the first arrival of each. */
const once = (arrived: Arrived) => {
  const seen = new Set<string>();
  return arrived.filter(({ id }) => !seen.has(id) && seen.add(id));
};

/** The faults of a host, one after the other. */
const faultsOf = (count: number) =>
  Array.from({ length: count }, (_, index) => `FAULT_RAISED f${index}`);

/** Sets and clears faults of hosts, `count` each, within `overMs`. */
async function bringFaults(hosts: readonly string[], count: number, overMs: number): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    for (const id of hosts) {
      const all = Array.from({ length: n + 1 }, (_, index) => `f${index}`);
      await putHost(id, HostState.NEW, all);
    }
    await advance(overMs / count);
  }
}

test('a receiver that is down for an hour gets every event, in order for each host', async () => {
  const hosts = ['h1', 'h2', 'h3'];
  const arrived: Arrived = [];
  let isDown = false;
  const { counts, stop, ended } = deliver(arrived, { answer: () => (isDown ? away : taken) });
  for (const id of hosts) await putHost(id, HostState.NEW);
  await advance(5_000);
  expect(arrived).toHaveLength(3);
  isDown = true;
  // More than the store keeps of a record regardless of age.
  const count = HISTORY_PER_KEY + 20;
  await bringFaults(hosts, count, 3_600_000);
  expect(arrived).toHaveLength(3);
  expect(counts.failed).toBeLessThan(200);
  isDown = false;
  await advance(120_000);
  stop();
  await advance(1_000);
  await ended;
  for (const id of hosts) {
    expect(wordsOf(arrived, `hosts/${id}`)).toEqual(['HOST_CREATED', ...faultsOf(count)]);
  }
  expect(await deadLettersOf(store, uid)).toEqual([]);
});

test('a control plane that is killed at any boundary leaves nothing out', async () => {
  const hosts = ['h1', 'h2'];
  for (const id of hosts) await putHost(id, HostState.NEW);
  await bringFaults(hosts, 5, 1_000);
  for (let boundary = 1; ; boundary += 1) {
    const arrived: Arrived = [];
    let left = boundary;
    /** After the kill, actions have no effect. */
    const alive = async <T>(act: () => Promise<T>): Promise<T> => {
      left -= 1;
      return left >= 0 ? act() : new Promise<T>(() => undefined);
    };
    const own = `${uid}-${boundary}`;
    const dying = over({ put: (...of) => alive(() => store.put(...of)) });
    const first = startAs(own, arrived, dying, (event) => alive(async () => arrivedNow(event)));
    await advance(30_000);
    const wasKilled = left < 0;
    const second = startAs(own, arrived, store);
    await advance(30_000);
    second.stop();
    first.stop();
    await advance(1_000);
    for (const id of hosts) {
      const words = once(arrived).filter(({ subject }) => subject === `hosts/${id}`);
      expect(
        words.map(({ word }) => word),
        `killed at ${boundary}`,
      ).toEqual(['HOST_CREATED', ...faultsOf(5)]);
    }
    if (!wasKilled) {
      // Each of the twelve events and the writes of the cursor.
      expect(boundary).toBeGreaterThan(12);
      break;
    }
    expect(boundary).toBeLessThan(100);
  }
});

test.each([
  ['the store is away', unavailable('STORE_UNAVAILABLE', 'come again'), 0],
  ['its record is damaged', new Error('damaged'), 1],
])('a cursor cannot be released when %s: only another error is logged', async (_, why, lines) => {
  let isEnding = false;
  const put: StateStore['put'] = (...of) => (isEnding ? Promise.reject(why) : store.put(...of));
  const told: unknown[] = [];
  const keeping = { ...log, warn: (...line: unknown[]) => void told.push(line.at(-1)) };
  const one = deliver([], { of: over({ put }), log: keeping });
  await advance(1_000);
  isEnding = true;
  one.stop();
  await one.ended;
  expect(told).toEqual(lines === 0 ? [] : [why]);
});

const arrivedNow = (_event: Event): DeliveryAttempt => taken;

/** As `deliver`, to another sink. */
function startAs(own: string, arrived: Arrived, of: StateStore, answer: Answer = () => taken) {
  const stopping = new AbortController();
  const sink: DeliveredSink = {
    ...{ sinkId: own, uid: asSinkUid(own), begin: 0, attemptMs: 10_000, meter: quiet },
    filter: parseFilter('', eventFields),
    send: async (event) => {
      const attempted = await answer(event);
      arrived.push({ id: event.id, subject: event.subject, word: wordOf(event) });
      return attempted;
    },
  };
  const parts = { store: of, clock, log, replicaId: asReplicaId('single'), retryDelayMs: 1_000 };
  void new SinkWorker(parts, sink, stopping.signal).run();
  return { stop: () => stopping.abort() };
}

describe('of two replicas', () => {
  const shared = () => over({ isShared: true });

  test('one replica delivers, and the other one goes on when it is gone', async () => {
    const arrived: Arrived = [];
    const one = deliver(arrived, { of: shared(), replicaId: 'one' });
    const two = deliver(arrived, { of: shared(), replicaId: 'two' });
    await putHost('h1', HostState.NEW);
    await advance(200_000);
    await putHost('h1', HostState.MANAGEABLE);
    await advance(10_000);
    expect(arrived.map(({ word }) => word)).toEqual(['HOST_CREATED', 'HOST_STATE_CHANGED']);
    expect(Math.min(one.counts.delivered, two.counts.delivered)).toBe(0);
    one.stop();
    await advance(1_000);
    await putHost('h1', HostState.AVAILABLE);
    await advance(100_000);
    two.stop();
    expect(once(arrived).map(({ word }) => word)).toEqual([
      'HOST_CREATED',
      'HOST_STATE_CHANGED',
      'HOST_STATE_CHANGED',
    ]);
    expect(two.counts.delivered).toBeGreaterThan(0);
  });

  test('a replica that was suspended for too long holds the cursor again first', async () => {
    const acts: string[] = [];
    let suspendedMs = 0;
    const usual = clock;
    clock = {
      nowMs: () => usual.nowMs() + suspendedMs,
      suspendAwareMs: () => usual.suspendAwareMs() + suspendedMs,
      after: (...of) => usual.after(...of),
    };
    const of = over({
      isShared: true,
      put: (key, ...more) => {
        if (key === cursorKey(uid)) acts.push('holds');
        return store.put(key, ...more);
      },
    });
    const answer: Answer = () => {
      acts.push('sends');
      return taken;
    };
    const { stop } = deliver([], { of, replicaId: 'one', answer });
    await putHost('h1', HostState.NEW);
    await advance(5_000);
    suspendedMs = 120_000;
    acts.length = 0;
    await putHost('h1', HostState.MANAGEABLE);
    await advance(5_000);
    stop();
    expect(acts.slice(0, 2)).toEqual(['holds', 'sends']);
  });

  test('a replica that the store has lost begins nothing when its time is over', async () => {
    const arrived: Arrived = [];
    let isCut = false;
    const cut = over({
      isShared: true,
      put: (...of) => (isCut ? new Promise(() => undefined) : store.put(...of)),
    });
    deliver(arrived, { of: cut, replicaId: 'one' });
    await putHost('h1', HostState.NEW);
    await advance(5_000);
    isCut = true;
    await advance(61_000);
    const before = arrived.length;
    await putHost('h1', HostState.MANAGEABLE);
    await advance(5_000);
    expect(arrived).toHaveLength(before);
    const other: Arrived = [];
    const two = deliver(other, { of: shared(), replicaId: 'two' });
    await advance(100_000);
    two.stop();
    expect(wordsOf(other, 'hosts/h1')).toContain('HOST_STATE_CHANGED');
  });
});

test('a receiver that never answers costs a bounded number of requests and of events', async () => {
  let open = 0;
  let most = 0;
  const answer: Answer = () =>
    new Promise((resolve) => {
      open += 1;
      most = Math.max(most, open);
      clock.after(10_000, () => {
        open -= 1;
        resolve(away);
      });
    });
  let reads = 0;
  const counted = over({
    async *watch(...of) {
      for await (const change of store.watch(...of)) {
        reads += 1;
        yield change;
      }
    },
  });
  const hanging = deliver([], { of: counted, answer });
  for (let n = 0; n < 3 * windowEventsMax; n += 1) await putHost(`h${n}`, HostState.NEW);
  await advance(3_600_000);
  hanging.stop();
  await advance(20_000);
  await hanging.ended;
  expect(most).toBeLessThanOrEqual(4);
  expect(reads).toBeGreaterThanOrEqual(windowEventsMax);
  expect(reads).toBeLessThanOrEqual(windowEventsMax + 10);
  expect(hanging.counts.delivered).toBe(0);
});

test('an event that is refused becomes a dead letter, and keeps nothing else waiting', async () => {
  const arrived: Arrived = [];
  const answer: Answer = (event) =>
    wordOf(event) === 'FAULT_RAISED f0' && event.subject === 'hosts/h1'
      ? { kind: 'refused', problem: 'answered 422' }
      : taken;
  const { counts, stop } = deliver(arrived, { answer });
  for (const id of ['h1', 'h2']) await putHost(id, HostState.NEW);
  await bringFaults(['h1', 'h2'], 3, 3_000);
  await advance(60_000);
  stop();
  expect(wordsOf(arrived, 'hosts/h1')).toEqual(['HOST_CREATED', ...faultsOf(3).slice(1)]);
  expect(wordsOf(arrived, 'hosts/h2')).toEqual(['HOST_CREATED', ...faultsOf(3)]);
  const letters = (await deadLettersOf(store, uid)).map((entry) => deadLetterOf(store, entry));
  expect(letters.map(({ problem, attempts }) => [problem, attempts])).toEqual([
    ['answered 422', 3],
  ]);
  expect(counts.dead).toBe(1);
});

test('an event that a receiver fails at while it takes others becomes a dead letter', async () => {
  const arrived: Arrived = [];
  const answer: Answer = ({ subject }) => (subject === 'hosts/h1' ? away : taken);
  const { stop } = deliver(arrived, { answer });
  await putHost('h1', HostState.NEW);
  await bringFaults(['h2'], 40, 1_200_000);
  stop();
  expect(wordsOf(arrived, 'hosts/h2')).toEqual(['HOST_CREATED', ...faultsOf(40)].slice(0, 41));
  expect(await deadLettersOf(store, uid)).toHaveLength(1);
});

test('an event that failed while the receiver was away is kept when it is back', async () => {
  const arrived: Arrived = [];
  let isDown = true;
  let failsOnce = true;
  const answer: Answer = ({ subject }) => {
    if (isDown) return away;
    const fails = subject === 'hosts/h1' && failsOnce;
    if (fails) failsOnce = false;
    return fails ? away : taken;
  };
  const { stop } = deliver(arrived, { answer });
  for (const id of ['h2', 'h1']) await putHost(id, HostState.NEW);
  await advance(3_600_000);
  isDown = false;
  await advance(600_000);
  stop();
  expect(arrived.map(({ subject }) => subject).toSorted()).toEqual(['hosts/h1', 'hosts/h2']);
  expect(failsOnce).toBe(false);
  expect(await deadLettersOf(store, uid)).toEqual([]);
});

test('a dead letter is delivered once more when it is asked for', async () => {
  const arrived: Arrived = [];
  let isBroken = true;
  const answer: Answer = () => (isBroken ? { kind: 'refused', problem: '400' } : taken);
  const first = deliver(arrived, { answer });
  await putHost('h1', HostState.NEW);
  await advance(60_000);
  first.stop();
  await advance(1_000);
  const [entry] = await deadLettersOf(store, uid);
  if (entry === undefined) throw new Error('there is no dead letter');
  isBroken = false;
  const letter = { ...deadLetterOf(store, entry), replay: true };
  const value = toBinary(wire.DeadLetterRecordSchema, letter);
  await store.put(entry.key, value, entry.revision);
  const second = deliver(arrived, { answer });
  await advance(5_000);
  second.stop();
  expect(arrived.map(({ word }) => word)).toEqual(['HOST_CREATED']);
  expect(await deadLettersOf(store, uid)).toEqual([]);
});

test('only events that match the filter are sent; the cursor moves past the others', async () => {
  const arrived: Arrived = [];
  const { stop } = deliver(arrived, { filter: 'type = host-state-changed' });
  await putHost('h1', HostState.NEW);
  await bringFaults(['h1'], 10, 10_000);
  await putHost('h1', HostState.MANAGEABLE, []);
  await advance(10_000);
  stop();
  expect(arrived.map(({ word }) => word)).toEqual(['HOST_STATE_CHANGED']);
  const kept = await readRecord(store, wire.EventCursorRecordSchema, cursorKey(uid));
  const host = await store.get('hosts.h1');
  expect(kept?.record.revisions['hosts']).toBe(BigInt(host.revision ?? 0));
});

test('a window begins at the first undelivered event, and is bounded', () => {
  const window = new DeliveryWindow(positionsFrom({ incarnation: asIncarnation('i') }, 0));
  const event = (subject: string) =>
    ({ event: { subject, id: subject }, labels: {} }) as never as Parameters<
      DeliveryWindow['add']
    >[1][number];
  window.add('hosts', [event('a')], 1, 5);
  const first = window.take(0);
  for (let n = 2; n < 10_000; n += 1) window.add('hosts', [], n, 6);
  window.add('hosts', [event('b')], 10_000, 7);
  expect(window.oldestMs).toBe(5);
  const second = window.take(0);
  if (first === undefined || second === undefined) throw new Error('nothing to send');
  expect(window.attempted(second, { kind: 'delivered' }, 0)).toBe('done');
  expect(window.positions.revisions).toEqual({});
  expect(window.attempted(first, { kind: 'delivered' }, 0)).toBe('done');
  expect(window.positions.revisions).toEqual({ hosts: 10_000 });
  expect(window.waiting).toBe(0);
  expect(window.oldestMs).toBeUndefined();
});
