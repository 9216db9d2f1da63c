/** The usual durations of runs: medians of the last successes, of the host or its rack. */
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  asRunNumber,
  type HostId,
  type Run,
  RunKind,
  RunOutcome,
  RunSchema,
  StepState,
  store as wire,
} from '@rackwright/messages';
import { nodeRandom } from '@rackwright/platform/node';
import { openMemoryStore, type StateStore, storeKey } from '@rackwright/store';
import { expect, test } from 'vitest';
import { HostIndex } from './host-index.ts';
import { UsualDurations } from './usual.ts';

const manual = { manual: true, workflowRun: '' };
const clean = { kind: RunKind.CLEAN, manual: false, workflowRun: '', steps: [] };

async function world() {
  const clock = { nowMs: 1_000_000 };
  const store = await openMemoryStore({ random: nodeRandom() });
  const index = new HostIndex();
  for (const [id, rack] of [
    ['h1', 'r1'],
    ['h2', 'r1'],
    ['h3', 'r2'],
  ] as const) {
    const host = { name: `hosts/${id}`, uid: `u-${id}`, spec: { rack: `racks/${rack}` } };
    index.note(id, create(wire.HostRecordSchema, { host }), 1);
  }
  const deps = { store, clock: { nowMs: () => clock.nowMs } as never };
  return { clock, store, usual: () => new UsualDurations(deps, index) };
}

let numbers = 0n;

async function ran(
  store: StateStore,
  hostId: HostId,
  seconds: number,
  more: Exclude<MessageInitShape<typeof RunSchema>, Run> = {},
): Promise<void> {
  numbers += 1n;
  const run = create(RunSchema, {
    kind: RunKind.CLEAN,
    number: asRunNumber(numbers),
    outcome: RunOutcome.SUCCEEDED,
    startTime: timestampFromMs(0),
    endTime: timestampFromMs(seconds * 1_000),
    ...more,
  });
  const record = create(wire.FinishedRunRecordSchema, { hostUid: `u-${hostId}`, run });
  const key = storeKey('runs', `u-${hostId}`, String(numbers));
  await store.put(key, toBinary(wire.FinishedRunRecordSchema, record), 'absent');
}

test('the host’s own successes come first, then those of its rack alone', async () => {
  const { store, usual } = await world();
  for (const seconds of [100, 300, 200]) await ran(store, 'h2', seconds);
  await ran(store, 'h3', 9_000);
  expect((await usual().of('h1')).runMs(clean)).toBe(200_000);
  expect((await usual().of('h3')).runMs(clean)).toBe(9_000_000);
  await ran(store, 'h1', 40);
  await ran(store, 'h1', 50);
  expect((await usual().of('h1')).runMs(clean)).toBe(45_000);
});

test('a run that cannot be decoded hides no other, of its host or of the rack', async () => {
  const { store, usual } = await world();
  await ran(store, 'h1', 40);
  await store.put(storeKey('runs', 'u-h1', '999'), Uint8Array.of(255, 255), 'absent');
  expect((await usual().of('h1')).runMs(clean)).toBe(40_000);
  expect((await usual().of('h2')).runMs(clean)).toBe(40_000);
});

test('only the last ten count, and nothing that failed', async () => {
  const { store, usual } = await world();
  for (let n = 0; n < 30; n++) await ran(store, 'h1', 7_000);
  for (let n = 0; n < 10; n++) await ran(store, 'h1', 60);
  await ran(store, 'h1', 1, { outcome: RunOutcome.FAILED });
  expect((await usual().of('h1')).runMs(clean)).toBe(60_000);
});

test('a clean takes as long as others that boot, or as others that do not', async () => {
  const { store, usual } = await world();
  const boot = { name: 'power.bootRunner', arguments: {} };
  const booted = [{ ...boot, state: StepState.SKIPPED }];
  await ran(store, 'h1', 60, { steps: booted });
  expect((await usual().of('h1')).runMs({ ...clean, steps: [boot] })).toBeUndefined();
  await ran(store, 'h1', 200, { steps: [boot] });
  const { runMs } = await usual().of('h1');
  expect(runMs({ ...clean, steps: booted })).toBe(60_000);
  expect(runMs({ ...clean, steps: [boot] })).toBe(200_000);
});

test('lists that people wrote are compared with lists of the same steps', async () => {
  const { store, usual } = await world();
  const steps = (seconds: string) => [{ name: 'wait', arguments: { seconds } }, { name: 'hold' }];
  await ran(store, 'h1', 70, { ...manual, steps: steps('60') });
  await ran(store, 'h1', 5, { ...manual, steps: steps('1') });
  const times = await usual().of('h1');
  const asked = (seconds: string) => ({
    ...clean,
    ...manual,
    steps: steps(seconds).map((step) => ({ arguments: {}, ...step })),
  });
  expect(times.runMs(asked('60'))).toBe(70_000);
  expect(times.runMs(asked('1'))).toBe(5_000);
  expect(times.runMs(asked('2'))).toBeUndefined();
  expect(times.runMs(clean)).toBeUndefined();
});

test('steps have times of their own, those of a template by their own names', async () => {
  const { store, usual } = await world();
  const workflowRun = 'hosts/h1/workflows/t1/runs/1';
  const step = (
    name: string,
    title: string,
    seconds: number,
    state: StepState = StepState.SUCCEEDED,
  ) => ({
    name,
    title,
    state,
    startTime: timestampFromMs(0),
    endTime: timestampFromMs(seconds * 1_000),
  });
  const kind = RunKind.WORKFLOW;
  const steps = [
    step('power.off', '', 3),
    step('run.script', 'long', 90),
    step('run.script', 'short', 1),
    step('run.script', 'bad', 5, StepState.FAILED),
  ];
  await ran(store, 'h2', 100, { kind, workflowRun, outcome: RunOutcome.FAILED, steps });
  const times = await usual().of('h1');
  const of = { kind, manual: true, workflowRun: 'hosts/h1/workflows/t1/runs/7', steps: [] };
  expect(times.stepMs(of, { name: 'run.script', title: 'long' })).toBe(90_000);
  expect(times.stepMs(of, { name: 'run.script', title: 'short' })).toBe(1_000);
  expect(times.stepMs(of, { name: 'run.script', title: 'bad' })).toBeUndefined();
  expect(times.stepMs(clean, { name: 'power.off', title: '' })).toBe(3_000);
  const other = { ...of, workflowRun: 'hosts/h1/workflows/t2/runs/1' };
  expect(times.stepMs(other, { name: 'run.script', title: 'long' })).toBeUndefined();
});

test('usual times are cached for a minute, and then read again', async () => {
  const { clock, store, usual } = await world();
  const remembered = usual();
  await ran(store, 'h1', 10);
  expect((await remembered.of('h1')).runMs(clean)).toBe(10_000);
  await ran(store, 'h1', 30);
  expect((await remembered.of('h1')).runMs(clean)).toBe(10_000);
  clock.nowMs += 61_000;
  expect((await remembered.of('h1')).runMs(clean)).toBe(20_000);
});
