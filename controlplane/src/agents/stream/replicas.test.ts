/** Two replicas on one store: one holds the agent's stream, and neither writes without need. */
import { create } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { agent, HostGoal, HostState, RunOutcome, RunPhase, store } from '@rackwright/messages';
import { type MemoryCall, type MemoryFault, type StateStore, storeKey } from '@rackwright/store';
import { describe, expect, test } from 'vitest';
import { failed } from '../../host/testing/bench.ts';
import { lateWatch } from '../../host/testing/late-watch.ts';
import {
  connectAgent,
  type PlainAgent,
  proved,
  toAvailable,
} from '../../host/testing/plain-agent.ts';
import { type Replica, type Rig, rigWith } from '../../host/testing/rig.ts';

const minuteMs = 60_000;
const resyncIntervalMs = minuteMs;

async function two() {
  const rig = rigWith({ goal: HostGoal.MANAGEABLE }, { goal: HostGoal.MANAGEABLE });
  const a = await rig.replica({ id: 'a', resyncIntervalMs });
  const b = await rig.replica({ id: 'b', resyncIntervalMs });
  return { rig, a, b };
}

/** Revisions of hosts that were written during this time. */
async function writtenWhile(rig: Rig, work: Promise<void> | (() => Promise<void>)) {
  const before = rig.lastRevision('hosts');
  await (typeof work === 'function' ? work() : work);
  return rig.lastRevision('hosts') - before;
}

/** A store whose watches report nothing while they are held. */
function lateWatches() {
  let gate = Promise.withResolvers<void>();
  gate.resolve();
  const wrapStore = (store: StateStore) => {
    const watch = store.watch.bind(store);
    store.watch = async function* late(...args) {
      for await (const change of watch(...args)) {
        await gate.promise;
        yield change;
      }
    };
    return store;
  };
  const hold = () => (gate = Promise.withResolvers());
  return { wrapStore, hold, release: () => gate.resolve() };
}

const stillAtIt = {
  case: 'continuing' as const,
  value: create(agent.ContinuingSchema, { text: '10 %', percent: 10 }),
};

const waiting = (rig: Rig) => rig.status().run?.waiting?.reason;

