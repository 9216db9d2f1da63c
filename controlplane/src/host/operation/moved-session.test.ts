/** Orders that are stored while the agent moves from one replica to another. */
import { HostGoal } from '@rackwright/messages';
import type { StateStore } from '@rackwright/store';
import { expect, test } from 'vitest';
import { Gate } from '../testing/gate.ts';
import { lateWatch } from '../testing/late-watch.ts';
import { connectAgent, proved } from '../testing/plain-agent.ts';
import { rigWith } from '../testing/rig.ts';

const journal = { id: 'j1', generation: 1n, life: 7n };

/** Holds back the writes of a record while the gate is closed. */
function lateWrites(key: string) {
  const gate = new Gate();
  const wrapStore = (store: StateStore): StateStore => {
    const put = store.put.bind(store);
    store.put = async (...args) => {
      if (args[0] === key) await gate.pass();
      return await put(...args);
    };
    return store;
  };
  return { gate, wrapStore };
}

test('an order that a replica stores after the agent has moved to another is sent', async () => {
  const rig = rigWith({ goal: HostGoal.MANAGEABLE });
  const { gate, wrapStore } = lateWrites('hosts.h1');
  const a = await rig.replica({ id: 'a', resyncIntervalMs: 60_000, wrapStore });
  const b = await rig.replica({ id: 'b', resyncIntervalMs: 60_000 });
  const before = await connectAgent(rig, a, { journal });
  await before.report(proved(), before.last('u1'));
  await rig.advance(1_000);
  gate.close();
  const asked = a.request({ kind: 'verify' });
  await rig.advance(100);
  const after = await connectAgent(rig, b, { journal });
  gate.open();
  await asked;
  await rig.advance(1_000);
  const ordered = rig.record().operation?.operation?.id;
  expect(ordered).toMatch(/^u1\/2\//);
  expect(after.ids().filter((id) => id === ordered)).toHaveLength(1);
});

test('an agent is welcome once the replica knows what was written before', async () => {
  const rig = rigWith({ goal: HostGoal.MANAGEABLE });
  const { gate, wrapStore } = lateWatch();
  const a = await rig.replica({ id: 'a' });
  const b = await rig.replica({ id: 'b', wrapStore });
  const before = await connectAgent(rig, a, { journal });
  gate.close();
  await before.report(proved(), before.last('u1'));
  const after = await connectAgent(rig, b, { journal });
  await rig.advance(500);
  expect(after.of('welcome')).toEqual([]);
  gate.open();
  await rig.advance(500);
  expect(after.of('welcome')).toHaveLength(1);
});
