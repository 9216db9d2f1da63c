/**
 * The store's one log: entries that are only ever added, in one order, and removed by age alone. It
 * holds data that would otherwise be one key each and could never be forgotten.
 *
 * L1 Positions grow in the order in which entries were accepted; none is given twice.
 * L2 An entry answered `ok` survives everything that an acknowledged write survives (S4).
 * L3 An entry goes when it is older than the store's `logAgeMs`, the oldest first, never earlier.
 */
import { StoreError } from './errors.ts';

export interface LogEntry {
  /** 1 or more. */
  readonly position: number;
  /** Names the entry: two additions under the same id within two minutes are one entry. */
  readonly id: string;
  readonly value: Uint8Array;
  /** When the store took it, by the store's clock; 0 where it has none. */
  readonly atMs: number;
}

export type AppendResult =
  | { readonly kind: 'ok'; readonly position: number }
  /** May be in the log, or may yet be added; add it again under its id. */
  | { readonly kind: 'unknown'; readonly reason: string };

export interface LogPage {
  /** Newest first. */
  readonly entries: readonly LogEntry[];
  /** Whether older ones are kept. */
  readonly more: boolean;
}

export interface EntryLog {
  /**
   * Adds an entry of at most `LOG_ENTRY_BYTES_MAX`; `id` is 1–64 of `A–Z a–z 0–9 _ -`. Throws
   * `invalidWriteId`, `valueTooLarge`, `closed`; an undecidable outcome is `unknown`.
   */
  append(id: string, value: Uint8Array): Promise<AppendResult>;

  /**
   * At most `limit` (1 to `LOG_PAGE_MAX`) entries, the newest first, with positions below `before`.
   * Throws `invalidRevision`, `unavailable`, `closed`.
   */
  back(limit: number, before?: number): Promise<LogPage>;
}

/** Largest entry, in bytes. */
export const LOG_ENTRY_BYTES_MAX = 16 * 1024;
/** How many entries one call of `back` answers at most. */
export const LOG_PAGE_MAX = 512;

/** Throws `valueTooLarge`. */
export function checkLogValue(value: Uint8Array): void {
  if (value.byteLength <= LOG_ENTRY_BYTES_MAX) return;
  throw new StoreError(
    'valueTooLarge',
    `the log entry has ${value.byteLength} bytes; at most ${LOG_ENTRY_BYTES_MAX} are kept`,
  );
}
