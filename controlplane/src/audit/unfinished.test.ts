/** Finds calls without a final record, and no others. */
import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { AuditRecordSchema, store as wire } from '@rackwright/messages';
import { seededRandom } from '@rackwright/sim';
import { LOG_PAGE_MAX, openMemoryStore, type StateStore } from '@rackwright/store';
import { beforeEach, expect, test } from 'vitest';
import { begunId, unfinishedIn } from './unfinished.ts';

let store: StateStore;

beforeEach(async () => {
  store = await openMemoryStore({ random: seededRandom(1) });
});

async function write(id: string, begun: boolean): Promise<void> {
  const record = create(AuditRecordSchema, { time: timestampFromMs(1_000) });
  const entry = create(wire.AuditEntryRecordSchema, { record, begun });
  await store.log.append(id, toBinary(wire.AuditEntryRecordSchema, entry));
}

test('a call is unfinished when its end is nowhere, whichever line came first', async () => {
  await write(begunId('a'), true);
  await write('a', false);
  await write('b', false);
  await write(begunId('b'), true);
  await write(begunId('c'), true);
  const { unfinished, isCut } = await unfinishedIn(store.log, Number.POSITIVE_INFINITY);
  expect(unfinished.map(({ id }) => id)).toEqual(['c']);
  expect(isCut).toBe(false);
});

test('the list says that it has not read the whole log', async () => {
  await write(begunId('old'), true);
  for (let n = 0; n < LOG_PAGE_MAX; n++) await write(`new${n}`, false);
  const look = (entriesMax: number) => unfinishedIn(store.log, 2_000, entriesMax);
  expect(await look(LOG_PAGE_MAX)).toEqual({ unfinished: [], isCut: true });
  expect((await look(2 * LOG_PAGE_MAX)).unfinished.map(({ id }) => id)).toEqual(['old']);
});
