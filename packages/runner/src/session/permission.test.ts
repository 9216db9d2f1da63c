import type { Clock } from '@rackwright/platform';
import { afterMicrotasks } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import { BeginRequests, freshMs, retryIntervalMs } from './permission.ts';

function setUp() {
  let nowMs = 0;
  const due: { atMs: number; call: () => void }[] = [];
  const clock: Clock = {
    nowMs: () => nowMs,
    suspendAwareMs: () => nowMs,
    after: (delayMs, call) => {
      const entry = { atMs: nowMs + delayMs, call };
      due.push(entry);
      return () => {
        const index = due.indexOf(entry);
        if (index >= 0) due.splice(index, 1);
      };
    },
  };
  const pass = async (ms: number): Promise<void> => {
    nowMs += ms;
    for (const entry of due.filter(({ atMs }) => atMs <= nowMs)) {
      due.splice(due.indexOf(entry), 1);
      entry.call();
    }
    await settled();
  };
  const asked: bigint[] = [];
  const told: string[] = [];
  const stop = new AbortController();
  const permissions = new BeginRequests(clock, (_, sequence) => asked.push(sequence));
  permissions.accepted(true);
  let end: unknown;
  const ask = async (): Promise<void> => {
    void permissions
      .ask('op', stop.signal, (reason) => told.push(reason))
      .then((settledWith) => {
        end = settledWith;
      });
    await settled();
  };
  return { permissions, ask, pass, asked, told, stop, ended: () => end };
}

async function settled(): Promise<void> {
  await afterMicrotasks(20);
}

test('the operation begins on a yes', async () => {
  const { permissions, ask, asked, ended } = setUp();
  await ask();
  expect(asked).toEqual([1n]);
  expect(ended()).toBeUndefined();
  permissions.answered('op', 1n, { kind: 'granted' });
  await settled();
  expect(ended()).toEqual({ kind: 'granted' });
});

test('the question is repeated after each no, and while no answer comes', async () => {
  const { permissions, ask, pass, asked, told, ended } = setUp();
  await ask();
  permissions.answered('op', 1n, { kind: 'wait', reason: 'a fire drill' });
  await pass(retryIntervalMs);
  await pass(retryIntervalMs);
  expect(asked).toEqual([1n, 2n, 3n]);
  expect(told).toEqual(['a fire drill', 'waits for the agent']);
  expect(ended()).toBeUndefined();
});

test('a yes to an earlier question, another operation or from before a sleep is void', async () => {
  const { permissions, ask, pass, ended } = setUp();
  await ask();
  await pass(retryIntervalMs);
  permissions.answered('op', 1n, { kind: 'granted' });
  permissions.answered('other', 2n, { kind: 'granted' });
  await settled();
  expect(ended()).toBeUndefined();
  // The machine slept: the timer and the answer are both there when it wakes.
  const slept = pass(freshMs + 1);
  permissions.answered('op', 2n, { kind: 'granted' });
  await slept;
  expect(ended()).toBeUndefined();
});

test('a yes counts only while the lease that gave it runs', async () => {
  const { permissions, ask, pass, asked, ended } = setUp();
  await ask();
  const late = pass(11);
  permissions.answered('op', 1n, { kind: 'granted', forMs: 10 });
  await late;
  await settled();
  expect(ended()).toBeUndefined();
  expect(asked).toEqual([1n, 2n]);
  permissions.answered('op', 2n, { kind: 'granted', forMs: 10 });
  await settled();
  expect(ended()).toEqual({ kind: 'granted' });
});

test('the questions of two operations are asked one after the other', async () => {
  const { permissions, ask, asked, ended } = setUp();
  await ask();
  await ask();
  expect(asked).toEqual([1n]);
  permissions.answered('op', 1n, { kind: 'granted' });
  await settled();
  expect(asked).toEqual([1n, 2n]);
  permissions.answered('op', 2n, { kind: 'over', reason: 'cancelled' });
  await settled();
  expect(ended()).toEqual({ kind: 'over', reason: 'cancelled' });
});

test('the question ends on a final no, and when the operation is to stop', async () => {
  const never = setUp();
  await never.ask();
  never.permissions.answered('op', 1n, { kind: 'over', reason: 'its time is over' });
  await settled();
  expect(never.ended()).toEqual({ kind: 'over', reason: 'its time is over' });
  const stopped = setUp();
  await stopped.ask();
  stopped.stop.abort();
  await settled();
  expect(stopped.ended()).toEqual({ kind: 'aborted' });
});

test('an agent that answers no such question has permitted it with the order', async () => {
  const { permissions, ask, asked, ended } = setUp();
  permissions.accepted(false);
  await ask();
  expect(ended()).toEqual({ kind: 'granted' });
  expect(asked).toEqual([]);
});
