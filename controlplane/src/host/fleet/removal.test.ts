/** Forced removals through whole replicas: what is written, in which order, and who removes it. */
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  DeletionMode,
  HostState,
  RunKind,
  RunPhase,
  userActor,
  store as wire,
} from '@rackwright/messages';
import { keySegment, storeKey } from '@rackwright/store';
import { expect, test } from 'vitest';
import { fenceHold } from '../deletion/fence-hold.ts';
import { explainRack } from '../explain/rack.ts';
import { defaultTiming } from '../pass/timing.ts';
import { startMs } from '../testing/bench.ts';
import { complete, connectAgent, type PlainAgent, proved } from '../testing/plain-agent.ts';
import { type Replica, type Rig, rigWith } from '../testing/rig.ts';

const force = { kind: 'delete', mode: DeletionMode.FORCE, reason: 'burnt down' } as const;
const normal = { kind: 'delete', reason: 'sold' } as const;
const abandonedKey = storeKey('abandonedResources', 'u1');

function abandoned(rig: Rig) {
  return rig.read(abandonedKey, wire.AbandonedRecordSchema)?.resource;
}

function hostIsGone(rig: Rig, hostId = 'h1'): boolean {
  return rig.read(storeKey('hosts', hostId), wire.HostRecordSchema) === undefined;
}

/** Adds h2 as CreateHost would during the fence of u1. */
function addFenced(rig: Rig): void {
  rig.addHost(2);
  const record = rig.record('h2');
  record.fences = ['u1'];
  record.host?.status?.holds.push(fenceHold(['u1'], timestampFromMs(startMs)));
  rig.put(storeKey('hosts', 'h2'), wire.HostRecordSchema, record);
}

async function forgotten(plain: PlainAgent, hostUid = 'u1'): Promise<void> {
  await plain.say({ case: 'hostForgotten', value: { hostUid } });
}

/** A replica, and h1 whose agent has been away for some time. */
async function agentAway(crashAt?: string): Promise<{ rig: Rig; replica: Replica }> {
  const rig = rigWith({});
  const replica = await rig.replica(crashAt === undefined ? {} : { crashAt });
  const plain = await connectAgent(rig, replica);
  await plain.report(proved());
  await plain.cut();
  return { rig, replica };
}

test('force removes a host while its agent is away, with a note and a tombstone', async () => {
  const { rig, replica } = await agentAway();
  const before = rig.lastRevision('hosts');
  expect(await replica.request(force)).toEqual({ kind: 'removed' });
  expect(hostIsGone(rig)).toBe(true);
  expect(abandoned(rig)).toMatchObject({ host: 'hosts/h1', fencePending: true });
  expect(rig.rack()?.tombstones).toEqual(['u1']);
  const rack = rig.rack();
  const told = rack === undefined ? undefined : explainRack(rack, false, []);
  expect(told?.causes.map(({ text }) => text).join()).toContain('still to forget');
  const order = ['abandonedResources', 'racks', 'hosts'].map((prefix) => rig.lastRevision(prefix));
  expect(order).toEqual(order.toSorted((a, b) => a - b));
  expect(order[0]).toBeGreaterThan(before);
});

test('the agent is asked to forget when it comes back, and its word lifts the fence', async () => {
  const { rig, replica } = await agentAway();
  await replica.request(force);
  addFenced(rig);
  await rig.advance(100);
  expect(rig.status('h2').holds).toHaveLength(1);
  const plain = await connectAgent(rig, replica, { journal: { id: 'j1', generation: 2n } });
  expect(plain.of('welcome')[0]?.forgetHostUids).toEqual(['u1']);
  expect(plain.of('operation').filter(({ hostUid }) => hostUid === 'u2')).toEqual([]);
  await forgotten(plain);
  expect(abandoned(rig)?.fencePending).toBe(false);
  expect(rig.rack()?.tombstones).toEqual([]);
  expect(rig.status('h2').holds).toEqual([]);
  expect(plain.last('u2').kind.case).toBe('verifyAccess');
});