describe('while one replica holds the stream', () => {
  test('an order under way costs no revision, however long it takes', async () => {
    const { rig, a } = await two();
    const plain = await connectAgent(rig, a);
    expect(plain.ids()).toHaveLength(2);
    await plain.beat(2 * minuteMs);
    expect(await writtenWhile(rig, plain.beat(2 * minuteMs))).toBe(0);
    expect(rig.status().run?.phase).toBe(RunPhase.RUNNING);
  });

  test('idle hosts cost no revision, and the rack one a minute at the most', async () => {
    const { rig, a } = await two();
    const plain = await connectAgent(rig, a);
    await plain.report(proved(), plain.last('u1'));
    await plain.report(proved(2), plain.last('u2'));
    await plain.beat(2 * minuteMs);
    const before = rig.lastRevision();
    expect(await writtenWhile(rig, plain.beat(10 * minuteMs))).toBe(0);
    expect(rig.lastRevision() - before).toBeLessThanOrEqual(10);
    expect(rig.rack()?.sessionReplica).toBe('a');
  });

  test('the other one takes requests, and the order goes out', async () => {
    const { rig, a, b } = await two();
    const plain = await connectAgent(rig, a);
    await plain.report(proved(), plain.last('u1'));
    expect(await b.request({ kind: 'verify' })).toMatchObject({ kind: 'accepted' });
    expect(plain.last('u1').id).toBe('u1/2/0/1');
    await plain.report(proved(), plain.last('u1'));
    expect(rig.status()).toMatchObject({ state: HostState.MANAGEABLE });
  });

  test('an abort that the other one takes reaches the agent', async () => {
    const { rig, a, b } = await two();
    const plain = await connectAgent(rig, a);
    await b.request({ kind: 'abort', reason: 'wrong host' });
    await rig.advance(100);
    expect(plain.ids()).toEqual(['u1/1/0/1', 'u2/1/0/1', 'u1/1/0/1/cancel']);
    await plain.beat(2 * minuteMs);
    expect(plain.ids()).toHaveLength(3);
    await plain.report(failed('cancelled'), plain.last('u1'));
    expect(rig.status().run?.outcome).toBe(RunOutcome.CANCELLED);
  });

  test('an abort reaches the agent also when a refused request reads it first', async () => {
    const rig = rigWith({ goal: HostGoal.MANAGEABLE });
    const late = lateWatches();
    const a = await rig.replica({ id: 'a', resyncIntervalMs, wrapStore: late.wrapStore });
    const b = await rig.replica({ id: 'b', resyncIntervalMs });
    const plain = await connectAgent(rig, a);
    late.hold();
    await b.request({ kind: 'abort', reason: 'wrong host' });
    expect(await a.request({ kind: 'verify' })).toMatchObject({ kind: 'refused' });
    expect(plain.ids()).toEqual(['u1/1/0/1']);
    late.release();
    await rig.advance(100);
    expect(plain.ids()).toEqual(['u1/1/0/1', 'u1/1/0/1/cancel']);
  });

  test('an abort reaches the agent also when the store was away just then', async () => {
    let away = false;
    const rig = rigWith({ goal: HostGoal.MANAGEABLE });
    const faults = ({ kind, key }: MemoryCall): MemoryFault => {
      const lost = away && kind === 'get' && key === 'facts.h1';
      return { kind: lost ? 'requestLost' : 'none' };
    };
    const a = await rig.replica({ id: 'a', resyncIntervalMs: 60 * minuteMs, faults });
    const b = await rig.replica({ id: 'b', resyncIntervalMs: 60 * minuteMs });
    const plain = await connectAgent(rig, a);
    away = true;
    await b.request({ kind: 'abort', reason: 'wrong host' });
    expect(plain.ids()).toEqual(['u1/1/0/1']);
    away = false;
    await rig.advance(10_000);
    expect(plain.ids()).toContain('u1/1/0/1/cancel');
  });

  test.each([
    ['a report', (plain: PlainAgent) => plain.report(stillAtIt, plain.last('u1'))],
    ['a look', async (_plain: PlainAgent, { hosts }: Replica) => hosts.wake('h1')],
  ])('an abort reaches the agent once, also when %s finds it first', async (_name, finds) => {
    const rig = rigWith({ goal: HostGoal.MANAGEABLE });
    const { gate, wrapStore } = lateWatch();
    const a = await rig.replica({ id: 'a', resyncIntervalMs, wrapStore });
    const b = await rig.replica({ id: 'b', resyncIntervalMs });
    const plain = await connectAgent(rig, a);
    gate.close();
    await b.request({ kind: 'abort', reason: 'wrong host' });
    expect(plain.ids()).toEqual(['u1/1/0/1']);
    await finds(plain, a);
    await rig.advance(100);
    expect(plain.ids()).toEqual(['u1/1/0/1', 'u1/1/0/1/cancel']);
    await plain.beat(2 * minuteMs);
    expect(plain.ids()).toHaveLength(2);
  });

  test('a deletion that the other one takes is asked of the agent, and carried out', async () => {
    const { rig, a, b } = await two();
    const plain = await connectAgent(rig, a);
    await plain.report(proved(), plain.last('u1'));
    await b.request({ kind: 'delete', reason: 'sold' });
    await rig.advance(100);
    expect(plain.of('forget').map(({ hostUid }) => hostUid)).toEqual(['u1']);
    await plain.say({ case: 'hostForgotten', value: { hostUid: 'u1' } });
    await rig.advance(100);
    expect(rig.disk.changesOf('hosts.h1').at(-1)?.kind).toBe('delete');
    expect(a.hosts.hostIdsOfRack('r1')).toEqual(['h2']);
    expect(b.hosts.hostIdsOfRack('r1')).toEqual(['h2']);
  });

  test('the way to available is one run of each kind', async () => {
    const rig = rigWith({});
    const a = await rig.replica({ id: 'a', resyncIntervalMs });
    await rig.replica({ id: 'b', resyncIntervalMs });
    const plain = await connectAgent(rig, a);
    await toAvailable(rig, plain);
    expect(rig.status().state).toBe(HostState.AVAILABLE);
    expect(rig.record().runCount).toBe(3n);
    expect(await writtenWhile(rig, plain.beat(5 * minuteMs))).toBe(0);
  });
});

describe('when the agent is away from both', () => {
  async function away(leave: (plain: PlainAgent) => Promise<void> = (plain) => plain.cut()) {
    const { rig, a, b } = await two();
    const plain = await connectAgent(rig, a);
    await plain.heartbeat();
    await leave(plain);
    return { rig, a, b, plain };
  }

  test('one replica says once that the agent is away', async () => {
    const { rig } = await away();
    await rig.advance(2 * minuteMs);
    expect(rig.rack()?.sessionReplica).toBe('');
    expect(waiting(rig)).toBe('agent');
    expect(await writtenWhile(rig, () => rig.advance(10 * minuteMs))).toBe(0);
  });

  test('a replica says that a dead one’s agent is away, once the hint has expired', async () => {
    const { rig, a, b } = await two();
    await connectAgent(rig, a);
    a.kill();
    expect(rig.rack()?.sessionReplica).toBe('a');
    await rig.advance(minuteMs);
    expect(waiting(rig)).toBeUndefined();
    await rig.advance(3 * minuteMs);
    expect(waiting(rig)).toBe('agent');
    expect(await writtenWhile(rig, () => rig.advance(10 * minuteMs))).toBe(0);
    const next = await connectAgent(rig, b, { journal: { id: 'j1', generation: 1n } });
    expect(next.ids()).toEqual(['u1/1/0/2', 'u2/1/0/2']);
    expect(waiting(rig)).toBeUndefined();
    expect(rig.rack()?.sessionReplica).toBe('b');
  });

  test('an agent that moves from one to the other is not said to be away', async () => {
    const { rig, b } = await away();
    const next = await connectAgent(rig, b);
    await next.beat(3 * minuteMs);
    expect(rig.rack()?.sessionReplica).toBe('b');
    expect(waiting(rig)).toBeUndefined();
    await next.report(proved(), next.last('u1'));
    expect(rig.status().state).toBe(HostState.MANAGEABLE);
  });
});

