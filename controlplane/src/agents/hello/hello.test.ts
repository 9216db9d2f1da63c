/** The answer to Hello: each operation of a journal gets its directive (R10). */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { agent, asIncarnation, HostGoal, HostState, noRevision } from '@rackwright/messages';
import type { StateStore } from '@rackwright/store';
import { describe, expect, test } from 'vitest';
import { connectAgent, type PlainAgent, proved } from '../../host/testing/plain-agent.ts';
import { rigWith } from '../../host/testing/rig.ts';

const { CONTINUE, CANCEL, FORGET } = agent.Directive_Action;
const { JOURNALLED, BEGUN, ENDED } = agent.JournalledOperation_State;
const first = 'u1/1/0/1';
type Listed = MessageInitShape<typeof agent.JournalledOperationSchema>;

function directives(plain: PlainAgent) {
  const [welcome] = plain.of('welcome');
  return welcome?.directives.map(({ operationId, action }) => [operationId, action]);
}

/** A control plane that has just started, over a slow store. */
async function justStarted() {
  const rig = rigWith({ goal: HostGoal.MANAGEABLE });
  const before = await rig.replica();
  const sent = await connectAgent(rig, before);
  expect(sent.ids()).toEqual([first]);
  before.kill();
  const delayMs = (key: string) => (key === 'hosts.h1' ? 200 : 20);
  const replica = await rig.replica({
    startForMs: 21,
    faults: async ({ kind, key }) => {
      if (kind === 'get' || kind === 'list') {
        await new Promise<void>((resolve) => rig.clock.after(delayMs(key), resolve));
      }
      return { kind: 'none' };
    },
  });
  return { rig, replica };
}

describe('right after a start, over a slow store', () => {
  test.each([
    ['waits', JOURNALLED],
    ['is under way', BEGUN],
    ['has ended', ENDED],
  ])('an operation that %s goes on', async (_text, state) => {
    const { rig, replica } = await justStarted();
    const operations = [{ operationId: first, hostUid: 'u1', state }];
    const plain = await connectAgent(rig, replica, { operations }, 2_000);
    expect(directives(plain)).toEqual([[first, CONTINUE]]);
    expect(plain.ids()).toEqual([first]);
    expect(rig.status().holds).toEqual([]);
    plain.send({
      case: 'report',
      value: { sequence: 1n, operationId: first, hostUid: 'u1', result: proved() },
    });
    await rig.advance(2_000);
    expect(rig.status().state).toBe(HostState.MANAGEABLE);
  });

  test('an operation that the agent never got is sent again under its id', async () => {
    const { rig, replica } = await justStarted();
    const plain = await connectAgent(rig, replica, {}, 2_000);
    expect(plain.ids()).toEqual([first]);
  });

  test('the boot snapshot names every host of the rack', async () => {
    const { rig, replica } = await justStarted();
    const plain = await connectAgent(rig, replica, {}, 2_000);
    const [snapshot] = plain.of('bootSnapshot');
    expect(snapshot?.hosts.map(({ hostUid }) => hostUid)).toEqual(['u1']);
  });
});

describe('an operation in the journal', () => {
  test.each<[string, Listed, number]>([
    ['of the present attempt', { operationId: first, hostUid: 'u1', state: BEGUN }, CONTINUE],
    [
      'of an attempt that is over',
      { operationId: 'u1/0/0/1', hostUid: 'u1', state: BEGUN },
      CANCEL,
    ],
    [
      'whose result has not been answered',
      { operationId: 'u1/0/0/1', hostUid: 'u1', state: ENDED },
      CONTINUE,
    ],
    [
      'whose result has been answered',
      { operationId: 'u1/0/0/1', hostUid: 'u1', state: ENDED, answered: true },
      FORGET,
    ],
    ['of an unknown host', { operationId: 'u8/1/0/1', hostUid: 'u8', state: BEGUN }, CANCEL],
    [
      'of an unknown host that has ended',
      { operationId: 'u8/1/0/1', hostUid: 'u8', state: ENDED },
      FORGET,
    ],
  ])('%s gets its directive', async (_text, listed, action) => {
    const rig = rigWith({});
    const replica = await rig.replica();
    await (await connectAgent(rig, replica)).cut();
    const plain = await connectAgent(rig, replica, { operations: [listed] });
    expect(directives(plain)).toEqual([[listed.operationId, action]]);
  });
});

/**
 * A store that fails this many times in a row when h1 is read for the Hello of a second session.
 */
async function failingOnHello(failures: number) {
  const rig = rigWith({ goal: HostGoal.MANAGEABLE });
  const left = { count: 0 };
  const replica = await rig.replica({
    faults: ({ kind, key }) => {
      if (kind === 'get' && key === 'hosts.h1' && left.count > 0) {
        left.count -= 1;
        throw new Error('it was changed by others all the time');
      }
      return { kind: 'none' };
    },
  });
  const first = await connectAgent(rig, replica);
  await first.cut();
  left.count = failures;
  const plain = await connectAgent(rig, replica, { journal: { id: 'j1', generation: 2n } });
  return { rig, plain };
}

test('a host that could not take in a Hello is told again, and gets what it lacks', async () => {
  const { rig, plain } = await failingOnHello(4);
  expect(plain.ids()).toEqual([]);
  await rig.advance(5_000);
  expect(plain.ids()).toEqual([first]);
  expect(plain.ended).toBe(false);
  await plain.report(proved());
  expect(rig.status().state).toBe(HostState.MANAGEABLE);
});

test('an old revision read at a Hello is not taken for a store that has lost data', async () => {
  const rig = rigWith({ goal: HostGoal.MANAGEABLE });
  const old: { revision?: number } = {};
  const wrapStore = (store: StateStore) => {
    const present = store.latestRevision.bind(store);
    store.presentRevision = () => present();
    store.latestRevision = async () => old.revision ?? (await present());
    return store;
  };
  const replica = await rig.replica({ wrapStore });
  const plain = await connectAgent(rig, replica);
  const [welcome] = plain.of('welcome');
  const { incarnation = asIncarnation(''), revision = noRevision } = welcome ?? {};
  await plain.report(proved());
  await plain.cut();
  old.revision = Number(revision) - 1;
  const journal = { id: 'j1', generation: 2n };
  const again = await connectAgent(rig, replica, { journal, seen: { incarnation, revision } });
  expect(rig.rack()?.rack?.status?.restoredStore).toBeUndefined();
  expect(again.of('welcome')[0]?.revision).toBeGreaterThan(revision);
});