test('a heartbeat has the session of another replica ask to forget a host', async () => {
  const rig = rigWith({});
  const near = await rig.replica({ id: 'near' });
  const far = await rig.replica({ id: 'far' });
  const plain = await connectAgent(rig, near);
  await plain.report(proved());
  const request = far.hosts.request('h1', force, { actor: userActor('test') });
  await plain.beat(3 * defaultTiming.forcedCallTimeoutMs);
  expect(hostIsGone(rig)).toBe(true);
  expect((await request).kind).toBe('accepted');
  expect(plain.of('forget').map(({ hostUid }) => hostUid)).toContain('u1');
  await forgotten(plain);
  expect(rig.rack()?.tombstones).toEqual([]);
});

test('an agent cannot lift the fence of another rack', async () => {
  const { rig, replica } = await agentAway();
  await replica.request(force);
  rig.addRack('r2');
  const stranger = await connectAgent(rig, replica, { rackId: 'r2' });
  await forgotten(stranger);
  expect(abandoned(rig)?.fencePending).toBe(true);
  expect(rig.rack()?.tombstones).toEqual(['u1']);
});

test('a host that its agent forgets before its record is deleted leaves no tombstone', async () => {
  const rig = rigWith({});
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  await plain.report(proved());
  await plain.report(complete());
  const request = replica.hosts.request('h1', force, { actor: userActor('test') });
  await rig.advance(1);
  expect((await request).kind).toBe('accepted');
  for (let call = 0; call < 5 && !hostIsGone(rig); call++) {
    const asked = plain.of('forget').length > 0;
    if (asked) await forgotten(plain);
    else await plain.report(complete());
  }
  expect(hostIsGone(rig)).toBe(true);
  expect(abandoned(rig)).toBeUndefined();
});

test.each(['cp.removalIntended', 'cp.abandonedStored', 'cp.tombstoneStored', 'cp.hostRemoved'])(
  'a crash at %s ends in the same removal, once, without another request',
  async (crashAt) => {
    const { rig, replica } = await agentAway(crashAt);
    void replica.hosts.request('h1', force, { actor: userActor('test') }).catch(() => undefined);
    await rig.advance(1_000);
    const after = await rig.replica({ id: 'after' });
    await rig.advance(1_000);
    expect(hostIsGone(rig)).toBe(true);
    expect(rig.rack()?.tombstones).toEqual(['u1']);
    const notes = rig.disk.changesOf(abandonedKey).filter(({ kind }) => kind === 'put');
    expect(notes).toHaveLength(1);
    const plain = await connectAgent(rig, after, { journal: { id: 'j1', generation: 2n } });
    await forgotten(plain);
    expect(abandoned(rig)?.fencePending).toBe(false);
    expect(rig.rack()?.tombstones).toEqual([]);
  },
);

test('a fence without a tombstone is lifted by the word of its agent all the same', async () => {
  const { rig, replica } = await agentAway('cp.abandonedStored');
  void replica.hosts.request('h1', force, { actor: userActor('test') }).catch(() => undefined);
  await rig.advance(1_000);
  expect(abandoned(rig)?.fencePending).toBe(true);
  expect(rig.rack()?.tombstones).toEqual([]);
  addFenced(rig);
  rig.addRack('r2');
  const after = await rig.replica({ id: 'after' });
  await forgotten(await connectAgent(rig, after, { rackId: 'r2' }));
  expect(abandoned(rig)?.fencePending).toBe(true);
  await forgotten(await connectAgent(rig, after, { journal: { id: 'j1', generation: 2n } }));
  expect(abandoned(rig)?.fencePending).toBe(false);
  expect(rig.status('h2').holds).toEqual([]);
});

const contested = '52:54:00:00:00:01';
const contestedKey = storeKey('reservations', 'mac', keySegment(contested));

