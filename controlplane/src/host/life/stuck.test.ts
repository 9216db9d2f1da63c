/** Whether work that nobody can do still protects a host, with real sessions. */
import { HostGoal, HostState, RunKind } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { connectAgent, proved } from '../testing/plain-agent.ts';
import { rigWith } from '../testing/rig.ts';

const remove = { kind: 'delete', reason: 'sold' } as const;

test('a run at a hold protects the host for as long as its agent was there lately', async () => {
  const rig = rigWith({ goal: HostGoal.MANAGEABLE });
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  await plain.report(proved());
  await replica.request({ kind: 'clean', steps: [{ step: 'hold', arguments: {} }] });
  await plain.beat(600_000);
  expect(rig.status().run).toMatchObject({ kind: RunKind.CLEAN, waiting: { reason: 'hold' } });
  expect(await replica.request(remove)).toMatchObject({ kind: 'refused' });
  await plain.cut();
  await rig.advance(85_000);
  expect(await replica.request(remove)).toMatchObject({ kind: 'refused' });
  await rig.advance(10_000);
  expect(await replica.request(remove)).toMatchObject({ kind: 'accepted' });
  expect(rig.status()).toMatchObject({ state: HostState.MANAGEABLE, deletion: { reason: 'sold' } });
});
