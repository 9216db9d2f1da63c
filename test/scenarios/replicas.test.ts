/** Sessions, replicas and the store: who acts on what, exactly once. */
import { create, equals } from '@bufbuild/protobuf';
import { explainRack, failed } from '@rackwright/controlplane/testing';
import {
  agent,
  type HostId,
  HostState,
  RunKind,
  RunOutcome,
  RunPhase,
  store,
  userActor,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { Replica, Site, verifiedAs } from './replica.ts';

const { APPLIED, STALE } = agent.ReportAnswer_Verdict;

/** How an agent lists in Hello what has ended and was not answered. */
const ended = (operations: readonly agent.Operation[]) =>
  operations.map(({ id, hostUid }) => {
    const state = agent.JournalledOperation_State.ENDED;
    return create(agent.JournalledOperationSchema, { operationId: id, hostUid, state });
  });

const runIn = (site: Site, hostId: HostId) => site.record(hostId)?.host?.status?.run;

test('ironic-39: hosts whose agent falls silent all wait, and none fails by silence', async () => {
  const site = await Site.open({ hosts: 500, resyncIntervalMs: 24 * 3_600_000 });
  const replica = await Replica.start(site, 'a');
  await replica.hello();
  await site.run(1_000);
  const operations = replica.operations();
  expect(operations).toHaveLength(500);
  replica.cut();
  await site.run(2 * 90_000);
  for (const hostId of site.hostIds()) {
    expect(runIn(site, hostId)?.phase).toBe(RunPhase.WAITING);
    expect(runIn(site, hostId)?.waiting?.reason).toBe('agent');
  }
  const records = site.hostIds().flatMap((hostId) => site.record(hostId) ?? []);
  const rack = create(store.RackRecordSchema, { rack: { name: 'racks/r1' } });
  const told = explainRack(rack, false, records).causes.map(({ text }) => text);
  expect(told.at(-1)).toMatch(/ and 495 more: waits: the agent of the rack is not connected$/);
  await site.run(8 * 24 * 3_600_000);
  expect(site.hostIds().filter((hostId) => runIn(site, hostId)?.number !== 1n)).toEqual([]);
  await replica.hello(ended(operations));
  for (const operation of operations) {
    await replica.report(operation, verifiedAs(operation.hostUid));
  }
  await site.run(1_000);
  const states = site.hostIds().map((hostId) => site.record(hostId)?.host?.status?.state);
  expect(new Set(states)).toEqual(new Set([HostState.MANAGEABLE]));
});

test('ironic-43: a killed control plane fails nothing, and a peer goes on', async () => {
  const site = await Site.open({ hosts: 20 });
  const first = await Replica.start(site, 'a');
  const second = await Replica.start(site, 'b');
  await first.hello();
  await site.run(1_000);
  const sent = first.operations();
  expect(sent).toHaveLength(20);
  first.kill();
  await second.hello(ended(sent));
  const directives = second.told.flatMap((message) =>
    message.case === 'welcome' ? message.value.directives : [],
  );
  const { CONTINUE } = agent.Directive_Action;
  expect(directives.map(({ action }) => action)).toEqual(sent.map(() => CONTINUE));
  for (const operation of sent) await second.report(operation, verifiedAs(operation.hostUid));
  await site.run(1_000);
  expect(second.verdicts()).toEqual(sent.map(() => APPLIED));
  for (const hostId of site.hostIds()) {
    const status = site.record(hostId)?.host?.status;
    expect(status?.state).toBe(HostState.MANAGEABLE);
    expect(status?.lastError).toBeUndefined();
    expect(status?.run?.kind).toBe(RunKind.INSPECT);
  }
  const later = second.operations().filter(({ kind }) => kind.case === 'verifyAccess');
  const ids = new Set(sent.map(({ id }) => id));
  expect(later.filter(({ id }) => !ids.has(id))).toEqual([]);
});

test('ironic-45: a control plane gone for good is replaced by another at once', async () => {
  const site = await Site.open({ hosts: 1 });
  const first = await Replica.start(site, 'a');
  await first.hello();
  await site.run(1_000);
  const [operation] = first.operations();
  if (operation === undefined) throw new Error('nothing was sent');
  await first.report(operation, failed('authentication'));
  await site.run(1_000);
  first.kill();
  const second = await Replica.start(site, 'b');
  await second.hello();
  const outcome = await second.hosts.request(
    'h1',
    { kind: 'verify' },
    { actor: userActor('test') },
  );
  expect(outcome.kind).toBe('accepted');
  await site.run(0);
  expect(second.operations().map(({ id }) => id)).toEqual(['u1/2/0/1']);
});

test('ironic-51: two deletes at once are accepted, and the host is removed once', async () => {
  const site = await Site.open({ hosts: 1 });
  const replica = await Replica.start(site, 'a');
  await replica.hello();
  await site.run(1_000);
  const [operation] = replica.operations();
  if (operation === undefined) throw new Error('nothing was sent');
  const request = { kind: 'delete', reason: 'sold' } as const;
  const by = { actor: userActor('test') };
  const outcomes = await Promise.all([
    replica.hosts.request('h1', request, by),
    replica.hosts.request('h1', request, by),
  ]);
  expect(outcomes.map(({ kind }) => kind)).toEqual(['accepted', 'accepted']);
  await replica.report(operation, failed('cancelled'));
  const whileRemoving = await replica.hosts.request('h1', request, by);
  expect(whileRemoving.kind).toBe('accepted');
  await Promise.all([replica.forgotten('u1'), replica.forgotten('u1')]);
  await site.run(1_000);
  const removals = site.disk.changesOf('hosts.h1').filter(({ kind }) => kind === 'delete');
  expect(removals).toHaveLength(1);
  expect(await replica.hosts.request('h1', request, by)).toEqual({ kind: 'notFound' });
});

test('metal3-33: without an agent a host says so once, and nothing more is written', async () => {
  const site = await Site.open({ hosts: 3, resyncIntervalMs: 30_000 });
  await Replica.start(site, 'a');
  const revision = site.disk.latest();
  expect(runIn(site, 'h1')?.waiting?.reason).toBe('agent');
  await site.run(3_600_000);
  expect(site.disk.latest()).toBe(revision);
});

test('metal3-71: the host is gone once the agent has forgotten it, not before', async () => {
  const site = await Site.open({ hosts: 1 });
  const replica = await Replica.start(site, 'a');
  await replica.hello();
  const [operation] = replica.operations();
  if (operation === undefined) throw new Error('nothing was sent');
  await replica.hosts.request('h1', { kind: 'delete', reason: '' }, { actor: userActor('test') });
  await replica.report(operation, failed('cancelled'));
  await site.run(1_000);
  const asked = () => replica.told.filter(({ case: kind }) => kind === 'forget').length;
  expect(asked()).toBe(1);
  replica.cut();
  await site.run(3_600_000);
  expect(site.record('h1')?.host?.status?.run?.outcome).not.toBe(RunOutcome.TIMED_OUT);
  await replica.hello();
  expect(asked()).toBe(2);
  await replica.forgotten('u1');
  expect(site.record('h1')).toBeUndefined();
  await replica.report(operation, verifiedAs('u1'));
  await site.run(0);
  expect(replica.verdicts().at(-1)).toBe(STALE);

  const lonely = await Site.open({ hosts: 1, agentRegistered: false });
  const alone = await Replica.start(lonely, 'a');
  const request = { kind: 'delete', reason: '' } as const;
  expect(await alone.hosts.request('h1', request, { actor: userActor('test') })).toEqual({
    kind: 'removed',
  });
});

test('metal3-77: a change by others is looked at, its own writes are not', async () => {
  const site = await Site.open({ hosts: 1, resyncIntervalMs: 3_600_000 });
  const replica = await Replica.start(site, 'a');
  await replica.hello();
  await site.run(1_000);
  const [operation] = replica.operations();
  if (operation === undefined) throw new Error('nothing was sent');
  const looks = async (cause: () => Promise<unknown>) => {
    const before = replica.storeCalls.length;
    await cause();
    await site.run(1_000);
    const calls = replica.storeCalls.slice(before);
    return calls.filter(({ kind, key }) => kind === 'get' && key === 'hosts.h1').length;
  };
  expect(await looks(() => replica.report(operation, failed('authentication')))).toBe(1);
  const record = site.record('h1');
  if (record?.host === undefined) throw new Error('h1 is gone');
  record.host.labels = { site: 'a' };
  expect(await looks(() => site.putRecord('h1', record))).toBe(1);
  expect(equals(store.HostRecordSchema, record, site.record('h1') ?? record)).toBe(true);
  await site.putCredential(2n);
  expect(await looks(async () => replica.hosts.wake('h1'))).toBeGreaterThan(0);
  expect(replica.operations().map(({ id }) => id)).toEqual(['u1/1/0/1', 'u1/2/0/1']);
});
