import { EventHeap, SimProcess } from '@rackwright/sim';
import { describe, expect, test } from 'vitest';
import { Alarms } from './alarms.ts';
import { OneByOne } from './one-by-one.ts';
import { resyncLater } from './resync.ts';

function simulated() {
  const heap = new EventHeap();
  const { clock } = new SimProcess('cp', heap, 1_000_000, () => false);
  return { clock, until: (untilMs: number) => heap.run(untilMs, () => false) };
}

test('tasks of one key run one after the other, also after a failure', async () => {
  const queue = new OneByOne();
  const told: string[] = [];
  const first = Promise.withResolvers<void>();
  const failing = queue.take('a', async () => {
    await first.promise;
    told.push('first');
    throw new Error('failed');
  });
  const second = queue.take('a', async () => told.push('second'));
  await queue.take('b', async () => told.push('of another key'));
  first.resolve();
  await expect(failing).rejects.toThrow('failed');
  await second;
  expect(told).toEqual(['of another key', 'first', 'second']);
});

describe('alarms', () => {
  test('ring once, at their time, in place of the one before', async () => {
    const { clock, until } = simulated();
    const alarms = new Alarms(clock);
    const rung: string[] = [];
    alarms.set('a', 1_000_050, () => rung.push('replaced'));
    alarms.set('a', 1_000_100, () => rung.push('a'));
    alarms.set('b', 999_000, () => rung.push('b, whose time has passed'));
    alarms.set('c', 1_000_010, () => rung.push('without a time'));
    alarms.set('c', undefined, () => rung.push('without a time'));
    alarms.set('d', 1_000_010, () => rung.push('cleared'));
    alarms.clear('d');
    await until(99);
    expect(rung).toEqual(['b, whose time has passed']);
    await until(1_000_000);
    expect(rung).toEqual(['b, whose time has passed', 'a']);
  });

  test('are set no more once stopped', async () => {
    const { clock, until } = simulated();
    const alarms = new Alarms(clock);
    let rung = 0;
    alarms.set('a', 1_000_010, () => rung++);
    alarms.stop();
    alarms.set('b', 1_000_010, () => rung++);
    await until(1_000_000);
    expect(rung).toBe(0);
  });
});

test('a resync that fails is reported and followed by the next, until the loop stops', async () => {
  const { clock, until } = simulated();
  const stopping = new AbortController();
  const warnings: unknown[] = [];
  const log = {
    warn: (_fields: object, _message: string, error?: unknown) => void warnings.push(error),
  };
  let looks = 0;
  const look = async () => {
    looks++;
    if (looks === 1) throw new Error('away');
  };
  resyncLater({ clock, log, resyncIntervalMs: 100 }, look, stopping.signal);
  await until(99);
  expect(looks).toBe(0);
  await until(200);
  expect([looks, warnings]).toEqual([2, [new Error('away')]]);
  stopping.abort();
  await until(1_000);
  expect(looks).toBe(2);
});
