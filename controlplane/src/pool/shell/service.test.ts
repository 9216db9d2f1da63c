/** The effects of faults, holds and power of a host in service on its pool. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  FaultSeverity,
  HoldScope,
  type HostFault,
  HostState,
  type HostStatusSchema,
  RolloutSlotState,
  RunKind,
  RunPhase,
  RunSchema,
  userActor,
  store as wire,
} from '@rackwright/messages';
import { seededRandom } from '@rackwright/sim';
import { openMemoryStore, storeKey } from '@rackwright/store';
import { expect, test } from 'vitest';
import { bmcFaults, fleetKey } from '../../host/index.ts';
import { landings } from '../../host/pass/transitions.ts';
import { Rig } from '../../host/testing/rig.ts';
import { image, Rollout } from '../decide/rollout.fixture.ts';
import { type SeenHost, seenHost } from '../facts/seen.ts';
import { snapshotOf } from './snapshot.fixture.ts';

const failures = Object.values(landings)
  .flatMap((each) => Object.values(each))
  .flatMap(({ fault }) => fault ?? []);
const lacks = ['notUnique', 'noCredential', 'a fault of the future'];
const takesOut: HostFault = 'reimageFailed';
const faults = new Set([...failures, ...bmcFaults, ...lacks]);
faults.delete(takesOut);

/** A host that runs A and is on, with these changes. */
function seenWith(
  about: MessageInitShape<typeof HostStatusSchema>,
): Pick<SeenHost, 'illness' | 'service' | 'keptBy' | 'isInRescue'> {
  const status = { state: HostState.PROVISIONED, image: image('A'), poweredOn: true, ...about };
  const seen = seenHost(create(wire.HostRecordSchema, { host: { name: 'hosts/h1', status } }));
  if (seen === undefined) throw new Error('it has a status');
  const { illness, service, keptBy, isInRescue } = seen;
  return { illness, service, keptBy, isInRescue };
}

/** Its pool has a gate and a closed window, and wants B. */
function wantsB(host: Partial<SeenHost>): Rollout {
  const windows = [{ cron: '0 2 * * *', duration: durationFromMs(3_600_000), timeZone: '' }];
  const pool = new Rollout(1, { rollout: { gate: { approval: true }, windows } });
  pool.push('A');
  pool.set(1, host);
  return pool.push('B');
}

test.each([...faults])(
  'a host with the fault %s is in service: nobody takes it outside the window, or unasked',
  (type) => {
    const host = seenWith({ faults: [{ type, message: 'm', severity: FaultSeverity.ERROR }] });
    expect(host.illness?.text).toBe(`${type}: m`);
    const pool = wantsB(host);
    expect(pool.out).toBe('');
    pool.nowMs += 14 * 3_600_000;
    pool.reconcile();
    const isOfBmc = bmcFaults.has(type);
    expect(pool.slots.map(({ state }) => state)).toEqual(isOfBmc ? [] : [RolloutSlotState.GATE]);
    if (isOfBmc) expect(pool.surveyed().surveyedHosts[0]?.why).toBe(`its BMC, ${type}: m`);
  },
);

test.each([
  { faults: [{ type: 'reimageFailed', message: 'm', severity: FaultSeverity.ERROR }] },
  { poweredOn: false },
])('a host that serves nobody is healed at once: %j', (about) => {
  expect(wantsB(seenWith(about)).slots.map(({ state }) => state)).toEqual([
    RolloutSlotState.RUNNING,
  ]);
});

test('a host in rescue is taken in by no pool, and written by none, until all is saved', () => {
  const inRescue = seenWith({ inRescue: true });
  const why = 'it is in rescue; when all is saved: rackwright host retry h1';
  // Released before, and not selected until now.
  const pool = new Rollout(2, { size: 2 }, { claimedBy: userActor('ann') });
  pool.set(1, { ...inRescue, claimedBy: undefined });
  pool.push('B');
  expect([pool.record.members, pool.host(1).claimedBy]).toEqual([[], undefined]);
  expect(pool.messageOf('UpToDate')).toContain(`hosts/h1 is provisioned, and ${why}`);

  // A member stays one, counts as out, and another image does not touch it either.
  const own = new Rollout(2).push('A');
  own.set(1, inRescue);
  own.push('B');
  expect(own.out).toBe('');
  expect(own.surveyed().surveyedHosts[0]).toMatchObject({ status: 'kept', why });
  own.set(1, seenWith({}));
  own.reconcile().finish();
  expect(own.countOn('B')).toBe(2);
});