test('the hint is renewed while the session lives', async () => {
  const { rig, a } = await two();
  const plain = await connectAgent(rig, a);
  await plain.beat(10 * minuteMs);
  const time = rig.rack()?.sessionTime;
  const ageMs = rig.clock.nowMs() - (time === undefined ? 0 : timestampMs(time));
  expect(ageMs).toBeLessThan(2 * minuteMs);
});

test('a hint that the record has lost is back by the next heartbeat', async () => {
  const { rig, a } = await two();
  const plain = await connectAgent(rig, a);
  await plain.heartbeat();
  const key = storeKey('racks', 'r1');
  const record = create(store.RackRecordSchema, rig.rack());
  record.sessionReplica = '';
  rig.put(key, store.RackRecordSchema, record);
  await plain.heartbeat();
  expect(rig.rack()?.sessionReplica).toBe('a');
  await plain.beat(minuteMs);
  expect(waiting(rig)).toBeUndefined();
  expect(await writtenWhile(rig, plain.beat(minuteMs))).toBe(0);
});

describe('two agents of one rack, at two replicas', () => {
  const original = { id: 'j1', generation: 3n };

  test('the second one, with another or an older journal, is refused and shown', async () => {
    const { rig, a, b } = await two();
    await connectAgent(rig, a, { journal: original });
    for (const journal of [
      { id: 'j2', generation: 9n },
      { ...original, generation: 2n },
    ]) {
      const clone = await connectAgent(rig, b, { journal });
      expect(clone.of('refused').map(({ reason }) => reason)).toEqual(['duplicateAgent']);
      expect(rig.rack()?.rack?.status?.duplicateAgent).toContain('connected to replica a');
      expect(rig.rack()).toMatchObject({ journal: original, sessionReplica: 'a' });
    }
  });

  test('the second one is taken in once the first replica has been silent for long', async () => {
    const { rig, a, b } = await two();
    await connectAgent(rig, a, { journal: original });
    a.kill();
    await rig.advance(2 * minuteMs);
    const next = await connectAgent(rig, b, { journal: { id: 'j2', generation: 1n } });
    expect(next.of('welcome')).toHaveLength(1);
    expect(rig.rack()?.rack?.status?.duplicateAgent).toBe('');
  });

  test('a session that another replica has taken over gets no lease any more', async () => {
    const { rig, a, b } = await two();
    const first = await connectAgent(rig, a, { journal: original });
    await first.heartbeat();
    expect(first.of('leaseRenewal')).toHaveLength(1);
    const second = await connectAgent(rig, b, { journal: { ...original, generation: 4n } });
    await first.heartbeat();
    await second.heartbeat();
    expect(first.of('leaseRenewal')).toHaveLength(1);
    expect(second.of('leaseRenewal')).toHaveLength(1);
    expect(rig.rack()?.sessionReplica).toBe('b');
  });

  test('only the session that the record names gets a lease, in one agent’s life', async () => {
    const { rig, a, b } = await two();
    const journal = { ...original, life: 7n };
    const first = await connectAgent(rig, a, { journal });
    const second = await connectAgent(rig, b, { journal });
    expect(rig.rack()?.sessionReplica).toBe('b');
    await first.heartbeat();
    await second.heartbeat();
    expect(first.of('leaseRenewal')).toEqual([]);
    expect(second.of('leaseRenewal')).toHaveLength(1);
  });

  test('an operation sent to a newer session is not lost for the older half-open one', async () => {
    const { rig, a, b } = await two();
    await connectAgent(rig, a, { journal: original });
    const second = await connectAgent(rig, b, { journal: { ...original, generation: 4n } });
    // The replica with the old stream reconciles its hosts as well.
    await rig.advance(3 * resyncIntervalMs);
    expect(second.ids()).toEqual(['u1/1/0/1', 'u2/1/0/1']);
    expect(rig.status().run?.steps[0]).toMatchObject({ attempt: 1 });
  });
});

test('an observer hears of an agent that connects, and of progress, until it cancels', async () => {
  const rig = rigWith({ goal: HostGoal.MANAGEABLE });
  const replica = await rig.replica({ id: 'a', resyncIntervalMs });
  const { hosts } = replica;
  const told: string[] = [];
  const cancel = hosts.onServedChange({
    agentChanged: (rackId) => told.push(`${rackId} ${hosts.isAgentConnected(rackId)}`),
    progressChanged: (hostId) => told.push(`${hostId} ${hosts.progressOf(hostId)?.percent}`),
  });
  const plain = await connectAgent(rig, replica);
  await plain.report(stillAtIt, plain.last('u1'));
  expect(told).toEqual(['r1 true', 'h1 10']);
  cancel();
  await plain.report(stillAtIt, plain.last('u1'));
  expect(told).toHaveLength(2);
});
