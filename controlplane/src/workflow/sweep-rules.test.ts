/** How many runs stay, and for how long a run that timed out is shown. */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  asRunNumber,
  asWorkflowRunNumber,
  type Run,
  RunKind,
  type RunNumber,
  RunOutcome,
  RunPhase,
  RunSchema,
  WorkflowRunState,
  store as wire,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { runsKeptMax } from './record.ts';
import { finishedToRemove, runsToDrop } from './sweep-rules.ts';

const endMs = Date.UTC(2026, 0, 1);
const timedOutShownMs = 10_000;

function run(number: number, kind: RunKind, outcome: RunOutcome = RunOutcome.SUCCEEDED): Run {
  return create(RunSchema, {
    ...{ number: asRunNumber(number), kind, outcome, phase: RunPhase.ENDED },
    endTime: timestampFromMs(endMs),
  });
}

const hostAfter = (runCount: number) =>
  create(wire.HostRecordSchema, { runCount: BigInt(runCount) });

/** The numbers of the removed runs at `nowMs`, in ascending order. */
function gone(runs: readonly Run[], nowMs = endMs): number[] {
  const removed = finishedToRemove(runs, [], hostAfter(100), { nowMs, timedOutShownMs });
  return removed.map(({ number }) => Number(number)).toSorted((a, b) => a - b);
}

test('the last ten of eleven cleans stay, in whatever order they are listed', () => {
  expect(runsKeptMax).toBe(10);
  const cleans = Array.from({ length: 11 }, (_, index) => run(index + 1, RunKind.CLEAN));
  expect(gone(cleans)).toEqual([1]);
  expect(gone(cleans.toReversed())).toEqual([1]);
  expect(gone(cleans.slice(1))).toEqual([]);
});

test('each kind has its own ten', () => {
  const cleans = Array.from({ length: 10 }, (_, index) => run(index + 1, RunKind.CLEAN));
  const verifies = Array.from({ length: 12 }, (_, index) => run(index + 21, RunKind.VERIFY));
  expect(gone([...cleans, ...verifies])).toEqual([21, 22]);
});

test('a run that timed out is there until its time is over, and not after', () => {
  const timedOut = [run(1, RunKind.CLEAN, RunOutcome.TIMED_OUT)];
  expect(gone(timedOut, endMs)).toEqual([]);
  expect(gone(timedOut, endMs + timedOutShownMs - 1)).toEqual([]);
  expect(gone(timedOut, endMs + timedOutShownMs)).toEqual([1]);
});

test('a run whose line is not yet in the timeline stays', () => {
  const sweep = { nowMs: endMs + timedOutShownMs, timedOutShownMs };
  const timedOut = [run(7, RunKind.CLEAN, RunOutcome.TIMED_OUT)];
  expect(finishedToRemove(timedOut, [], hostAfter(6), sweep)).toEqual([]);
  expect(finishedToRemove(timedOut, [], hostAfter(7), sweep)).toHaveLength(1);
});

test('a workflow’s run that timed out goes when it has been shown, and others stay', () => {
  const ended = (number: bigint, state: WorkflowRunState, hostRun: RunNumber) => ({
    ...{ number: asWorkflowRunNumber(number), state, run: { number: hostRun } },
    endTime: timestampFromMs(endMs),
  });
  const record = create(wire.WorkflowRecordSchema, {
    workflow: { status: { run: ended(3n, WorkflowRunState.SUCCEEDED, asRunNumber(12)) } },
    earlierRuns: [
      ended(2n, WorkflowRunState.TIMED_OUT, asRunNumber(11)),
      ended(1n, WorkflowRunState.FAILED, asRunNumber(10)),
    ],
  });
  const drop = (nowMs: number, runCount = 100) => [
    ...runsToDrop(record, hostAfter(runCount), { nowMs, timedOutShownMs }),
  ];
  expect(drop(endMs + timedOutShownMs - 1)).toEqual([]);
  expect(drop(endMs + timedOutShownMs)).toEqual([2n]);
  expect(drop(endMs + timedOutShownMs, 10)).toEqual([]);
});