test.each([
  // Its update lost the race for the address to the creation of h1.
  ['the removed host', { holder: 'hosts/h1', holderUid: 'u1' }],
  // The creation had it, and died.
  ['a host that was never written', { holder: 'hosts/h9', holderUid: 'u9' }],
])('a host that takes an address later, from %s, is fenced off before', async (_, holder) => {
  const { rig, replica } = await agentAway();
  rig.addRack('r2');
  rig.addHost(2, { rack: 'racks/r2', bootMacs: [contested] });
  rig.put(contestedKey, wire.ReservationSchema, { holder: 'hosts/h1', holderUid: 'u1' });
  const other = await connectAgent(rig, replica, { rackId: 'r2' });
  await rig.advance(1_000);
  expect(rig.status('h2').faults.map(({ type }) => type)).toContain('notUnique');
  rig.put(contestedKey, wire.ReservationSchema, holder);
  await replica.request(force);
  replica.hosts.wake('h2');
  await rig.advance(1_000);
  expect(other.of('operation')).toEqual([]);
  expect(rig.record('h2').fences).toEqual(['u1']);
  expect(rig.status('h2').holds).toHaveLength(1);
  replica.hosts.wake('h2');
  await rig.advance(1_000);
  expect(rig.read(contestedKey, wire.ReservationSchema)?.holderUid).toBe('u2');
  expect(other.of('operation')).toEqual([]);
  await forgotten(await connectAgent(rig, replica, { journal: { id: 'j1', generation: 2n } }));
  await rig.advance(1_000);
  expect(rig.record('h2').fences).toEqual([]);
  expect(rig.status('h2')).toMatchObject({ holds: [], run: { kind: RunKind.VERIFY } });
  expect(other.of('operation')).not.toEqual([]);
});

test('a crash while the fence is being lifted asks the agent again', async () => {
  const { rig, replica } = await agentAway();
  await replica.request(force);
  addFenced(rig);
  replica.kill();
  const dying = await rig.replica({ id: 'dying', crashAt: 'cp.fenceLifted' });
  await forgotten(await connectAgent(rig, dying, { journal: { id: 'j1', generation: 2n } }));
  expect(abandoned(rig)?.fencePending).toBe(false);
  expect(rig.rack()?.tombstones).toEqual(['u1']);
  const after = await rig.replica({ id: 'after' });
  const plain = await connectAgent(rig, after, { journal: { id: 'j1', generation: 3n } });
  expect(plain.of('welcome')[0]?.forgetHostUids).toEqual(['u1']);
  await forgotten(plain);
  expect(rig.rack()?.tombstones).toEqual([]);
  expect(rig.status('h2').holds).toEqual([]);
});

test('a forced deletion whose control plane crashed in mid-call goes on forced', async () => {
  const rig = rigWith({});
  const replica = await rig.replica();
  await connectAgent(rig, replica);
  await replica.request(force);
  expect(rig.status().run?.kind).toBe(RunKind.VERIFY);
  replica.kill();
  await rig.replica();
  expect(hostIsGone(rig)).toBe(true);
  expect(abandoned(rig)?.leftBehind[0]).toContain('verify 1 may still be going on');
});

test('a host created again under the name inherits nothing', async () => {
  const { rig, replica } = await agentAway();
  await replica.request(force);
  rig.addHost(1);
  const record = rig.record();
  expect(record.host?.status).toMatchObject({ state: HostState.NEW });
  if (record.host !== undefined) record.host.uid = 'u1-again';
  rig.put(storeKey('hosts', 'h1'), wire.HostRecordSchema, record);
  await rig.advance(100);
  const plain = await connectAgent(rig, replica, { journal: { id: 'j1', generation: 2n } });
  await forgotten(plain);
  expect(rig.status().run?.phase).not.toBe(RunPhase.ENDED);
  expect(rig.record().forgetting).toBe(false);
  expect(rig.status().deletion).toBeUndefined();
});

test('a normal deletion waits for its agent, and ends when that has forgotten', async () => {
  const { rig, replica } = await agentAway();
  expect((await replica.request(normal)).kind).toBe('accepted');
  await rig.advance(3_600_000);
  expect(hostIsGone(rig)).toBe(false);
  expect(rig.rack()?.tombstones).toEqual([]);
  const plain = await connectAgent(rig, replica, { journal: { id: 'j1', generation: 2n } });
  for (let call = 0; call < 5 && plain.of('forget').length === 0; call++) {
    await plain.report(complete());
  }
  await forgotten(plain);
  expect(hostIsGone(rig)).toBe(true);
  expect(abandoned(rig)).toBeUndefined();
});
