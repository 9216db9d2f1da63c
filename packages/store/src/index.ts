/** The control plane's state: one contract (`contract.ts`), several drivers, one suite. */
export {
  asWriteId,
  type Change,
  type Entry,
  type ExpectedRevision,
  findWrite,
  type GetResult,
  HISTORY_PER_KEY,
  type KeyHistory,
  LIST_PAGE_MAX,
  type Listing,
  type ListPage,
  PAST_CHANGES_MAX,
  type PublishedMessage,
  RETENTION_DEFAULT,
  type Retention,
  type StateStore,
  type StoreRevision,
  VALUE_BYTES_MAX,
  type WatchEvent,
  type WriteId,
  type WriteResult,
  type WriteTrace,
} from './contract.ts';
export {
  type AppendResult,
  type EntryLog,
  LOG_ENTRY_BYTES_MAX,
  LOG_PAGE_MAX,
  type LogEntry,
  type LogPage,
} from './entry-log.ts';
export { StoreError, type StoreErrorCode } from './errors.ts';
export { keySegment, storeKey } from './key.ts';
export { MemoryDisk } from './memory/disk.ts';
export {
  type MemoryCall,
  type MemoryFault,
  type MemoryStoreOptions,
  openMemoryStore,
} from './memory/store.ts';
export {
  type Authentication,
  type DurabilityProof,
  type NatsStoreOptions,
  openNatsStore,
  type TlsFiles,
} from './nats/index.ts';
export { sqliteFileProblem } from './sqlite/check.ts';
export { openSqliteStore, type SqliteStoreOptions } from './sqlite/store.ts';
