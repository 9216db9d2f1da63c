import { EventHeap, SimProcess } from '@rackwright/sim';
import { expect, test } from 'vitest';
import { Controller } from './controller.ts';

const startMs = 1_000_000;
const retryDelayMs = 1_000;

/** A controller whose passes end when the test says so; "key reason" of each that has begun. */
function simulated(
  pass: (begun: string) => unknown = () => undefined,
  isDue?: (key: string, reason: string) => boolean,
) {
  const heap = new EventHeap();
  const { clock } = new SimProcess('cp', heap, startMs, () => false);
  const begun: string[] = [];
  const warnings: object[] = [];
  const controller = new Controller<string, 'due' | 'written'>({
    clock,
    log: { warn: (fields) => void warnings.push(fields) },
    retryDelayMs,
    keyOf: String,
    fieldsOf: (host) => ({ host }),
    ...(isDue === undefined ? {} : { isDue }),
    pass: async (key, reason) => {
      begun.push(`${key} ${reason}`);
      await pass(`${key} ${reason}`);
    },
  });
  const until = (untilMs: number) => heap.run(untilMs, () => false);
  return { clock, controller, begun, warnings, until };
}

test('wake-ups before the next pass are one for each reason', async () => {
  const first = Promise.withResolvers<void>();
  const { controller, begun, until } = simulated(() => first.promise);
  controller.wake('a', 'due');
  controller.wake('a', 'due');
  await until(1);
  expect(begun).toEqual(['a due']);
  for (const reason of ['due', 'written', 'due', 'written'] as const) controller.wake('a', reason);
  first.resolve();
  await until(2);
  expect(begun).toEqual(['a due', 'a due', 'a written']);
});

test('passes over an object and tasks for the object run one after the other', async () => {
  const first = Promise.withResolvers<void>();
  const { controller, begun, until } = simulated(() => first.promise);
  controller.wake('a', 'due');
  const taken = controller.take('a', async () => begun.push('taken'));
  controller.wake('a', 'written');
  await controller.take('b', async () => begun.push('of another thing'));
  expect(begun).toEqual(['a due', 'of another thing']);
  first.resolve();
  await taken;
  await until(1);
  expect(begun).toEqual(['a due', 'of another thing', 'taken', 'a written']);
});

test('an object that is woken again and again goes behind the others', async () => {
  const waits: PromiseWithResolvers<void>[] = [];
  const { controller, begun, until } = simulated(() => {
    const wait = Promise.withResolvers<void>();
    waits.push(wait);
    return wait.promise;
  });
  for (let index = 0; index < 300; index++) controller.wake(`h${index}`, 'due');
  await until(1);
  expect(begun).toHaveLength(256);
  // A caller that waits for a pass does not queue behind woken passes.
  expect(await controller.take('h299', async () => 'taken')).toBe('taken');
  controller.wake('h0', 'due');
  waits[0]?.resolve();
  await until(2);
  expect(begun.slice(256)).toEqual(['h256 due']);
  for (const wait of waits) wait.resolve();
  await until(3);
  for (const wait of waits) wait.resolve();
  await until(4);
  expect(begun).toHaveLength(301);
  expect(begun.at(-1)).toBe('h0 due');
});

test('a pass that fails is repeated after a pause that doubles up to a bound', async () => {
  let fails = true;
  const times: number[] = [];
  const { clock, controller, warnings, until } = simulated(() => {
    times.push(clock.nowMs());
    if (fails) throw new Error('away');
  });
  controller.wake('a', 'due');
  await until(200_000);
  const pauses = times.slice(1).map((atMs, index) => atMs - (times[index] ?? 0));
  for (const [index, pauseMs] of pauses.entries()) {
    const wholeMs = Math.min(retryDelayMs * 2 ** index, 16 * retryDelayMs);
    expect(pauseMs).toBeGreaterThanOrEqual(wholeMs * 0.75);
    expect(pauseMs).toBeLessThanOrEqual(wholeMs);
  }
  expect(pauses.length).toBeGreaterThan(10);
  expect(warnings).toHaveLength(times.length);
  expect(warnings[0]).toEqual({ host: 'a' });
  // A wake-up does not wait, and a success resets the pause to the first one.
  const count = times.length;
  fails = false;
  controller.wake('a', 'due');
  await until(200_001);
  expect(times).toHaveLength(count + 1);
  fails = true;
  controller.wake('a', 'due');
  await until(200_001 + retryDelayMs);
  expect(times).toHaveLength(count + 3);
});

test('a pass is repeated at the time set last, and never once the thing is forgotten', async () => {
  const { controller, begun, until } = simulated();
  controller.wakeAt('a', startMs + 50, 'due');
  controller.wakeAt('a', startMs + 100, 'written');
  controller.wakeAt('b', startMs + 50, 'due');
  controller.forget('b');
  await until(99);
  expect(begun).toEqual([]);
  await until(1_000);
  expect(begun).toEqual(['a written']);
});

test('no pass begins once the controller has stopped', async () => {
  const { controller, begun, until } = simulated(() => Promise.reject(new Error('away')));
  for (let index = 0; index < 300; index++) controller.wake(`h${index}`, 'due');
  controller.wakeAt('later', startMs + 50, 'due');
  controller.stop();
  controller.wake('new', 'due');
  controller.wakeAt('new', startMs + 50, 'due');
  await until(100_000);
  expect(begun).toEqual([]);
  expect(controller.signal.aborted).toBe(true);
});

test('a pass that waits for another does not begin once the controller has stopped', async () => {
  const first = Promise.withResolvers<void>();
  const { controller, begun, until } = simulated(() => first.promise);
  controller.wake('a', 'due');
  await until(1);
  controller.wake('a', 'due');
  controller.stop();
  first.resolve();
  await until(100_000);
  expect(begun).toEqual(['a due']);
});

test('a resync of all comes after woken objects, and yields after a few passes', async () => {
  const { clock, controller, begun, until } = simulated(() => Promise.resolve());
  for (let index = 0; index < 1_000; index++) controller.wake(`h${index}`, 'due', 'later');
  controller.wake('h900', 'due');
  let begunMeanwhile = 0;
  clock.after(0, () => {
    begunMeanwhile = begun.length;
  });
  await until(1_000);
  expect(begunMeanwhile).toBeLessThan(200);
  expect(begun.indexOf('h900 due')).toBeLessThan(80);
  expect(begun).toHaveLength(1_000);
});

test('a pass for which there is nothing to do leaves the time that was set', async () => {
  const { controller, begun, until } = simulated(undefined, (_, reason) => reason === 'due');
  controller.wakeAt('a', startMs + 50, 'due');
  controller.wake('a', 'written');
  await until(49);
  expect(begun).toEqual([]);
  await until(1_000);
  expect(begun).toEqual(['a due']);
});
