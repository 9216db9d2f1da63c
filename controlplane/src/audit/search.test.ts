import { actors, readActor } from '@rackwright/messages';
import { nodeRandom } from '@rackwright/platform/node';
import { openMemoryStore, RETENTION_DEFAULT, type StateStore } from '@rackwright/store';
import { beforeEach, expect, test } from 'vitest';
import { entryBytes, recordOf } from './event.ts';
import { entriesPerPageMax, searchAudit } from './search.ts';

const startMs = Date.parse('2026-01-01T00:00:00Z');
const minuteMs = 60_000;
const any = { actor: actors.unknown, resource: '', action: '', outcome: '', text: '' };
const always = { ...any, startMs: 0, endMs: Number.MAX_SAFE_INTEGER };

let nowMs: number;
let store: StateStore;
let looks: number;

beforeEach(async () => {
  nowMs = startMs;
  looks = 0;
  store = await openMemoryStore({
    random: nodeRandom(),
    clock: { nowMs: () => nowMs },
    retention: RETENTION_DEFAULT,
    faults: ({ kind }) => {
      if (kind === 'back') looks += 1;
      return { kind: 'none' };
    },
  });
});

async function fill(count: number): Promise<void> {
  for (let at = 0; at < count; at += 1) {
    const event = { kind: 'request', actor: readActor('a'), action: 'x', outcome: 'ok' } as const;
    const record = recordOf({ ...event, message: `entry ${at}` }, nowMs);
    await store.log.append(`e${at}`, entryBytes(record));
    nowMs += minuteMs;
  }
}

test('a search skips entries newer than its range, and stops at older ones', async () => {
  await fill(9_000);
  const search = { ...always, startMs: startMs + 100 * minuteMs, endMs: startMs + 103 * minuteMs };
  const page = await searchAudit(store.log, search, 100, undefined);
  expect(page.records.map(({ message }) => message)).toEqual(
    [102, 101, 100].map((n) => `entry ${n}`),
  );
  expect(page.before).toBeUndefined();
  expect(looks).toBeLessThan(20);
});

test('a search finds an actor by its whole name, or without its kind', async () => {
  const actors = ['user:admin', 'user:admin2', 'agent:racks/r1', 'system', 'user:system:a'];
  const asked = { kind: 'request', action: 'x', outcome: 'ok' } as const;
  for (const [index, actor] of actors.entries()) {
    const event = { ...asked, actor: readActor(actor) };
    await store.log.append(`a${index}`, entryBytes(recordOf({ ...event, message: '' }, nowMs)));
  }
  const found = async (actor: string) =>
    (await searchAudit(store.log, { ...always, actor }, 10, undefined)).records.map(
      (record) => record.actor,
    );
  expect(await found('admin')).toEqual(['user:admin']);
  expect(await found('user:admin')).toEqual(['user:admin']);
  expect(await found('racks/r1')).toEqual(['agent:racks/r1']);
  expect(await found('system')).toEqual(['system']);
  expect(await found('adm')).toEqual([]);
});

test('a search reads a bounded number of entries at a time, then continues there', async () => {
  await fill(entriesPerPageMax + 500);
  const rare = { ...always, text: 'entry 3 ' };
  const none = await searchAudit(store.log, { ...rare, text: 'ENTRY 3' }, 5_000, undefined);
  expect(none.before).toBeGreaterThan(0);
  const rest = await searchAudit(store.log, { ...rare, text: 'ENTRY 3' }, 5_000, none.before);
  expect(rest.before).toBeUndefined();
  const found = [...none.records, ...rest.records].filter(({ message }) => message === 'entry 3');
  expect(found).toHaveLength(1);
});

test('a search does not show calls that are about to be carried out', async () => {
  await fill(1);
  const event = { kind: 'request', actor: readActor('a'), action: 'x', outcome: 'BEGUN' } as const;
  await store.log.append('e1-begun', entryBytes(recordOf(event, nowMs), { begun: true }));
  expect((await searchAudit(store.log, always, 10, undefined)).records).toHaveLength(1);
});

test('a search finds nothing in an empty stream', async () => {
  expect(await searchAudit(store.log, always, 10, undefined)).toEqual({ records: [] });
});
