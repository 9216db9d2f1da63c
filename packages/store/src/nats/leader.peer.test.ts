/**
 * The loss of the bucket's leader, by SIGKILL, under writers and a watcher; and a leader that has
 * lost the others.
 */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  bytes,
  eventsUntil,
  revisionOf,
  text,
  USUAL_LIMITS,
  withoutRepeats,
} from '../conformance/subject.ts';
import { HISTORY_PER_KEY, type StateStore, type WriteResult } from '../contract.ts';
import { NatsCluster, serverMissing } from '../testing/nats-cluster.ts';
import { openNatsStore } from './open.ts';
import { clusterOptions, natsUnderTest } from './subject.ts';

/** Fewer than the history keeps, so that a watcher that is late still sees every change. */
const ROUNDS = HISTORY_PER_KEY - 4;
/** The leader dies in the middle of the writing. */
const KILL_AT_ROUND = 20;
const KEYS = 9;

let cluster: NatsCluster;

beforeAll(async () => {
  if (serverMissing() !== undefined) return;
  cluster = await NatsCluster.start({ servers: 3, syncAlways: true });
});

afterAll(() => cluster?.dispose());

/** Name of the server that leads the only bucket's stream, by any server's monitor. */
async function leader(): Promise<string> {
  const answer = await fetch(new URL('/jsz?accounts=1&streams=1', cluster.monitors[0]));
  const jsz = (await answer.json()) as {
    account_details: { stream_detail?: { cluster?: { leader?: string } }[] }[];
  };
  for (const account of jsz.account_details) {
    const name = account.stream_detail?.[0]?.cluster?.leader;
    if (name !== undefined) return name;
  }
  return assert.fail('no leader is known');
}

/** Writes under one id until the outcome is certain. */
async function certain(
  store: StateStore,
  key: string,
  value: string,
  expected: number | 'absent',
): Promise<Exclude<WriteResult, { kind: 'unknown' }>> {
  let result = await store.put(key, bytes(value), expected);
  while (result.kind === 'unknown') {
    result = await store.put(key, bytes(value), expected, result.writeId);
  }
  return result;
}

test('a killed leader loses no acknowledged write; a race has one winner', async (context) => {
  const reason = serverMissing();
  if (reason !== undefined) context.skip(reason);
  const subject = await natsUnderTest(cluster);
  const start = await subject.first.latestRevision();
  const watch = subject.second.watch(start, 'races');
  const acknowledged = new Map<number, string>();
  let killed = false;

  const race = async (key: string) => {
    let revision = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const expected = round === 0 ? 'absent' : revision;
      if (round === KILL_AT_ROUND && !killed) {
        killed = true;
        await cluster.kill([await leader()]);
      }
      const results = await Promise.all([
        certain(subject.first, key, `left ${round}`, expected),
        certain(subject.second, key, `right ${round}`, expected),
      ]);
      const winners = results.filter((result) => result.kind === 'ok');
      assert.equal(winners.length, 1, `round ${round} of ${key} has ${winners.length} winners`);
      revision = winners[0]?.revision ?? 0;
      acknowledged.set(revision, `${key} ${results[0].kind === 'ok' ? 'left' : 'right'} ${round}`);
    }
  };
  const racing = Promise.all(Array.from({ length: KEYS }, (_, at) => race(`races.k${at}`)));
  const limits = { ...USUAL_LIMITS, patienceMs: 120_000 };
  const seen = eventsUntil(watch, start + ROUNDS * KEYS, subject, limits);
  await racing;
  const shown = withoutRepeats(await seen).flatMap((event) =>
    event.kind === 'put' ? [[event.revision, `${event.key} ${text(event.value)}`] as const] : [],
  );
  expect(killed).toBe(true);
  expect(shown).toHaveLength(ROUNDS * KEYS);
  expect(new Map(shown)).toEqual(new Map([...acknowledged].sort(([a], [b]) => a - b)));
  await subject.dispose();
});

test('a leader without a majority answers no present revision', async (context) => {
  const reason = serverMissing();
  if (reason !== undefined) context.skip(reason);
  await cluster.startAll();
  const options = { ...clusterOptions(cluster), callTimeoutMs: 40_000 };
  const first = await openNatsStore(options);
  const written = await certain(first, 'hosts.a', 'one', 'absent');
  await first.close();
  const led = await leader();
  const servers = [cluster.addresses[cluster.names.indexOf(led)] ?? ''];
  const store = await openNatsStore({ ...options, servers, callTimeoutMs: 4_000 });
  expect(await store.presentRevision()).toBeGreaterThanOrEqual(revisionOf(written));
  const before = await store.latestRevision();

  await cluster.kill(cluster.names.filter((name) => name !== led));
  const present = store.presentRevision();
  present.catch(() => undefined);
  // It answers reads until it notices that it has lost the others.
  const latest = await store.latestRevision().catch(() => before);
  expect(latest).toBeGreaterThanOrEqual(before);
  await expect(present).rejects.toMatchObject({ code: 'unavailable' });
  await store.close();
});
