/** A host in deletion while the agent of its rack is revoked: no agent can be asked. */
import { DeletionMode, HostGoal, RunPhase, store as wire } from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { expect, test } from 'vitest';
import { connectAgent, proved } from '../testing/plain-agent.ts';
import { type Replica, type Rig, rigWith } from '../testing/rig.ts';

/** A host that is on, whose rack's agent was revoked. */
async function revoked(): Promise<{ rig: Rig; replica: Replica }> {
  const rig = rigWith({ goal: HostGoal.MANAGEABLE });
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  await plain.report(proved(1, { poweredOn: true }));
  await plain.cut();
  const rack = rig.rack();
  if (rack === undefined) throw new Error('there is a rack');
  rack.agentPublicKey = new Uint8Array();
  rack.revokedKeys.push({ ...revokedKey });
  rig.put(storeKey('racks', 'r1'), wire.RackRecordSchema, rack);
  await rig.advance(1);
  return { rig, replica };
}

const revokedKey = {
  $typeName: 'rackwright.store.v1.RevokedKeyRecord',
  keySha256: new Uint8Array(32),
  by: 'user:ann',
  reason: 'stolen',
  replaced: false,
  rack: 'racks/r1',
} as const;

test('a host whose agent was revoked stays until somebody could switch it off', async () => {
  const { rig, replica } = await revoked();
  expect(rig.status()).toMatchObject({ poweredOn: true });
  await replica.request({ kind: 'delete', reason: 'sold' });
  await rig.advance(3_600_000);
  expect(rig.status().run).toMatchObject({ phase: RunPhase.WAITING, waiting: { reason: 'agent' } });
  const explanation = await rig.during(replica.hosts.explain('h1'));
  expect(explanation?.unblock.join('\n')).toContain('rackwright rack join-token r1');
  expect(explanation?.unblock.join('\n')).toContain('--force');
});

test('a forced removal takes the host, and leaves word of its power, and a fence', async () => {
  const { rig, replica } = await revoked();
  await replica.request({ kind: 'delete', mode: DeletionMode.FORCE, reason: 'burnt' });
  await rig.advance(3_600_000);
  const left = rig.read(storeKey('abandonedResources', 'u1'), wire.AbandonedRecordSchema);
  expect(left?.resource?.leftBehind.join('\n')).toContain('power: the host could not be switched');
  expect(left?.resource?.fencePending).toBe(true);
  expect(rig.rack()?.tombstones).toEqual(['u1']);
});
