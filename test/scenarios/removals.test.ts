/** Deletions through whole control planes: crashes, lost words, several writers, limits. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { reservedValues } from '@rackwright/controlplane';
import { failed } from '@rackwright/controlplane/testing';
import {
  DeletionMode,
  RackSpecSchema,
  RunPhase,
  userActor,
  store as wire,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { Replica, Site, verifiedAs } from './replica.ts';

const by = { actor: userActor('test') };
const normal = { kind: 'delete', reason: 'sold' } as const;
const forced = { kind: 'delete', mode: DeletionMode.FORCE, reason: 'burnt down' } as const;

function removals(site: Site, hostId = 'h1'): number {
  return site.disk.changesOf(`hosts.${hostId}`).filter(({ kind }) => kind === 'delete').length;
}

function rack(site: Site): wire.RackRecord | undefined {
  const change = site.disk.changesOf('racks.r1').at(-1);
  return change?.kind === 'put' ? fromBinary(wire.RackRecordSchema, change.value) : undefined;
}

function forgetsFor(replica: Replica): string[] {
  return replica.told.flatMap((message) =>
    message.case === 'forget' ? [message.value.hostUid] : [],
  );
}

/** A normal deletion of h1 that waits for nothing but that its agent forgets. */
async function forgetting(site: Site, replica: Replica): Promise<void> {
  await replica.hello();
  await site.run(1_000);
  const [verify] = replica.operations();
  if (verify === undefined) throw new Error('nothing was sent');
  await replica.hosts.request('h1', normal, by);
  await replica.report(verify, failed('cancelled'));
  await site.run(1_000);
  expect(site.record('h1')?.forgetting).toBe(true);
}

test.each([true, false])(
  'garm-D13: without its agent a host is removed at once by force (one has joined: %s)',
  async (agentRegistered) => {
    const site = await Site.open({ hosts: 1, agentRegistered });
    const replica = await Replica.start(site, 'a');
    expect((await replica.hosts.request('h1', forced, by)).kind).toBe('removed');
    expect(removals(site)).toBe(1);
    expect(rack(site)?.tombstones).toEqual(agentRegistered ? ['u1'] : []);
  },
);

test('garm-D15: a forced delete goes on forced after a crash in mid-call', async () => {
  const site = await Site.open({ hosts: 1 });
  const before = await Replica.start(site, 'a');
  await before.hello();
  await site.run(1_000);
  expect((await before.hosts.request('h1', forced, by)).kind).toBe('accepted');
  before.kill();
  expect(site.record('h1')?.host?.status?.run?.phase).not.toBe(RunPhase.ENDED);
  await Replica.start(site, 'a');
  await site.run(1_000);
  expect(removals(site)).toBe(1);
  expect(site.disk.changesOf('abandonedResources.u1')).toHaveLength(1);
});

test('garm-D17: what was forgotten before a crash is asked again, removed once', async () => {
  const site = await Site.open({ hosts: 1 });
  const before = await Replica.start(site, 'a');
  await forgetting(site, before);
  expect(forgetsFor(before)).toContain('u1');
  // The agent has forgotten, and its word is lost with the process.
  before.kill();
  const after = await Replica.start(site, 'a');
  await after.hello();
  await site.run(1_000);
  expect(forgetsFor(after)).toContain('u1');
  await after.forgotten('u1');
  await after.forgotten('u1');
  expect(removals(site)).toBe(1);
});

test('garm-D23: a lost word of the agent costs one resync, for it is asked again', async () => {
  const site = await Site.open({ hosts: 1, resyncIntervalMs: 30_000 });
  const replica = await Replica.start(site, 'a');
  await forgetting(site, replica);
  const asked = forgetsFor(replica).length;
  const revision = site.disk.latest();
  await site.run(30_000);
  expect(forgetsFor(replica).length).toBeGreaterThan(asked);
  expect(site.disk.latest(), 'asking writes nothing').toBe(revision);
  await replica.forgotten('u1');
  expect(removals(site)).toBe(1);
});

test('garm-D27: hosts to be deleted take no slot of a limit, and keep addresses', async () => {
  const site = await Site.open({ hosts: 3 });
  const record = rack(site);
  if (record?.rack === undefined) throw new Error('no rack');
  record.rack.spec = create(RackSpecSchema, { limits: { runs: 1 } });
  await site.put('racks.r1', toBinary(wire.RackRecordSchema, record));
  const replica = await Replica.start(site, 'a');
  await replica.hello();
  await site.run(1_000);
  for (const operation of replica.operations()) {
    await replica.report(operation, verifiedAs(operation.hostUid));
  }
  await site.run(5_000);
  const places = rack(site);
  expect(places?.running).toHaveLength(1);
  expect(places?.queued).toHaveLength(2);
  for (const { hostUid } of places?.queued ?? []) {
    await replica.hosts.request(hostUid.replace('u', 'h'), normal, by);
  }
  await site.run(5_000);
  expect(rack(site)?.running).toHaveLength(1);
  expect(rack(site)?.queued).toEqual([]);
  for (const { hostUid } of places?.queued ?? []) {
    const hostId = hostUid.replace('u', 'h');
    const spec = site.record(hostId)?.host?.spec;
    if (spec === undefined) throw new Error(`${hostId} is gone`);
    for (const { key } of reservedValues(spec)) {
      const last = site.disk.changesOf(key).at(-1);
      expect(last?.kind, `${key} stays reserved`).toBe('put');
    }
  }
});

test('garm-D29: of two replicas that carry out one removal, one writes it', async () => {
  const site = await Site.open({ hosts: 1 });
  const [a, b] = [await Replica.start(site, 'a'), await Replica.start(site, 'b')];
  const outcomes = await Promise.all(
    [a, b].map((replica) => replica.hosts.request('h1', forced, by)),
  );
  await site.run(1_000);
  expect(outcomes.map(({ kind }) => kind).toSorted()[0]).not.toBe('refused');
  expect(removals(site)).toBe(1);
  expect(site.disk.changesOf('abandonedResources.u1')).toHaveLength(1);
  expect(rack(site)?.tombstones).toEqual(['u1']);
});

test('garm-D31: an agent that lists nothing of a host takes nothing from it', async () => {
  const site = await Site.open({ hosts: 2 });
  const replica = await Replica.start(site, 'a');
  for (let round = 0; round < 3; round++) {
    await replica.hello([]);
    await site.run(120_000);
  }
  for (const hostId of site.hostIds()) {
    expect(site.record(hostId)).toBeDefined();
    expect(site.record(hostId)?.host?.status?.deletion).toBeUndefined();
  }
});