test('hosts whose BMC refuses keep nobody else; one whose BMC is silent counts as out', () => {
  const told = (type: string) =>
    seenWith({ faults: [{ type, message: 'm', severity: FaultSeverity.ERROR }] });
  const takes = (host: Partial<SeenHost>) => {
    const pool = new Rollout(2).push('A');
    pool.set(1, host);
    return pool.push('B').out;
  };
  expect(takes(told('bmcAuthentication'))).toBe('h2');
  expect(takes(told('bmcUnreachable'))).toBe('');
});

test.each([
  ['its work is held by ann: disks', HoldScope.WORK],
  ['its power is held by ann: disks', HoldScope.POWER],
  [undefined, HoldScope.RELEASE],
])('a pool says why a hold keeps its host, or nothing: %s', (why, scope) => {
  expect(seenWith({ holds: [{ scope, by: 'ann', reason: 'disks' }] }).keptBy?.text).toBe(why);
});

test('a host of a frozen rack or fleet is kept, and none waits at the gate for it', async () => {
  const rig = new Rig();
  for (const [index, rackId] of ['r1', 'r2'].entries()) {
    rig.addRack(rackId);
    rig.addHost(index + 1, { rack: `racks/${rackId}` });
  }
  const freeze = { by: 'user:ann', reason: 'a drill' };
  const rack = { name: 'racks/r2', status: { freeze } };
  rig.put(storeKey('racks', 'r2'), wire.RackRecordSchema, { rack });
  const store = await openMemoryStore({ random: seededRandom(1), disk: rig.disk });
  const kept = async () => {
    const { hosts } = await snapshotOf(store, ['hosts/h1', 'hosts/h2'], rig.clock.nowMs());
    return hosts.map(({ keptBy }) => keptBy?.text);
  };
  const why = 'racks/r2 is frozen by user:ann: a drill';
  expect(await kept()).toEqual([undefined, why]);
  rig.put(fleetKey, wire.FleetRecordSchema, { fleet: { status: { freeze } } });
  expect(await kept()).toEqual(Array(2).fill('the fleet is frozen by user:ann: a drill'));

  const pool = new Rollout(2, { rollout: { gate: { approval: true } } }).push('A').push('B');
  const first = pool.out;
  pool.set(Number(first.slice(1)), { keptBy: { kind: 'hold', text: why } });
  pool.reconcile();
  expect(pool.out).not.toBe(first);
  expect(pool.surveyed().surveyedHosts.find(({ status }) => status === 'kept')?.why).toBe(why);
});

test('an approval outlasts a run that holds its host for a while', () => {
  const pool = new Rollout(2, { rollout: { gate: { approval: true } } }).push('A').push('B');
  const first = pool.out;
  const run = create(RunSchema, { kind: RunKind.POWER, phase: RunPhase.RUNNING });
  for (const slot of pool.slots) slot.approvedBy = 'user:ann';
  pool.set(Number(first.slice(1)), {
    run,
    keptBy: { kind: 'run', text: 'busy: power 3 holds the host' },
  });
  pool.reconcile();
  expect(pool.slots[0]).toMatchObject({
    ...{ host: `hosts/${first}`, state: RolloutSlotState.GATE, approvedBy: 'user:ann' },
    message: 'let through, and waits: busy: power 3 holds the host',
  });
  pool.set(Number(first.slice(1)), { run: undefined, keptBy: undefined });
  pool.reconcile();
  expect([pool.out, pool.slots[0]?.state]).toEqual([first, RolloutSlotState.RUNNING]);
});
