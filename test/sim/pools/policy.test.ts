/** Each rule about when a pool takes a host finds what breaks it, and nothing else. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  asRunNumber,
  HostState,
  type PoolSpecSchema,
  RolloutSlotState,
  RunKind,
  store,
} from '@rackwright/messages';
import { EventHeap } from '@rackwright/sim';
import { expect, test } from 'vitest';
import { GateBook } from './gate-hook.ts';
import { PolicyRules } from './policy.ts';
import { digestOfImage, imageReferenceOf } from './registry.ts';
import { windows, wordsOf } from './windows.ts';

type Spec = MessageInitShape<typeof PoolSpecSchema>;
type Slot = { readonly host: number; readonly state?: RolloutSlotState };

const [old, wanted] = [imageReferenceOf('a'), imageReferenceOf('b')];
const { GATE, PROVING, STARTING } = RolloutSlotState;
/** Ten minutes in. */
const nowMs = 600_000;
const facts = { isBack: false, threshold: 1, most: 4 };
const uidOf = (host: number) => `u${host}`;

function recordOf(spec: Spec, slots: readonly Slot[], more: object = {}): store.PoolRecord {
  const target = { image: wanted, digest: digestOfImage('b') };
  const taken = slots.map(({ host, state = STARTING }) => ({
    ...{ host: `hosts/h${host}`, hostUid: uidOf(host), rack: 'racks/r1', image: wanted, state },
    ...{ number: BigInt(host), run: asRunNumber(1), kind: RunKind.REIMAGE },
  }));
  return create(store.PoolRecordSchema, {
    pool: { name: 'pools/p1', spec, status: { target, slots: taken } },
    members: [1, 2, 3, 4].map((host) => ({ host: `hosts/h${host}`, hostUid: uidOf(host) })),
    ...more,
  });
}

/** What is found when the pool goes from the one record to the other. */
async function found(
  before: store.PoolRecord,
  after: store.PoolRecord,
  { onTarget = [] as readonly number[], provedMsAgo = 0, passes = false } = {},
): Promise<string[]> {
  const texts: string[] = [];
  const [heap, gates] = [new EventHeap(), new GateBook()];
  const view = { heap, gates, wallStartMs: Date.UTC(2026, 0, 1), count: () => undefined };
  const rules = new PolicyRules({ view, found: (rule) => texts.push(rule) });
  for (const host of [1, 2, 3, 4]) {
    const image = onTarget.includes(host) ? wanted : old;
    const status = { state: HostState.PROVISIONED, image, poweredOn: true };
    const own = { name: `hosts/h${host}`, uid: uidOf(host), status };
    rules.changed(create(store.HostRecordSchema, { host: own }));
  }
  heap.after(nowMs - provedMsAgo, () => {
    rules.proved(`u1/1 ${digestOfImage('b')}`, heap.nowMs);
  });
  heap.after(nowMs, () => undefined);
  await heap.run(nowMs, () => false);
  if (passes) gates.pass({ pool: 'pools/p1', host: 'hosts/h1', to: wanted, order: 1 });
  rules.written(before, after, facts);
  return texts;
}

const none = (spec: Spec, slots: readonly Slot[] = []) => recordOf(spec, slots);
const inWindow = (index: number): Spec => ({
  rollout: { windows: windows.slice(index, index + 1).map(wordsOf) },
});

test('P11: a host goes out in a window only', async () => {
  // Ten minutes after midnight: the hour of the last one began at five past.
  const [shut, open] = [inWindow(2), inWindow(3)];
  expect(await found(none(shut), recordOf(shut, [{ host: 1 }]))).toEqual(['P11']);
  expect(await found(none(open), recordOf(open, [{ host: 1 }]))).toEqual([]);
});

