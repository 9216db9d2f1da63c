import { expect, test } from 'vitest';
import { StoreError } from '../errors.ts';
import { type DurabilityVerdict, judgeDurability } from './durability.ts';
import {
  UNKNOWNS_MAX,
  WHILE_PROVEN_MS,
  WHILE_SILENT_MS,
  watchDurability,
} from './durability-watch.ts';

const away = verdict('yes', ['n3']);
const all = verdict('yes');

function verdict(
  survivesPowerLoss: DurabilityVerdict['survivesPowerLoss'],
  silent: readonly string[] = [],
): DurabilityVerdict {
  return { survivesPowerLoss, reason: 'as told', proven: ['n1', 'n2'], silent };
}

/** Looks that find one after the other; then the store closes. */
async function watched(opened: DurabilityVerdict, looks: readonly (DurabilityVerdict | Error)[]) {
  const pauses: number[] = [];
  const left = [...looks];
  const failure = await watchDurability(
    {
      check: async () => {
        const next = left.shift();
        if (next instanceof Error) throw next;
        return next ?? all;
      },
      pause: async (delayMs) => void pauses.push(delayMs),
      over: () => pauses.length > looks.length,
    },
    opened,
  );
  return { failure, pauses };
}

test('the watch asks often while a holder is silent, and seldom once all answered', async () => {
  const { failure, pauses } = await watched(away, [away, all, all]);
  expect(failure).toBeUndefined();
  expect(pauses).toEqual([WHILE_SILENT_MS, WHILE_SILENT_MS, WHILE_PROVEN_MS, WHILE_PROVEN_MS]);
});

test('the watch ends the handle as soon as a holder syncs late', async () => {
  const { failure, pauses } = await watched(all, [all, verdict('no'), all]);
  expect(failure).toMatchObject({ code: 'durabilityUnproven' });
  expect(pauses).toHaveLength(2);
});

test('the handle ends when a holder that is back does not show how it syncs', async () => {
  const unknown = verdict('unknown', ['n3']);
  const some = Array.from({ length: UNKNOWNS_MAX - 1 }, () => unknown);
  expect((await watched(away, [...some, all, ...some])).failure).toBeUndefined();
  const { failure } = await watched(away, [...some, unknown]);
  expect(failure).toMatchObject({ code: 'durabilityUnproven' });
});

test('a server that is too old ends the handle, and an unreachable one does not', async () => {
  const old = new StoreError('serverTooOld', 'n3 is 2.9.10');
  const busy = new StoreError('unavailable', 'no leader');
  expect((await watched(away, [new Error('timeout'), busy, all])).failure).toBeUndefined();
  expect((await watched(away, [old])).failure).toBe(old);
});

test('the watch passes proved holders on to the next check', async () => {
  const asked: (readonly string[])[] = [];
  const holders = ['n1', 'n2', 'n3'].map((name) => ({ name, isOffline: false }));
  const facts = [{ name: 'n3', version: '2.10.27', syncsAlways: true }];
  await watchDurability(
    {
      check: async (before) => {
        asked.push(before);
        return judgeDurability(facts, holders, before);
      },
      pause: async () => undefined,
      over: () => asked.length === 2,
    },
    away,
  );
  expect(asked).toEqual([
    ['n1', 'n2'],
    ['n1', 'n2', 'n3'],
  ]);
});
