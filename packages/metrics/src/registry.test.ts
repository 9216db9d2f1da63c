/** Counts stay within the declared bounds, for any values. */
import { expect, test } from 'vitest';
import { combinationsMax, expose, otherValue, Registry } from './index.ts';

test('values that a label has no room for are counted together as "other"', () => {
  const registry = new Registry();
  const asked = registry.counter('asked_total', 'Asked.', { rack: { valuesMax: 3 } });
  for (let at = 0; at < 10_000; at += 1) asked.add({ rack: `r${at}` });
  asked.add({ rack: 'x'.repeat(500) });
  const [, family] = registry.families();
  expect(family?.series.map(({ values, value }) => [values[0], value])).toEqual([
    ['r0', 1],
    ['r1', 1],
    ['r2', 1],
    [otherValue, 9_998],
  ]);
  expect(registry.linesMax).toBe(1 + 4);
});

test('series that are read at a scrape are bounded too; a rack that goes makes room', () => {
  const registry = new Registry();
  let racks = ['a', 'b', 'c'];
  registry.gauge('racks', 'Racks.', { rack: { valuesMax: 2 } }, () =>
    racks.map((rack) => ({ labels: { rack }, value: 1 })),
  );
  const shown = () => registry.families()[1]?.series.map(({ values, value }) => [...values, value]);
  expect(shown()).toEqual([
    ['a', 1],
    ['b', 1],
    [otherValue, 1],
  ]);
  racks = ['c'];
  expect(shown()).toEqual([['c', 1]]);
});

test('a value outside a closed list is "other", and all of the list stands there as 0', () => {
  const registry = new Registry();
  const ended = registry.counter('ended_total', 'Ended.', { how: ['well', 'badly'] });
  ended.add({ how: 'unheard of' as 'well' });
  expect(registry.families()[1]?.series.map(({ values, value }) => [values[0], value])).toEqual([
    ['well', 0],
    ['badly', 0],
    [otherValue, 1],
  ]);
  expect(combinationsMax({ a: ['x', 'y'], b: { valuesMax: 4 } })).toBe(15);
});

test('a reader that throws costs its own family and is counted', () => {
  const registry = new Registry();
  registry.gauge('bad', 'Throws.', {}, () => {
    throw new Error('gone');
  });
  registry.gauge('good', 'Does not.', {}, () => [{ labels: {}, value: 4 }]);
  expect(registry.families().map(({ name }) => name)).toEqual([
    'rackwright_metrics_unread_total',
    'good',
  ]);
  expect(expose(registry.families(), 'prometheus')).toContain('metrics_unread_total 1');
});

test('durations are counted into the bucket of their bound, and none is negative', () => {
  const registry = new Registry();
  const took = registry.durations('took_seconds', 'Took.', {}, [0.5, 1]);
  for (const seconds of [0.5, 0.6, 7, -3, Number.NaN]) took.observe({}, seconds);
  expect(registry.families()[1]?.series).toEqual([{ values: [], value: 8.1, buckets: [2, 3, 4] }]);
});

test('an observer counts into the series of its labels, which it does not make before', () => {
  const registry = new Registry();
  const took = registry.durations('took_seconds', 'Took.', { call: { valuesMax: 2 } }, [0.5, 1]);
  const observers = ['a', 'b', 'c'].map((call) => took.observerOf({ call }));
  const series = () => registry.families()[1]?.series;
  expect(series()).toEqual([]);
  observers[0]?.(Number.NaN);
  expect(series()).toEqual([]);
  for (const observe of [...observers, ...observers]) observe(0.7);
  took.observe({ call: 'a' }, 0.3);
  expect(series()).toMatchObject([
    { values: ['a'], buckets: [1, 3, 3] },
    { values: ['b'], buckets: [0, 2, 2] },
    { values: ['other'], buckets: [0, 2, 2] },
  ]);
});

test('a name is declared once', () => {
  const registry = new Registry();
  registry.counter('a_total', 'A.', {});
  expect(() => registry.counter('a_total', 'A.', {})).toThrow('a_total is declared twice');
});
