/** A store that has lost data: nothing is ordered until a person has accepted that. */
import { clone, create } from '@bufbuild/protobuf';
import {
  agent,
  asRevision,
  DeletionMode,
  FailureType,
  HostGoal,
  HostState,
  noRevision,
  RunKind,
  RunOutcome,
  RunPhase,
  store as wire,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { describe, expect, test } from 'vitest';
import type { HostRequest } from '../pass/types.ts';
import { disklessHost, erased, statusOf, virtioDisk } from '../testing/bench.ts';
import {
  type Connecting,
  complete,
  connectAgent,
  type PlainAgent,
  proved,
  toAvailable,
  toErase,
} from '../testing/plain-agent.ts';
import { type Replica, type Rig, rigWith } from '../testing/rig.ts';

const { BEGUN, ENDED, JOURNALLED } = agent.JournalledOperation_State;
const { CONTINUE, CANCEL } = agent.Directive_Action;
const stepsThatReadAgain = [
  { name: 'deploy.erase_devices', priority: 10 },
  { name: 'deploy.verify_erased', priority: 0 },
];
const nextLife = { id: 'j1', generation: 2n };

async function started(spec: Parameters<typeof rigWith>[0] = {}) {
  const rig = rigWith(spec);
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  return { rig, replica, plain };
}

/** The agent reconnects, and has seen more than the store has. */
function comesWithMore(
  rig: Rig,
  replica: Replica,
  operations: Connecting['operations'] = [],
  at: bigint = 100_000n,
) {
  const { incarnation } = rig.disk;
  const seen = { incarnation, revision: asRevision(at) };
  return connectAgent(rig, replica, { journal: nextLife, operations, seen });
}

/** As AcceptRestoredStore writes it. */
function accept(rig: Rig): void {
  const record = clone(wire.RackRecordSchema, rig.rack() ?? create(wire.RackRecordSchema));
  const { incarnation } = rig.disk;
  record.incarnation = incarnation;
  const { revision = noRevision } = record.rack?.status?.restoredStore ?? {};
  const accepted = { incarnation, revision, by: 'user:ann' };
  record.acceptedStore = create(agent.StoreAcceptedSchema, accepted);
  delete record.rack?.status?.restoredStore;
  rig.put(storeKey('racks', 'r1'), wire.RackRecordSchema, record);
}

/** The agent has stored the acceptance and says Hello again. */
async function comesAgain(
  rig: Rig,
  replica: Replica,
  plain: PlainAgent,
  operations: Connecting['operations'] = [],
) {
  await plain.heartbeat();
  const [accepted] = plain.of('storeAccepted');
  expect(accepted).toMatchObject({ by: 'user:ann' });
  await plain.cut();
  const { incarnation } = rig.disk;
  const seen = {
    incarnation,
    revision: asRevision(1),
    lostRevisions: accepted?.lostRevisions ?? noRevision,
  };
  return connectAgent(rig, replica, { journal: nextLife, operations, seen });
}

const holds = (rig: Rig) => rig.status().holds.map(({ reason }) => reason);
const kinds = (plain: PlainAgent) => plain.of('operation').map(({ kind }) => kind.case);

describe('an agent that has seen more than the store has', () => {
  test('is shown with its journal, and every host of its rack is held', async () => {
    const { rig, replica, plain } = await started();
    await toErase(rig, plain);
    await plain.cut();
    const listed = { operationId: 'u1/9/4/1', hostUid: 'u1', state: BEGUN };
    await comesWithMore(rig, replica, [listed]);
    expect(rig.rack()?.rack?.status?.restoredStore).toMatchObject({
      seenRevision: 100_000n,
      journal: ['hosts/h1: operation u1/9/4/1 begun'],
    });
    expect(holds(rig)).toEqual([expect.stringMatching(/^restored: /)]);
    const explained = await rig.during(replica.hosts.explain('h1'));
    expect(explained?.unblock).not.toEqual([]);
  });

  test('gets nothing to do, is told to stop nothing, and begins nothing', async () => {
    const { rig, replica, plain } = await started();
    await toErase(rig, plain);
    await plain.cut();
    const again = await comesWithMore(rig, replica, [
      { operationId: 'u1/9/4/1', hostUid: 'u1', state: BEGUN },
      { operationId: 'u1/8/4/1', hostUid: 'u1', state: ENDED },
      { operationId: 'u1/9/5/1', hostUid: 'u1', state: JOURNALLED },
    ]);
    await again.beat(600_000);
    expect(again.of('welcome')[0]?.directives).toMatchObject([
      { operationId: 'u1/9/4/1', action: CONTINUE },
      { operationId: 'u1/8/4/1', action: CONTINUE },
    ]);
    expect(kinds(again)).toEqual([]);
    const { RESTORED_STORE } = agent.BrakeKind;
    expect(again.of('leaseRenewal').every(({ brake }) => brake === RESTORED_STORE)).toBe(true);
  });

  test('is held back also when revisions have caught up, and over a restart', async () => {
    const { rig, replica, plain } = await started();
    await toErase(rig, plain);
    await plain.cut();
    await (await comesWithMore(rig, replica)).cut();
    replica.kill();
    const next = await rig.replica({ id: 'next' });
    const { incarnation } = rig.disk;
    const seen = { incarnation, revision: asRevision(1) };
    const again = await connectAgent(rig, next, { journal: nextLife, seen });
    await again.beat(60_000);
    expect(kinds(again)).toEqual([]);
    expect(rig.rack()?.rack?.status?.restoredStore?.seenRevision).toBe(100_000n);
  });

  test('no release of its hold lets a host go on, only the acceptance', async () => {
    const { rig, replica, plain } = await started();
    await plain.cut();
    await comesWithMore(rig, replica);
    const hold = holds(rig)[0] ?? '';
    for (const each of [hold, '']) {
      const request = { kind: 'releaseHold', hold: each, reason: 'x' } as const;
      expect(await replica.request(request)).toMatchObject({
        kind: 'refused',
        message: expect.stringContaining('accepted for the whole racks/r1'),
      });
    }
    expect(holds(rig)).toEqual([hold]);
  });

  test('a person accepts it: the run ends, its work is taken back, the goal waits', async () => {
    const { rig, replica, plain } = await started();
    await toErase(rig, plain);
    const { id } = plain.last();
    await plain.cut();
    const listed = [
      { operationId: id, hostUid: 'u1', state: BEGUN },
      { operationId: 'u1/9/4/1', hostUid: 'u1', state: BEGUN },
    ];
    const again = await comesWithMore(rig, replica, listed, BigInt(rig.lastRevision() + 3));
    accept(rig);
    const third = await comesAgain(rig, replica, again, listed);
    expect(rig.rack()?.acceptedStore).toBeUndefined();
    expect(holds(rig)).toEqual([]);
    const { run, dirty } = rig.status();
    expect([run?.kind, run?.outcome, run?.error?.type]).toEqual([
      RunKind.CLEAN,
      RunOutcome.FAILED,
      FailureType.RESTORED,
    ]);
    expect(dirty).toBe(true);
    expect(third.of('welcome')[0]?.directives).toMatchObject([
      { operationId: id, action: CONTINUE },
      { operationId: 'u1/9/4/1', action: CANCEL },
    ]);
    expect(third.of('operation').map(({ kind }) => kind)).toMatchObject([
      { case: 'cancel', value: { operationId: id } },
    ]);
    await third.beat(120_000);
    expect(rig.status().run?.phase).toBe(RunPhase.ENDED);
    await replica.request({ kind: 'retry' });
    await third.beat(3_000);
    expect(rig.status().run).toMatchObject({ number: 10n, phase: RunPhase.RUNNING });
    expect(third.last().id).toBe('u1/10/0/1');
  });

  test('no number is used again that a lost run may have had', async () => {
    const { rig, replica, plain } = await started();
    await toErase(rig, plain);
    const before = rig.status().run?.number ?? 0n;
    await plain.cut();
    const again = await comesWithMore(rig, replica, [], BigInt(rig.lastRevision() + 500));
    await again.beat(120_000);
    accept(rig);
    const third = await comesAgain(rig, replica, again);
    await replica.request({ kind: 'retry' });
    await third.beat(120_000);
    const after = rig.status().run?.number ?? 0n;
    expect(after).toBeGreaterThan(before + 490n);
    expect(after).toBeLessThanOrEqual(before + 501n);
  });

  test('no number is used again that was passed over when something was lost before', async () => {
    const { rig, replica, plain } = await started();
    await toErase(rig, plain);
    await plain.cut();
    const again = await comesWithMore(rig, replica, [], BigInt(rig.lastRevision() + 500));
    accept(rig);
    const third = await comesAgain(rig, replica, again);
    const passed = rig.record().runCount;
    await third.cut();
    // The backup is from before any later run, and three revisions are lost with it.
    const { lostRevisions = noRevision } = rig.rack() ?? {};
    const revision = asRevision(rig.lastRevision() + 3);
    const seen = { incarnation: rig.disk.incarnation, revision, lostRevisions };
    const fourth = await connectAgent(rig, replica, { journal: nextLife, seen });
    accept(rig);
    await comesAgain(rig, replica, fourth);
    expect(rig.record().runCount).toBeGreaterThan(passed);
    expect(rig.record().runCount).toBeLessThanOrEqual(passed + 3n);
  });

  test('an acceptance restored from a backup does not cover the loss by that restore', async () => {
    const { rig, replica, plain } = await started();
    await plain.cut();
    const again = await comesWithMore(rig, replica, [], BigInt(rig.lastRevision() + 100));
    accept(rig);
    await again.cut();
    const third = await comesWithMore(rig, replica, [], BigInt(rig.lastRevision() + 200));
    expect(rig.rack()?.acceptedStore).toBeUndefined();
    expect(rig.rack()?.rack?.status?.restoredStore).toBeDefined();
    await third.beat(9_000);
    expect(third.of('storeAccepted')).toEqual([]);
    expect(holds(rig)).toHaveLength(1);
  });

  test('an acceptance is sent until the agent counts the loss as well', async () => {
    const { rig, replica, plain } = await started();
    await plain.cut();
    const again = await comesWithMore(rig, replica, [], BigInt(rig.lastRevision() + 5));
    accept(rig);
    await again.cut();
    // Further revisions, until there are more than the agent has seen.
    for (let index = 0; index < 6; index += 1) await replica.request({ kind: 'verify' });
    const seen = { incarnation: rig.disk.incarnation, revision: asRevision(1) };
    await connectAgent(rig, replica, { journal: nextLife, seen });
    expect(rig.rack()?.acceptedStore).toBeDefined();
  });

  test('a report of the interrupted erasure then counts for nobody', async () => {
    const { rig, replica, plain } = await started();
    await toErase(rig, plain);
    const operation = plain.last();
    const evidence = plain.evidence([erased(virtioDisk)]);
    await plain.cut();
    const listed = [{ operationId: operation.id, hostUid: 'u1', state: ENDED }];
    const again = await comesWithMore(rig, replica);
    accept(rig);
    const third = await comesAgain(rig, replica, again, listed);
    const value = create(agent.CompleteSchema, { evidence });
    await third.report({ case: 'complete', value }, operation);
    expect(third.of('reportAnswer')).toMatchObject([{ verdict: agent.ReportAnswer_Verdict.STALE }]);
    expect(rig.record().certified).toEqual([]);
  });

  test('no disk that was erased before is read again, or counts as erased', async () => {
    const { rig, replica, plain } = await started();
    await toErase(rig, plain, [virtioDisk], stepsThatReadAgain);
    const evidence = plain.evidence([erased(virtioDisk)]);
    await plain.report({ case: 'complete', value: create(agent.CompleteSchema, { evidence }) });
    expect(rig.record().unproved).toHaveLength(1);
    const epoch = rig.status().useEpoch;
    await plain.cut();
    const again = await comesWithMore(rig, replica);
    accept(rig);
    const third = await comesAgain(rig, replica, again);
    expect(rig.record().unproved).toEqual([]);
    expect(rig.status().useEpoch).toBeGreaterThan(epoch);
    await replica.request({ kind: 'retry' });
    await third.beat(3_000);
    const names = rig.status().run?.steps.map(({ name }) => name);
    expect(names).toContain('deploy.erase_devices');
    expect(names).not.toContain('deploy.verify_erased');
  });

  test('an available host is cleaned again, since nobody knows what it was used for', async () => {
    const { rig, replica, plain } = await started();
    await toAvailable(rig, plain);
    const epoch = rig.status().useEpoch;
    await plain.cut();
    const again = await comesWithMore(rig, replica);
    accept(rig);
    const third = await comesAgain(rig, replica, again);
    await third.beat(6_000);
    expect(rig.status()).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
    expect(rig.status().useEpoch).toBeGreaterThan(epoch);
    expect(rig.status().run?.phase).toBe(RunPhase.ENDED);
    await replica.request({ kind: 'retry' });
    expect(rig.status().run).toMatchObject({ kind: RunKind.CLEAN, phase: RunPhase.RUNNING });
  });
});

test('a diskless host is not available either once its lost provision was accepted', () => {
  const host = disklessHost();
  expect(statusOf(host).state).toBe(HostState.AVAILABLE);
  host.request({ kind: 'provision', image: `registry.example/os@sha256:${'ab'.repeat(32)}` });
  const known = host.snapshot;
  host.snapshot = { ...known, restored: 'revisions were lost' };
  host.apply({ kind: 'tick' });
  host.snapshot = known;
  host.apply({ kind: 'hello', journal: create(agent.JournalSchema, nextLife), listed: [] });
  expect(statusOf(host).run).toMatchObject({ kind: RunKind.PROVISION, phase: RunPhase.ENDED });
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
});

test('a store that is away when the agent comes with the acceptance loses no host', async () => {
  const rig = rigWith({});
  let away = false;
  const replica = await rig.replica({
    faults: ({ kind, key }) => ({
      kind: away && kind === 'get' && key === 'hosts.h1' ? 'requestLost' : 'none',
    }),
  });
  const plain = await connectAgent(rig, replica);
  await plain.cut();
  const again = await comesWithMore(rig, replica);
  accept(rig);
  away = true;
  const third = await comesAgain(rig, replica, again);
  await rig.advance(100);
  expect(third.ended).toBe(true);
  away = false;
  expect(holds(rig)).toHaveLength(1);
  await third.cut();
  await connectAgent(rig, replica, { journal: { id: 'j1', generation: 3n } });
  expect(holds(rig)).toEqual([]);
});

describe('a host whose use in the lost stretch nobody knows', () => {
  /** Available in the backup, and the loss accepted. */
  async function accepted() {
    const { rig, replica, plain } = await started();
    await toAvailable(rig, plain);
    await plain.cut();
    const again = await comesWithMore(rig, replica);
    accept(rig);
    const third = await comesAgain(rig, replica, again);
    return { rig, replica, third };
  }

  test('gets nothing that switches or erases it until a person has looked', async () => {
    const { rig, replica, third } = await accepted();
    await third.beat(120_000);
    expect(kinds(third)).toEqual([]);
    const spec = rig.record().host?.spec;
    if (spec === undefined) throw new Error('a host has a spec');
    await replica.request({ kind: 'update', spec, labels: { changed: 'yes' } });
    await replica.request({ kind: 'verify' });
    await third.report(proved());
    await third.beat(120_000);
    expect(kinds(third)).toEqual(['verifyAccess']);
    expect(rig.status().backoff?.givenUpReason).toContain('the store was restored');
    await replica.request({ kind: 'retry' });
    await third.beat(3_000);
    expect(kinds(third)).toEqual(['verifyAccess', 'setPower']);
  });

  test('is not switched off for a clean that the backup remembers', async () => {
    const { rig, replica, plain } = await started();
    await toErase(rig, plain);
    await plain.cut();
    const again = await comesWithMore(rig, replica);
    accept(rig);
    const third = await comesAgain(rig, replica, again);
    expect(rig.status()).toMatchObject({ run: { outcome: RunOutcome.FAILED }, poweredOn: true });
    await third.beat(60 * 60_000);
    expect(kinds(third).filter((kind) => kind !== 'cancel')).toEqual([]);
  });

  test.each<HostRequest>([
    { kind: 'retry' },
    { kind: 'delete', mode: DeletionMode.NORMAL, reason: 'sold' },
  ])('is not switched nor erased for a deletion of the backup before $kind', async (asked) => {
    const { rig, replica, plain } = await started({ goal: HostGoal.MANAGEABLE });
    await plain.report(proved());
    await replica.request({ kind: 'adopt', to: HostState.PROVISIONED, reason: 'it is in use' });
    await plain.report(proved());
    expect(rig.status().state).toBe(HostState.PROVISIONED);
    await replica.request({ kind: 'delete', mode: DeletionMode.NORMAL, reason: 'sold' });
    expect(rig.status().run).toMatchObject({ kind: RunKind.RELEASE, phase: RunPhase.RUNNING });
    await plain.cut();
    const again = await comesWithMore(rig, replica);
    accept(rig);
    const third = await comesAgain(rig, replica, again);
    await third.beat(60 * 60_000);
    expect(kinds(third).filter((kind) => kind !== 'cancel')).toEqual([]);
    const told = await rig.during(replica.hosts.explain('h1'));
    expect(told?.headline).toContain('neither switched off nor erased');
    expect(told?.unblock.join()).toContain('rackwright host retry h1');
    await replica.request(asked);
    expect(rig.record().change?.cause).toContain(`${asked.kind} requested`);
    await third.beat(3_000);
    expect(kinds(third).filter((kind) => kind !== 'cancel')).toEqual(['setPower']);
  });

  test('is deleted when a person asks for that after the acceptance', async () => {
    const { rig, replica, third } = await accepted();
    await replica.request({ kind: 'delete', mode: DeletionMode.NORMAL, reason: 'sold' });
    expect(rig.record().lookFirstSince).toBeUndefined();
    expect(rig.status().run).toMatchObject({ kind: RunKind.DELETE });
    await third.beat(3_000);
  });

  test('says so, since when, and what to do', async () => {
    const { rig, replica } = await accepted();
    const told = await rig.during(replica.hosts.explain('h1'));
    expect(told?.headline).toContain('not booted nor erased by itself');
    expect(told?.since).toBeDefined();
    expect(told?.unblock.join()).toContain('rackwright host retry h1');
  });

  test('goes on when a person asks for a clean, or has said what runs there', async () => {
    const { rig, replica, third } = await accepted();
    await replica.request({ kind: 'adopt', to: HostState.PROVISIONED, reason: 'it is in use' });
    await third.report(proved());
    expect(rig.status().state).toBe(HostState.PROVISIONED);
    expect(rig.record().lookFirstSince).toBeUndefined();
    const { rig: other, replica: asked } = await accepted();
    await asked.request({ kind: 'clean', steps: [] });
    expect(other.status().run).toMatchObject({ kind: RunKind.CLEAN, phase: RunPhase.RUNNING });
    expect(other.record().lookFirstSince).toBeUndefined();
  });
});

describe('a new incarnation', () => {
  /** h1 is verified, and the rack has work of the first incarnation. */
  async function restored() {
    const { rig, replica, plain } = await started();
    await plain.report(proved());
    await plain.cut();
    replica.kill();
    const first = rig.disk.incarnation;
    const next = await rig.replica({ id: 'next', restored: true });
    return { rig, next, first };
  }

  test('holds the hosts of a rack whose agent is away', async () => {
    const { rig, first } = await restored();
    expect(rig.rack()?.rack?.status?.restoredStore).toMatchObject({
      seenIncarnation: first,
      incarnation: rig.disk.incarnation,
    });
    expect(holds(rig)).toEqual([expect.stringMatching(/^restored: /)]);
  });

  test('uses no lost number again when it was accepted before the agent came', async () => {
    const { rig, next, first } = await restored();
    const before = rig.status().run?.number ?? 0n;
    const { revision = noRevision } = rig.rack()?.rack?.status?.restoredStore ?? {};
    accept(rig);
    const seen = { incarnation: first, revision: asRevision(revision + 500n) };
    const plain = await connectAgent(rig, next, { journal: nextLife, seen });
    const again = await comesAgain(rig, next, plain);
    await next.request({ kind: 'retry' });
    await again.beat(3_000);
    expect(rig.status().run?.number).toBe(before + 501n);
  });

  test('is accepted for an agent that comes later, and known at its Hello', async () => {
    const { rig, next, first } = await restored();
    accept(rig);
    const seen = { incarnation: first, revision: asRevision(5) };
    const plain = await connectAgent(rig, next, { journal: nextLife, seen });
    expect(holds(rig)).toHaveLength(1);
    const again = await comesAgain(rig, next, plain);
    await again.beat(90_000);
    expect(holds(rig)).toEqual([]);
    expect(kinds(again)).toEqual(['cancel']);
    await next.request({ kind: 'retry' });
    await again.report(complete());
    expect(rig.rack()?.rack?.status?.restoredStore).toBeUndefined();
    expect(rig.rack()?.acceptedStore).toBeUndefined();
  });
});
