import { clone } from '@bufbuild/protobuf';
import { DeletionMode, HoldScope, HostState, store as wire } from '@rackwright/messages';
import { nodeRandom } from '@rackwright/platform/node';
import { storeKey } from '@rackwright/store';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readRecord, writeRecord } from '../records/index.ts';
import {
  addSurroundings,
  type Fixture,
  failureOf,
  specOf,
  startFixture,
  violatedFields,
} from '../services/rpc.fixture.ts';

let fixture: Fixture;

beforeEach(async () => {
  fixture = await startFixture();
  await addSurroundings(fixture);
  await joinAgent();
});

afterEach(() => fixture.stop());

/** An agent of the rack has enrolled, and is away. */
async function joinAgent(): Promise<void> {
  const { store } = fixture;
  const key = storeKey('racks', 'r1');
  const kept = await readRecord(store, wire.RackRecordSchema, key);
  if (kept === undefined) throw new Error('no rack');
  const record = clone(wire.RackRecordSchema, kept.record);
  record.agentPublicKey = Uint8Array.of(1, 2, 3);
  const writer = { store, random: nodeRandom() };
  await writeRecord(writer, wire.RackRecordSchema, key, record, kept.revision);
}

/** Creates h1, removes it by force, and returns its uid. */
async function removed(): Promise<string> {
  const { hosts } = fixture;
  const { uid } = await hosts.createHost({ hostId: 'h1', host: { spec: specOf(1) } });
  const gone = await hosts.deleteHost({
    name: 'hosts/h1',
    mode: DeletionMode.FORCE,
    reason: 'burnt down',
  });
  expect(gone.status?.state).toBe(HostState.GONE);
  return uid;
}

test('the tombstone of a forced removal is read, listed, and resolved with a reason', async () => {
  const { abandoned, racks } = fixture;
  const uid = await removed();
  const name = `abandonedResources/${uid}`;
  const left = await abandoned.getAbandonedResource({ name });
  expect(left).toMatchObject({
    name,
    host: 'hosts/h1',
    hostUid: uid,
    rack: 'racks/r1',
    bmcAddress: '192.0.2.1:623',
    bootMacs: ['52:54:00:00:00:01'],
    removedBy: 'user:admin',
    reason: 'burnt down',
    fencePending: true,
  });
  expect(left.leftBehind).toEqual([expect.stringMatching(/^agent: .* not connected$/)]);
  expect((await racks.getRack({ name: 'racks/r1' })).status?.tombstones).toBe(1);

  const silent = abandoned.resolveAbandonedResource({ name, reason: '' });
  expect(await violatedFields(silent)).toEqual(['reason']);
  const resolved = await abandoned.resolveAbandonedResource({ name, reason: 'unracked' });
  expect(resolved.resolution).toMatchObject({ by: 'user:admin', reason: 'unracked' });
  expect(resolved.fencePending).toBe(true);
  expect((await abandoned.listAbandonedResources({})).abandonedResources).toEqual([]);
  const all = await abandoned.listAbandonedResources({ showResolved: true });
  expect(all.abandonedResources).toEqual([resolved]);
  expect(await abandoned.resolveAbandonedResource({ name, reason: 'again' })).toEqual(resolved);
  expect((await failureOf(abandoned.getAbandonedResource({ name: `${name}0` }))).kind).toBe(
    'notFound',
  );
});

