/** The records of the store: reading, writing and changing them, each request once. */
export { type ChangedRecord, changeRecord, isBusy, tooBusy, untilWritten } from './change.ts';
export {
  copyOf,
  freezeShared,
  type ReadableStore,
  type RecordReader,
  readableOnce,
  readableRecordOf,
  sameMessage,
  sharedRecordOf,
} from './decoded.ts';
export { idOf, idOfKey } from './names.ts';
export { groupsOf, isDirectlyBelow, listingsOf, pagesOf } from './pages.ts';
export {
  deleteRecord,
  isStoreUnavailable,
  type KeptRecord,
  orUnavailable,
  type RecordWriteResult,
  type RecordWriter,
  readRecord,
  readShared,
  writeRecord,
  writeShared,
} from './record.ts';
export { appliedId, hasApplied, withApplied } from './request-ids.ts';
export { msOf } from './times.ts';
