/**
 * Searches the audit stream backwards.
 *
 * Invariants:
 * 1. One call reads at most `entriesPerPageMax` entries. A page that has read so many ends early,
 *    perhaps empty, with the position to continue from.
 * 2. Entries newer than the end time are skipped by binary search, so that an old day costs no
 *    more.
 */
import { fromBinary } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type Actor,
  type AuditRecord,
  actorName,
  readActor,
  store as wire,
} from '@rackwright/messages';
import { type EntryLog, LOG_PAGE_MAX, type LogEntry } from '@rackwright/store';

/** The search conditions; each that is set must match. */
export interface AuditSearch {
  /** "user:admin", or "admin" for an actor of any kind with that name. */
  readonly actor: string;
  /** The resource itself or one below it. */
  readonly resource: string;
  /** "HostService.CleanHost", or "CleanHost". */
  readonly action: string;
  readonly outcome: string;
  /** Any part of the message, in any case. */
  readonly text: string;
  readonly startMs: number;
  /** Exclusive. */
  readonly endMs: number;
}

export interface AuditPage {
  /** Newest first. */
  readonly records: readonly AuditRecord[];
  /** Continue with entries before this one; undefined: there are none. */
  readonly before?: number;
}

export const entriesPerPageMax = 8_192;
/** The longest delay between an event and its log entry, including clock differences. */
const lagMsMax = 600_000;
const idDigits = 16;

/**
 * One page of matches, from the newest, or from before an entry that an earlier page named; only
 * entries that are `isSeen`.
 */
export async function searchAudit(
  log: EntryLog,
  search: AuditSearch,
  pageSize: number,
  before: number | undefined,
  isSeen: (record: AuditRecord) => boolean = () => true,
): Promise<AuditPage> {
  const records: AuditRecord[] = [];
  let position = before ?? (await afterTime(log, search.endMs + lagMsMax));
  for (let entriesRead = 0; entriesRead < entriesPerPageMax; ) {
    const page = await log.back(LOG_PAGE_MAX, position);
    for (const entry of page.entries) {
      if (isOlder(entry, search.startMs - lagMsMax)) return { records };
      entriesRead += 1;
      position = entry.position;
      const record = shownOf(entry);
      if (record === undefined || !fits(record, search) || !isSeen(record)) continue;
      records.push(record);
      if (records.length === pageSize) return { records, before: position };
    }
    if (!page.more || position === undefined) return { records };
  }
  return { records, ...(position === undefined ? {} : { before: position }) };
}

/** Invariant 2: a position after every entry from before that time; undefined: the end. */
async function afterTime(log: EntryLog, atMs: number): Promise<number | undefined> {
  const [newest] = (await log.back(1)).entries;
  if (newest === undefined || newest.atMs < atMs) return undefined;
  // All entries below `low` are older, all from `high` on are not.
  let low = 1;
  let high = newest.position;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const [entry] = (await log.back(1, middle + 1)).entries;
    if (entry === undefined || entry.atMs < atMs) low = middle + 1;
    else high = entry.position;
  }
  return high;
}

function isOlder({ atMs }: LogEntry, startMs: number): boolean {
  return atMs > 0 && atMs < startMs;
}

function shownOf({ value, position }: LogEntry): AuditRecord | undefined {
  const { record, begun } = fromBinary(wire.AuditEntryRecordSchema, value);
  if (begun) return undefined;
  if (record !== undefined) record.id = String(position).padStart(idDigits, '0');
  return record;
}

function fits(record: AuditRecord, search: AuditSearch): boolean {
  const { actor, resource, action, outcome, text, startMs, endMs } = search;
  const atMs = record.time === undefined ? 0 : timestampMs(record.time);
  return (
    atMs >= startMs &&
    atMs < endMs &&
    (actor === '' || isActor(readActor(record.actor), actor)) &&
    (resource === '' || isAtOrBelow(record.resource, resource)) &&
    (action === '' || isAction(record.action, action)) &&
    (outcome === '' || record.outcome.toLowerCase() === outcome.toLowerCase()) &&
    (text === '' || record.message.toLowerCase().includes(text.toLowerCase()))
  );
}

/** "user:admin" also matches "admin". */
function isActor(actor: Actor, wanted: string): boolean {
  return actor === wanted || actorName(actor) === wanted;
}

function isAtOrBelow(resource: string, wanted: string): boolean {
  return resource === wanted || resource.startsWith(`${wanted}/`);
}

function isAction(action: string, wanted: string): boolean {
  const [own, name] = [action.toLowerCase(), wanted.toLowerCase()];
  return own === name || own.endsWith(`.${name}`);
}
