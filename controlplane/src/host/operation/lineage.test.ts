import { create } from '@bufbuild/protobuf';
import { agent } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { isDescendantOf, isSameLife, lifeOf } from './lineage.ts';

const journal = (generation: bigint, life: bigint, ...earlierLives: bigint[]) =>
  create(agent.JournalSchema, { id: 'j', generation, life, earlierLives });

test('a life knows what went to it and to those before it', () => {
  const second = journal(2n, 22n, 11n);
  expect(isDescendantOf(second, lifeOf(second))).toBe(true);
  expect(isDescendantOf(second, journal(1n, 11n))).toBe(true);
  expect(isDescendantOf(journal(1n, 11n), second)).toBe(false);
});

test('a restored journal does not descend from a start that it lost', () => {
  const sentTo = journal(5n, 55n, 44n);
  expect(isDescendantOf(journal(5n, 66n, 44n), sentTo)).toBe(false);
  expect(isDescendantOf(journal(9n, 99n, 88n, 77n, 66n, 44n), sentTo)).toBe(false);
});

test('another journal does not descend from a start', () => {
  const other = create(agent.JournalSchema, { id: 'k', generation: 9n, life: 11n });
  expect(isDescendantOf(other, journal(1n, 11n))).toBe(false);
});

test('an agent that reports no starts is judged by its generation', () => {
  expect(isDescendantOf(journal(2n, 0n), journal(1n, 11n))).toBe(true);
  expect(isDescendantOf(journal(1n, 0n), journal(2n, 11n))).toBe(false);
});

test('a stored journal names one life', () => {
  const life = journal(2n, 22n, 11n);
  expect(lifeOf(life).earlierLives).toEqual([]);
  expect(isSameLife(lifeOf(life), life)).toBe(true);
  expect(isSameLife(life, journal(2n, 23n, 11n))).toBe(false);
});
