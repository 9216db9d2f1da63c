/**
 * Calls with a begin but no final record in the stream, because the control plane died while it
 * carried them out. Each gets a final record.
 */
import { clone, fromBinary } from '@bufbuild/protobuf';
import { timestampDate, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { type AuditRecord, AuditRecordSchema, store as wire } from '@rackwright/messages';
import { type EntryLog, LOG_PAGE_MAX } from '@rackwright/store';

/** How far back from the newest entry the search goes: no call takes that long. */
const spanMs = 3_600_000;
const entriesReadMax = 64 * LOG_PAGE_MAX;
const begunSuffix = '-begun';

/** The id of the entry for the begin of a call. */
export function begunId(id: string): string {
  return `${id}${begunSuffix}`;
}

/** A call that began, by the id of its missing final record. */
export interface UnfinishedCall {
  readonly id: string;
  readonly record: AuditRecord;
}

/** The result of one search. */
interface Scan {
  readonly unfinished: readonly UnfinishedCall[];
  /** There were more entries than the search reads: earlier begins are unknown. */
  readonly isCut: boolean;
}

/**
 * Calls that began before `beforeMs` (by our clock) and have no final record in the log. The two
 * records of a call are written independently: the final one may come first.
 */
export async function unfinishedIn(
  log: EntryLog,
  beforeMs: number,
  entriesMax = entriesReadMax,
): Promise<Scan> {
  const ended = new Set<string>();
  const found: UnfinishedCall[] = [];
  let position: number | undefined;
  let sinceMs: number | undefined;
  const entryOf = (isCut: boolean) => ({
    unfinished: found.filter(({ id }) => !ended.has(id)),
    isCut,
  });
  for (let entriesRead = 0; entriesRead < entriesMax; ) {
    const { entries, more } = await log.back(LOG_PAGE_MAX, position);
    for (const { id, value, atMs, position: at } of entries) {
      sinceMs ??= atMs - spanMs;
      if (atMs > 0 && atMs < sinceMs) return entryOf(false);
      position = at;
      entriesRead += 1;
      const { record, begun } = fromBinary(wire.AuditEntryRecordSchema, value);
      if (!begun) ended.add(id);
      else if (record?.time !== undefined && timestampMs(record.time) < beforeMs) {
        found.push({ id: id.slice(0, -begunSuffix.length), record });
      }
    }
    if (!more || position === undefined) return entryOf(false);
  }
  return entryOf(true);
}

/** The final record of a call whose outcome is unknown. */
export function unfinishedRecord(record: AuditRecord, nowMs: number): AuditRecord {
  const line = clone(AuditRecordSchema, record);
  // A search by time uses the time at which entries came into the log.
  line.time = timestampFromMs(nowMs);
  const askedAt =
    record.time === undefined ? '' : ` at ${timestampDate(record.time).toISOString()}`;
  const text =
    `asked for${askedAt}; the control plane ended before it could say what came of it: ` +
    'look at the resource';
  line.outcome = 'UNKNOWN';
  line.message = record.message === '' ? text : `${record.message}; ${text}`;
  return line;
}