test('P12: a host goes out only once the webhook has let its slot through', async () => {
  const spec: Spec = { rollout: { gate: { webhookUrl: 'http://hooks.sim/gate' } } };
  const waits = recordOf(spec, [{ host: 1, state: GATE }]);
  const goes = recordOf(spec, [{ host: 1 }]);
  expect(await found(none(spec), waits)).toEqual([]);
  expect(await found(waits, goes)).toEqual(['P12']);
  expect(await found(waits, goes, { passes: true })).toEqual([]);
});

test('P13: the first host goes alone, and a wave after those before it', async () => {
  const two = recordOf({}, [{ host: 1 }, { host: 2 }]);
  expect(await found(recordOf({}, [{ host: 1 }]), two)).toEqual(['P13']);
  expect(await found(recordOf({}, [{ host: 1 }]), two, { onTarget: [3] })).toEqual([]);
  const waves = [{ name: 'first', hosts: { names: ['hosts/h1', 'hosts/h2'] } }];
  const spec: Spec = { rollout: { waves } };
  const third = recordOf(spec, [{ host: 3 }]);
  expect(await found(none(spec), third, { onTarget: [1] })).toEqual(['P13']);
  expect(await found(none(spec), third, { onTarget: [1, 2] })).toEqual([]);
  const failures = [1, 2].map((host) => ({ hostUid: uidOf(host), digest: digestOfImage('b') }));
  const one = recordOf(spec, [{ host: 3 }], { failures: failures.slice(1) });
  expect(await found(none(spec), one, { onTarget: [1] })).toEqual([]);
  const both = recordOf(spec, [{ host: 3 }], { failures });
  expect(new Set(await found(none(spec), both))).toEqual(new Set(['P13']));
});

test('P14: a paused pool takes nobody, and a pinned host gets its pin', async () => {
  const paused: Spec = { rollout: { paused: true } };
  expect(await found(none(paused), recordOf(paused, [{ host: 1, state: GATE }]))).toEqual(['P14']);
  const waits = recordOf(paused, [{ host: 1, state: GATE }]);
  expect(await found(waits, recordOf(paused, [{ host: 1 }]))).toEqual(['P14']);
  const pinned: Spec = { pins: { 'hosts/h1': old } };
  expect(await found(none(pinned), recordOf(pinned, [{ host: 1 }]))).toEqual(['P14']);
  expect(await found(none(pinned), recordOf(pinned, [{ host: 2 }]))).toEqual([]);
});

test('P15: no more of a rack go than may be out there', async () => {
  const spec: Spec = { rollout: { maxUnavailablePerRack: 1 } };
  const one = recordOf(spec, [{ host: 1 }]);
  const two = recordOf(spec, [{ host: 1 }, { host: 2 }]);
  expect(await found(none(spec), one)).toEqual([]);
  expect(await found(one, two, { onTarget: [3] })).toEqual(['P15']);
});

test('P16: a slot is free after the soak, and nothing goes back unasked', async () => {
  const spec: Spec = { rollout: { soak: { seconds: 60n } } };
  const proving = recordOf(spec, [{ host: 1, state: PROVING }]);
  expect(await found(proving, none(spec), { provedMsAgo: 59_000 })).toEqual(['P16']);
  expect(await found(proving, none(spec), { provedMsAgo: 60_000 })).toEqual([]);
  const another = recordOf({ ...spec, pins: { 'hosts/h1': old } }, []);
  expect(await found(proving, another, { provedMsAgo: 59_000 })).toEqual([]);
  const goneBack = (rollback: boolean, failures: object[]) => {
    const record = recordOf({ rollout: { rollback } }, [], { failures });
    if (record.pool?.status !== undefined) record.pool.status.rolledBackFrom = digestOfImage('b');
    return record;
  };
  const failed = [{ hostUid: 'u1', digest: digestOfImage('b'), counted: true }];
  expect(await found(none({}), goneBack(false, failed))).toEqual(['P16']);
  expect(await found(none({}), goneBack(true, []))).toEqual(['P16']);
  expect(await found(none({}), goneBack(true, failed))).toEqual([]);
});
