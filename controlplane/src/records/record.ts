/**
 * Records of the store as protobuf messages: typed reads, and writes with a known outcome.
 *
 * Invariants:
 * 1. A write ends `ok` or `conflict`, or throws `unavailable`; "unknown" is settled here by
 *    repeating the same write id.
 * 2. Unknown fields of a record survive a read and a write (a newer replica may have written them).
 *
 * Must not: decide anything about a record's content.
 */
import { type DescMessage, fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf';
import { ApiFailure, unavailable } from '@rackwright/messages';
import {
  type ExpectedRevision,
  type GetResult,
  type StateStore,
  StoreError,
  type StoreRevision,
  type WriteId,
  type WriteResult,
} from '@rackwright/store';
import { keepShared, type ReadableStore, sharedRecordOf } from './decoded.ts';

/** How often a write of unknown outcome is repeated before the caller gets an error. */
const settleAttemptsMax = 4;

/** A record with the revision that an update of it must expect. */
export interface KeptRecord<T> {
  readonly record: T;
  readonly revision: StoreRevision;
}

export type RecordWriteResult =
  | { readonly kind: 'ok'; readonly revision: StoreRevision; readonly writeId: WriteId }
  | { readonly kind: 'conflict' };

/** The record at `key`; undefined when there is none. Throws `unavailable`. */
export async function readRecord<D extends DescMessage>(
  store: ReadableStore,
  schema: D,
  key: string,
): Promise<KeptRecord<MessageShape<D>> | undefined> {
  const found = await orUnavailable(store.get(key));
  if (found.kind === 'absent') return undefined;
  return { record: fromBinary(schema, found.value), revision: found.revision };
}

/** As `readRecord`, but shared with all readers: it must not be changed. */
export async function readShared<D extends DescMessage>(
  store: ReadableStore,
  schema: D,
  key: string,
): Promise<KeptRecord<MessageShape<D>> | undefined> {
  let found: GetResult;
  try {
    found = await store.get(key);
  } catch (error) {
    return throwAsUnavailable(error);
  }
  if (found.kind === 'absent') return undefined;
  return { record: sharedRecordOf(store, schema, found), revision: found.revision };
}

/** Writes the record if the key is as `expected`. Throws `unavailable`. */
export function writeRecord<D extends DescMessage>(
  { store }: RecordWriter,
  schema: D,
  key: string,
  record: MessageShape<D>,
  expected: ExpectedRevision,
): Promise<RecordWriteResult> {
  const value = toBinary(schema, record);
  return settle(key, (writeId) => store.put(key, value, expected, writeId));
}

/** As `writeRecord`; afterwards the record is shared, and must not be changed any more. */
export async function writeShared<D extends DescMessage>(
  { store }: Pick<RecordWriter, 'store'>,
  schema: D,
  key: string,
  record: MessageShape<D>,
  expected: ExpectedRevision,
): Promise<RecordWriteResult> {
  const value = toBinary(schema, record);
  const written = await settle(key, (writeId) => store.put(key, value, expected, writeId));
  if (written.kind === 'ok') {
    keepShared(store, schema, { key, ...written, bytes: value.length }, record);
  }
  return written;
}

/** Deletes the key if its last write has revision `expected`. Throws `unavailable`. */
export function deleteRecord(
  { store }: RecordWriter,
  key: string,
  expected: StoreRevision,
): Promise<RecordWriteResult> {
  return settle(key, (writeId) => store.delete(key, expected, writeId));
}

/** The dependencies of a write. */
export interface RecordWriter {
  readonly store: StateStore;
}

/** The result of a read; a failure of the store becomes `unavailable`. */
export async function orUnavailable<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    return throwAsUnavailable(error);
  }
}

function throwAsUnavailable(error: unknown): never {
  if (error instanceof StoreError && (error.code === 'unavailable' || error.code === 'closed')) {
    const message = 'The state store does not answer now; try again.';
    throw unavailable('STORE_UNAVAILABLE', message, undefined, error);
  }
  throw error;
}

/** Whether an error means that the store does not respond now, and may later. */
export function isStoreUnavailable(error: unknown): boolean {
  return error instanceof ApiFailure && error.error.kind === 'unavailable';
}

/** The store identifies the write by its id; an unanswered one is repeated under that id. */
async function settle(
  key: string,
  write: (writeId: WriteId | undefined) => Promise<WriteResult>,
): Promise<RecordWriteResult> {
  let writeId: WriteId | undefined;
  let reason = '';
  for (let attempt = 0; attempt < settleAttemptsMax; attempt += 1) {
    const result = await orUnavailable(write(writeId));
    if (result.kind === 'conflict') return { kind: 'conflict' };
    writeId = result.writeId;
    if (result.kind === 'ok') return { kind: 'ok', revision: result.revision, writeId };
    reason = result.reason;
  }
  throw unavailable(
    'OUTCOME_UNKNOWN',
    'The state store did not confirm the change: it may or may not have been made. Read again.',
    undefined,
    new Error(`write ${writeId} of ${key}: ${reason}`),
  );
}
