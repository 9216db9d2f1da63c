/** Freeze, limits and wipe budgets over whole replicas: who waits, for what, and what ends it. */
import { clone, create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  asRunNumber,
  FleetSchema,
  type FleetSpec,
  type FleetSpecSchema,
  HostState,
  RackSchema,
  type RackSpec,
  type RackSpecSchema,
  store as wire,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { describe, expect, test } from 'vitest';
import { erased, virtioDisk } from '../testing/bench.ts';
import { afterErase, connectAgent, proved, toErase } from '../testing/plain-agent.ts';
import { type Replica, type Rig, rigWith } from '../testing/rig.ts';

const rackKey = storeKey('racks', 'r1');
const freeze = (reason: string, atMs = 0) => ({
  freeze: { by: 'user:ann', reason, at: timestampFromMs(atMs) },
});

/** Writes the rack directly, bypassing every replica, like the operators' API. */
function changeRack(
  rig: Rig,
  spec: Exclude<MessageInitShape<typeof RackSpecSchema>, RackSpec>,
  status = {},
): void {
  const record = clone(wire.RackRecordSchema, rig.rack() ?? create(wire.RackRecordSchema));
  const rack = create(RackSchema, { name: 'racks/r1', spec, status });
  rig.put(rackKey, wire.RackRecordSchema, { ...record, rack });
}

function changeFleet(
  rig: Rig,
  spec: Exclude<MessageInitShape<typeof FleetSpecSchema>, FleetSpec>,
  status = {},
): void {
  const record = rig.read('fleet.fleet', wire.FleetRecordSchema);
  const fleet = create(FleetSchema, { spec, status });
  const kept = record ?? create(wire.FleetRecordSchema);
  rig.put('fleet.fleet', wire.FleetRecordSchema, { ...kept, fleet });
}

function waiting(rig: Rig, hostId = 'h1') {
  return rig.status(hostId).run?.waiting;
}

async function started(hosts = 1) {
  const rig = rigWith(...Array.from({ length: hosts }, () => ({})));
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  return { rig, replica, plain };
}

/** Hosts h1…hN, each verified; next they want an inspection in the runner. */
async function verified(rig: Rig, replica: Replica, hosts: number) {
  const plain = await connectAgent(rig, replica);
  for (let n = 1; n <= hosts; n++) await plain.report(proved(n), plain.last(`u${n}`));
  await rig.advance(10);
  return plain;
}

const erases = (ids: readonly agent.Operation[]) =>
  ids.filter(({ kind }) => kind.case === 'runStep').map(({ id }) => id);

describe('a freeze', () => {
  test.each([
    ['of the rack', (rig: Rig) => changeRack(rig, {}, freeze('a drill')), 'racks/r1 is frozen by'],
    ['of the fleet', (rig: Rig) => changeFleet(rig, {}, freeze('a drill')), 'the fleet is frozen'],
  ])(
    '%s lets a run come up to its erasure and wait there, and on after the thaw',
    async (_, pull, said) => {
      const { rig, replica, plain } = await started();
      pull(rig);
      await rig.advance(10);
      await toErase(rig, plain);
      expect(erases(plain.of('operation'))).toEqual([]);
      expect(waiting(rig)).toMatchObject({ reason: 'freeze' });
      expect(waiting(rig)?.message).toContain(said);
      expect(waiting(rig)?.message).toContain('since 1970-01-01T00:00:00Z: a drill');
      const explained = await rig.during(replica.hosts.explain('h1'));
      expect(explained).toMatchObject({ blocker: 'the freeze' });
      changeRack(rig, {});
      changeFleet(rig, {});
      await rig.advance(10);
      expect(erases(plain.of('operation'))).toHaveLength(1);
      expect(waiting(rig)).toBeUndefined();
    },
  );

  test('goes out with the next renewal of the lease, and its end with the one after', async () => {
    const { rig, plain } = await started();
    await plain.heartbeat();
    changeFleet(rig, {}, freeze('a drill'));
    await plain.heartbeat();
    changeFleet(rig, {});
    await plain.heartbeat();
    const renewals = plain.of('leaseRenewal').map(({ frozen, brake }) => ({ frozen, brake }));
    const { FREEZE, UNSPECIFIED } = agent.BrakeKind;
    const frozen = expect.stringMatching(/^the fleet is frozen by user:ann since .*: a drill$/);
    expect(renewals).toEqual([
      { frozen: '', brake: UNSPECIFIED },
      { frozen, brake: FREEZE },
      { frozen: '', brake: UNSPECIFIED },
    ]);
  });

  test('a freeze that an agent knew of first fails no step, however long it lasts', async () => {
    const { rig, plain } = await started();
    await toErase(rig, plain);
    changeRack(rig, {}, freeze('a drill'));
    const value = { reason: agent.ConflictReason.FROZEN, message: 'frozen by ann', delay: {} };
    await plain.report({ case: 'retryAfter', value: create(agent.RetryAfterSchema, value) });
    expect(waiting(rig)).toMatchObject({ reason: 'freeze', message: 'frozen by ann' });
    await plain.beat(3_600_000);
    expect(erases(plain.of('operation'))).toHaveLength(1);
    changeRack(rig, {});
    await rig.advance(10);
    expect(erases(plain.of('operation'))).toHaveLength(2);
    await afterErase(plain, plain.evidence([erased(virtioDisk)]));
    expect(rig.status().state).toBe(HostState.AVAILABLE);
  });

  test('holds for a replica that starts while it lasts', async () => {
    const { rig, replica, plain } = await started();
    changeRack(rig, {}, freeze('a drill'));
    await toErase(rig, plain);
    replica.kill();
    const next = await rig.replica({ id: 'next' });
    const again = await connectAgent(rig, next, { journal: { id: 'j1', generation: 2n } });
    await again.beat(60_000);
    expect(erases(again.of('operation'))).toEqual([]);
    expect(waiting(rig)).toMatchObject({ reason: 'freeze' });
  });
});

describe('a limit of runs', () => {
  async function three(runs = 2) {
    const rig = rigWith({}, {}, {});
    changeRack(rig, { limits: { runs } });
    const replica = await rig.replica();
    const plain = await verified(rig, replica, 3);
    return { rig, replica, plain };
  }

  test('is kept by replicas that start again, and no slot is lost with a host', async () => {
    const { rig, replica } = await three();
    replica.kill();
    // It was removed while no replica ran.
    rig.remove(storeKey('hosts', 'h1'));
    const next = await rig.replica({ id: 'next', resyncIntervalMs: 60_000 });
    await connectAgent(rig, next, { journal: { id: 'j1', generation: 2n } });
    expect(rig.rack()?.running.map(({ hostUid }) => hostUid)).toEqual(['u1', 'u2']);
    await rig.advance(130_000);
    expect(rig.rack()?.running.map(({ hostUid }) => hostUid)).toEqual(['u2', 'u3']);
    expect(waiting(rig, 'h3')?.reason).not.toBe('capacity');
  });

  test('a limit that is taken away lets everybody go on', async () => {
    const { rig } = await three(1);
    changeRack(rig, {});
    await rig.advance(10);
    expect(waiting(rig, 'h2')).toBeUndefined();
    expect(waiting(rig, 'h3')).toBeUndefined();
    expect(rig.rack()?.queued).toEqual([]);
  });
});

describe('a wipe budget', () => {
  const budget = { wipeBudget: { hosts: 1, seconds: 600 } };
  const used = { hostUid: 'u9', run: asRunNumber(1), open: false };

  test.each([
    ['of the rack', (rig: Rig) => changeRack(rig, budget)],
    ['of the fleet', (rig: Rig) => changeFleet(rig, budget)],
  ])('%s that is not used up costs a wipe nothing but its slot', async (_, set) => {
    const { rig, plain } = await started();
    set(rig);
    await toErase(rig, plain);
    await rig.advance(10);
    expect(erases(plain.of('operation'))).toHaveLength(1);
    const fleet = rig.read('fleet.fleet', wire.FleetRecordSchema);
    const wipes = [...(rig.rack()?.wipes ?? []), ...(fleet?.wipes ?? [])];
    expect(wipes).toMatchObject([{ hostUid: 'u1', open: true }]);
    const begun = { step: 'deploy.erase_devices', text: '', begun: true };
    await plain.report({ case: 'continuing', value: create(agent.ContinuingSchema, begun) });
    await rig.advance(10);
    expect(rig.rack()?.wipes.some(({ open }) => open)).toBe(false);
    await afterErase(plain, plain.evidence([erased(virtioDisk)]));
    expect(rig.status().state).toBe(HostState.AVAILABLE);
  });

  test('a run waits for a used-up budget, and continues when the interval is over', async () => {
    const { rig, replica, plain } = await started();
    changeRack(rig, budget);
    const rack = rig.rack();
    const time = timestampFromMs(rig.clock.nowMs());
    if (rack === undefined) throw new Error('there is no rack');
    rig.put(rackKey, wire.RackRecordSchema, {
      ...rack,
      wipes: [create(wire.SlotSchema, { ...used, time })],
    });
    await toErase(rig, plain);
    await rig.advance(10);
    expect(erases(plain.of('operation'))).toEqual([]);
    expect(waiting(rig)).toMatchObject({ reason: 'wipeBudget' });
    expect(replica.hosts.queuePosition(rig.record())).toBe(1);
    const explained = await rig.during(replica.hosts.explain('h1'));
    expect(explained?.nextAttemptTime).toBeDefined();
    await plain.beat(600_000);
    expect(erases(plain.of('operation'))).toHaveLength(1);
    expect(rig.rack()?.wipes).toMatchObject([{ hostUid: 'u1', open: true }]);
  });

  test('a budget of no hosts keeps a host from its wipe, but not from its deletion', async () => {
    const { rig, replica, plain } = await started();
    changeRack(rig, { wipeBudget: { hosts: 0 } });
    await toErase(rig, plain);
    await rig.advance(10);
    expect(waiting(rig)).toMatchObject({ reason: 'wipeBudget' });
    const { nextAttemptTime, unblock } = (await rig.during(replica.hosts.explain('h1'))) ?? {};
    expect(unblock).toEqual([expect.stringMatching(/^allow some: rackwright rack update r1 /)]);
    expect(nextAttemptTime).toBeUndefined();
    const outcome = await replica.request({ kind: 'delete', reason: 'sold' });
    expect(outcome.kind).toBe('accepted');
    await rig.advance(10);
    expect(rig.rack()?.wipesQueued).toEqual([]);
  });

  test('counts a wipe that was ordered for as long as nothing is heard of it', async () => {
    const { rig, plain } = await started();
    changeRack(rig, budget);
    await toErase(rig, plain);
    await rig.advance(10);
    await plain.beat(3_600_000);
    expect(rig.rack()?.wipes).toMatchObject([{ hostUid: 'u1', open: true }]);
  });

  test('frees the slot of a wipe whose replica died before it began', async () => {
    const { rig, replica, plain } = await started();
    changeRack(rig, budget);
    await toErase(rig, plain);
    replica.kill();
    const next = await rig.replica({ id: 'next' });
    await rig.advance(10);
    expect(rig.rack()?.wipes).toMatchObject([{ hostUid: 'u1', open: true }]);
    await next.request({ kind: 'abort', reason: 'x' });
    const again = await connectAgent(rig, next, { journal: { id: 'j1', generation: 2n } });
    await again.beat(6_000);
    expect(rig.rack()?.wipes).toMatchObject([{ hostUid: 'u1', open: false }]);
  });
});

test('without a limit no record of a rack or the fleet is written for a run', async () => {
  const { rig, plain } = await started();
  const before = rig.lastRevision(rackKey);
  await toErase(rig, plain);
  await afterErase(plain, plain.evidence([erased(virtioDisk)]));
  expect(rig.status().state).toBe(HostState.AVAILABLE);
  expect(rig.lastRevision(rackKey)).toBe(before);
  expect(rig.read('fleet.fleet', wire.FleetRecordSchema)).toBeUndefined();
});