test('a host enrolled with an address of one removed by force is accepted, and held', async () => {
  const { hosts, abandoned } = fixture;
  const uid = await removed();
  const again = await hosts.createHost({ hostId: 'h1', host: { spec: specOf(1) } });
  expect(again.uid).not.toBe(uid);
  expect(again.status?.deletion).toBeUndefined();
  expect(again.status?.holds).toEqual([
    expect.objectContaining({
      scope: HoldScope.WORK,
      by: 'system',
      reason: expect.stringContaining(`fencePending: an agent has still to forget abandonedRe`),
    }),
  ]);
  const sameMac = { ...specOf(2), bootMacs: specOf(1).bootMacs };
  await hosts.deleteHost({ name: 'hosts/h1', mode: DeletionMode.FORCE });
  const other = await hosts.createHost({ hostId: 'h2', host: { spec: sameMac } });
  expect(other.status?.holds).toHaveLength(1);
  const free = await hosts.createHost({ hostId: 'h3', host: { spec: specOf(3) } });
  expect(free.status?.holds).toEqual([]);

  const plain = hosts.releaseHold({ name: 'hosts/h2', reason: 'in a hurry' });
  expect((await failureOf(plain)).message).toContain('physically_disconnected');
  for (const { name } of (await abandoned.listAbandonedResources({})).abandonedResources) {
    await abandoned.resolveAbandonedResource({
      name,
      reason: 'the cable is in my hand',
      physicallyDisconnected: true,
    });
  }
  await expect
    .poll(async () => (await hosts.getHost({ name: 'hosts/h2' })).status?.holds)
    .toEqual([]);
});

test('a person lifts a host’s fence by saying that the old machine is disconnected', async () => {
  const { hosts } = fixture;
  await removed();
  await hosts.createHost({ hostId: 'h2', host: { spec: specOf(1) } });
  const freed = await hosts.releaseHold({
    name: 'hosts/h2',
    hold: 'fencePending',
    reason: 'the cable is in my hand',
    physicallyDisconnected: true,
  });
  expect(freed.status?.holds).toEqual([]);
  const { revisions } = await hosts.listHostRevisions({ name: 'hosts/h2' });
  expect(revisions.map(({ cause }) => cause).join('\n')).toContain(
    'hold released (said to be physically disconnected): the cable is in my hand',
  );
  // A change of another field does not raise it again.
  const relabelled = await hosts.updateHost({
    host: { name: 'hosts/h2', labels: { site: 'a' } },
    updateMask: { paths: ['labels'] },
  });
  expect(relabelled.status?.holds).toEqual([]);
});

test('a host that is given an address of one removed by force is held from then on', async () => {
  const { hosts } = fixture;
  await removed();
  await hosts.createHost({ hostId: 'h2', host: { spec: specOf(2) } });
  const moved = await hosts.updateHost({
    host: { name: 'hosts/h2', spec: { bmc: specOf(1).bmc } },
    updateMask: { paths: ['spec.bmc'] },
  });
  expect(moved.status?.holds.map(({ reason }) => reason)).toEqual([
    expect.stringContaining('fencePending'),
  ]);
});

test('a rack goes only when no fence of its tombstones stands', async () => {
  const { racks, abandoned } = fixture;
  const name = `abandonedResources/${await removed()}`;
  const refused = await failureOf(racks.deleteRack({ name: 'racks/r1' }));
  expect(refused).toMatchObject({ kind: 'failedPrecondition', reason: 'RACK_HAS_TOMBSTONES' });
  expect(refused.message).toContain(name);
  const reason = 'the whole rack is scrap';
  await abandoned.resolveAbandonedResource({ name, reason, physicallyDisconnected: true });
  await racks.deleteRack({ name: 'racks/r1' });
  expect((await failureOf(racks.getRack({ name: 'racks/r1' }))).kind).toBe('notFound');
});

test('a busy host is refused forced or not, and its record stays byte for byte', async () => {
  const { hosts, store } = fixture;
  await hosts.createHost({ hostId: 'h1', host: { spec: specOf(1) } });
  await hosts.claimHost({ name: 'hosts/h1', reason: 'database' });
  const key = storeKey('hosts', 'h1');
  await expect
    .poll(async () => (await hosts.getHost({ name: 'hosts/h1' })).status?.run)
    .toBeDefined();
  const before = await store.get(key);
  for (const mode of [DeletionMode.NORMAL, DeletionMode.FORCE]) {
    const error = await failureOf(
      hosts.deleteHost({ name: 'hosts/h1', mode, requestId: `${mode}` }),
    );
    expect(error).toMatchObject({ kind: 'failedPrecondition', reason: 'HOST_REFUSED' });
    expect(error.message).toMatch(/busy: claimed by user:admin \(database\) since 20\d\d-/);
  }
  expect(await store.get(key)).toEqual(before);
});
