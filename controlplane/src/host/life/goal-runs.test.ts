/** A goal that is repeatedly reached and undone: it is given up, although nothing fails. */
import { create } from '@bufbuild/protobuf';
import { FaultSchema, RunKind, RunPhase } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { explainHost } from '../explain/explain.ts';
import { defaultTiming } from '../pass/timing.ts';
import { verifyFailed } from '../pass/transitions.ts';
import { availableHost, type Bench, statusOf, verified } from '../testing/bench.ts';

const { goalRunsMax, goalRunsWithinMs } = defaultTiming;
const minuteMs = 60_000;

/** Makes the goal request a verify, which succeeds. True: it was started. */
function undoneOnce(host: Bench): boolean {
  statusOf(host).faults.push(create(FaultSchema, { type: verifyFailed }));
  const before = statusOf(host).run?.number;
  host.apply({ kind: 'tick' });
  const { run } = statusOf(host);
  if (run?.number === before || run?.phase === RunPhase.ENDED) return false;
  expect(run?.kind).toBe(RunKind.VERIFY);
  host.report(verified());
  return true;
}

/** How many runs the goal starts, one per step, until it starts none; at most `most`. */
function startsOf(host: Bench, stepMs: number, most: number): number {
  for (let count = 0; count < most; count++) {
    if (!undoneOnce(host)) return count;
    host.nowMs += stepMs;
  }
  return most;
}

test('a goal that is undone after each run is given up, and a person is told why', () => {
  const host = availableHost();
  host.request({ kind: 'verify' });
  host.report(verified());
  expect(startsOf(host, minuteMs, 100)).toBe(goalRunsMax);
  const reason = `${goalRunsMax} runs within 30 minutes did not bring it there to stay`;
  expect(statusOf(host).backoff?.givenUpReason).toBe(reason);
  const told = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
  expect(told).toMatchObject({ blocker: 'a person' });
  expect(told.headline).toContain(reason);
  // It stays so until somebody looks, however long that takes.
  host.nowMs += 10 * goalRunsWithinMs;
  expect(undoneOnce(host)).toBe(false);
});

test('a person who asks lets the goal start as many runs again', () => {
  const host = availableHost();
  host.request({ kind: 'verify' });
  host.report(verified());
  startsOf(host, minuteMs, 100);
  host.request({ kind: 'retry' });
  expect(statusOf(host).run?.phase).toBe(RunPhase.RUNNING);
  host.report(verified());
  expect(startsOf(host, minuteMs, 100)).toBe(goalRunsMax - 1);
});

test('a goal that is undone now and then is never given up', () => {
  const host = availableHost();
  const rarelyMs = (2 * goalRunsWithinMs) / goalRunsMax;
  expect(startsOf(host, rarelyMs, 4 * goalRunsMax)).toBe(4 * goalRunsMax);
});
