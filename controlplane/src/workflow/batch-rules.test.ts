/** A batch with any results of its hosts. */
import { create } from '@bufbuild/protobuf';
import {
  asWorkflowRunNumber,
  WorkflowBatchStop,
  WorkflowRunSchema,
  WorkflowRunState,
  store as wire,
} from '@rackwright/messages';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  foldBatch,
  hasSlot,
  hostsWithSlot,
  isBatchEnded,
  isUnread,
  type SlotState,
} from './batch-rules.ts';

const { PENDING, RUNNING, SUCCEEDED, FAILED, TIMED_OUT, CANCELLED } = WorkflowRunState;
const ended = [SUCCEEDED, FAILED, TIMED_OUT, CANCELLED] as const;

function batch(hosts: number, maxParallel: number, maxFailures: number) {
  const names = Array.from({ length: hosts }, (_, index) => `hosts/h${index + 1}`);
  return create(wire.WorkflowBatchRecordSchema, {
    workflowBatch: {
      name: 'workflowBatches/b1',
      uid: 'b1',
      spec: { template: 'templates/t', maxParallel, maxFailures },
      status: { hosts: names.map((host) => ({ host, state: PENDING })) },
    },
    hostUids: names.map((_, index) => `u${index + 1}`),
  });
}

const slotOf = (state: WorkflowRunState): SlotState => ({
  kind: 'run',
  run: create(WorkflowRunSchema, { number: asWorkflowRunNumber(1n), state }),
});

const states = (record: wire.WorkflowBatchRecord) =>
  record.workflowBatch?.status?.hosts.map(({ state }) => state) ?? [];

test('a batch runs no more at once than it may, each host once, and ends', () => {
  const luck = fc.array(fc.constantFrom(...ended, RUNNING, PENDING), { maxLength: 60 });
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 12 }),
      fc.integer({ min: 1, max: 5 }),
      fc.nat(3),
      luck,
      fc.nat(80),
      (hosts, maxParallel, maxFailures, lucks, cancelAt) => {
        let record = batch(hosts, maxParallel, maxFailures);
        const slots = new Map<number, number>();
        for (let round = 0; round < 200 && !isBatchEnded(record); round++) {
          if (round === cancelAt) {
            record.cancelled = create(wire.WorkflowBatchRecordSchema, {
              cancelled: { by: 'user:a' },
            }).cancelled as NonNullable<typeof record.cancelled>;
          }
          const at = hostsWithSlot(record);
          const before = states(record);
          const told = new Map(
            at.map((index) => [index, slotOf(lucks.shift() ?? SUCCEEDED)] as const),
          );
          record = foldBatch(record, told, () => round % 3 === 0, 1_000 + round);
          for (const index of hostsWithSlot(record)) {
            if (before[index] === PENDING) slots.set(index, (slots.get(index) ?? 0) + 1);
          }
          expect(hostsWithSlot(record).length).toBeLessThanOrEqual(maxParallel);
          for (const [index, state] of states(record).entries()) {
            const was = before[index] ?? PENDING;
            if (was !== PENDING && was !== RUNNING) expect(state, 'an end stands').toBe(was);
          }
        }
        expect(isBatchEnded(record), 'it ends').toBe(true);
        expect([...slots.values()].every((count) => count === 1)).toBe(true);
        expect(states(record)).not.toContain(RUNNING);
        const left = states(record).filter((state) => state === PENDING);
        const { stop, stoppedReason } = record.workflowBatch?.status ?? {};
        if (left.length > 0) expect(stop).toBe(WorkflowBatchStop.FAILURES);
        expect(stoppedReason !== '').toBe(stop !== WorkflowBatchStop.UNSPECIFIED);
        if (record.cancelled !== undefined) expect(left).toEqual([]);
      },
    ),
  );
});

test('idle hosts go first, and only that has a slot may start', () => {
  const record = foldBatch(batch(3, 1, 1), new Map(), (host) => host === 'hosts/h1', 0);
  expect(states(record)).toEqual([PENDING, RUNNING, PENDING]);
  expect(['u1', 'u2', 'u3'].map((uid) => hasSlot(record, uid))).toEqual([false, true, false]);
  expect(hasSlot(record, 'u9')).toBe(false);
});

test('a cancelled batch gives no slot, and has still to note how a run of it ended', () => {
  const record = foldBatch(batch(3, 1, 1), new Map(), () => false, 0);
  record.cancelled = create(wire.WorkflowBatchRecordSchema, { cancelled: {} }).cancelled;
  expect(hasSlot(record, 'u1')).toBe(false);
  expect(['u1', 'u2', 'u9'].map((uid) => isUnread(record, uid))).toEqual([true, false, false]);
});

test.each([
  [SUCCEEDED, SUCCEEDED],
  [FAILED, FAILED],
  [TIMED_OUT, TIMED_OUT],
  [CANCELLED, CANCELLED],
  // Of a newer version.
  [99 as WorkflowRunState, FAILED],
])('a host whose run ended as %i ends as %i', (run, host) => {
  const begun = foldBatch(batch(1, 1, 0), new Map(), () => false, 0);
  const over = foldBatch(begun, new Map([[0, slotOf(run)]]), () => false, 1);
  expect(states(over)).toEqual([host]);
});

test('failed runs are counted, and stop the batch at its limit', () => {
  const begun = foldBatch(batch(3, 1, 1), new Map(), () => false, 0);
  const stopped = foldBatch(begun, new Map([[0, slotOf(FAILED)]]), () => false, 1);
  expect(states(stopped)).toEqual([FAILED, PENDING, PENDING]);
  expect(isBatchEnded(stopped)).toBe(true);
});
