/** Writes with an unknown outcome, and stores that do not respond. */
import { create } from '@bufbuild/protobuf';
import { ApiFailure, store as wire } from '@rackwright/messages';
import { seededRandom } from '@rackwright/sim';
import { type MemoryFault, openMemoryStore, type StateStore, StoreError } from '@rackwright/store';
import { beforeEach, expect, test } from 'vitest';
import {
  deleteRecord,
  isBusy,
  isStoreUnavailable,
  orUnavailable,
  readRecord,
  readShared,
  writeRecord,
} from './index.ts';

const schema = wire.RackRecordSchema;
const key = 'racks.r1';
let store: StateStore;
/** Faults of the next writes. */
let faults: MemoryFault[];
let writes: number;

beforeEach(async () => {
  faults = [];
  writes = 0;
  store = await openMemoryStore({
    random: seededRandom(1),
    faults: ({ kind }) => {
      if (kind !== 'put' && kind !== 'delete') return { kind: 'none' };
      writes += 1;
      return faults.shift() ?? { kind: 'none' };
    },
  });
});

const record = (name: string) => create(schema, { tombstones: [name] });
const write = (name: string, expected: number | 'absent' = 'absent') =>
  writeRecord({ store }, schema, key, record(name), expected);
const stored = async () => (await readRecord(store, schema, key))?.record.tombstones;
const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  );

test.each(['answerLost', 'requestLost'] as const)(
  'a write whose outcome is unknown (%s) is repeated under its id, and made once',
  async (kind) => {
    faults = [{ kind }, { kind }, { kind }];
    expect(await write('one')).toMatchObject({ kind: 'ok' });
    expect(writes).toBe(4);
    expect(await store.history(key)).toHaveLength(1);
    expect(await stored()).toEqual(['one']);
  },
);

test('a write that stays unknown is given up, and says that it may have been made', async () => {
  faults = Array.from({ length: 10 }, () => ({ kind: 'requestLost' as const }));
  const error = await failureOf(write('one'));
  expect(error).toBeInstanceOf(ApiFailure);
  expect((error as ApiFailure).error).toMatchObject({
    kind: 'unavailable',
    reason: 'OUTCOME_UNKNOWN',
  });
  expect(writes).toBe(4);
  expect(isStoreUnavailable(error)).toBe(true);
});

test('a write that meets another one is a conflict, and is not repeated', async () => {
  await write('one');
  expect(await write('two')).toEqual({ kind: 'conflict' });
  expect(writes).toBe(2);
  expect(await deleteRecord({ store }, key, 77)).toEqual({ kind: 'conflict' });
  expect(await stored()).toEqual(['one']);
});

test('a record is deleted at its revision, and is absent then however it is read', async () => {
  const written = await write('one');
  if (written.kind === 'conflict') throw new Error('nobody else writes');
  expect((await readShared(store, schema, key))?.revision).toBe(written.revision);
  expect((await deleteRecord({ store }, key, written.revision)).kind).toBe('ok');
  expect(await readRecord(store, schema, key)).toBeUndefined();
  expect(await readShared(store, schema, key)).toBeUndefined();
});

test.each(['unavailable', 'closed'] as const)(
  'a store that is %s is away for now',
  async (code) => {
    const cause = new StoreError(code, 'no');
    const error = await failureOf(orUnavailable(Promise.reject(cause)));
    expect(error).toBeInstanceOf(ApiFailure);
    expect((error as ApiFailure).error.reason).toBe('STORE_UNAVAILABLE');
    expect((error as ApiFailure).cause).toBe(cause);
    expect(isStoreUnavailable(error)).toBe(true);
  },
);

test('other errors of a store are passed on unchanged', async () => {
  for (const error of [new StoreError('invalidKey', 'no'), new Error('a bug')]) {
    expect(await failureOf(orUnavailable(Promise.reject(error)))).toBe(error);
    expect([isStoreUnavailable(error), isBusy(error)]).toEqual([false, false]);
  }
  expect(await orUnavailable(Promise.resolve(7))).toBe(7);
});

test('a busy store is not away, and a store that is away is not busy', async () => {
  const away = await failureOf(orUnavailable(Promise.reject(new StoreError('closed', 'no'))));
  expect(isBusy(away)).toBe(false);
  const busy = new ApiFailure({ kind: 'aborted', reason: 'TOO_BUSY', message: 'no' });
  expect([isBusy(busy), isStoreUnavailable(busy)]).toEqual([true, false]);
});
