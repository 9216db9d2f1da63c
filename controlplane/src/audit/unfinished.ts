/**
 * Calls that stand in the stream as begun and whose end is missing, for the control plane that
 * carried them out has died: each gets the line that its end would have been.
 */
import { clone, fromBinary } from '@bufbuild/protobuf';
import { timestampDate, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { type AuditRecord, AuditRecordSchema, store as wire } from '@rackwright/messages';
import { type EntryLog, LOG_PAGE_MAX } from '@rackwright/store';

/** What is looked at, before the newest entry: no call takes that long. */
const lookBackMs = 3_600_000;
const lookedAtMax = 64 * LOG_PAGE_MAX;
const begunSuffix = '-begun';

/** The id of the entry that says that a call is about to be carried out. */
export function begunId(id: string): string {
  return `${id}${begunSuffix}`;
}

/** One that began, by the id of the line that is missing. */
export interface Unfinished {
  readonly id: string;
  readonly record: AuditRecord;
}

/** What a look back has come to. */
interface LookBack {
  readonly unfinished: readonly Unfinished[];
  /** There was more than is looked at: what began before that is not known. */
  readonly isCut: boolean;
}

/**
 * Those that began before `beforeMs` (by our clock) and of which no end is in the log. The two
 * lines of a call are written each by itself: its end may come first.
 */
export async function unfinishedIn(
  log: EntryLog,
  beforeMs: number,
  entriesMax = lookedAtMax,
): Promise<LookBack> {
  const ended = new Set<string>();
  const found: Unfinished[] = [];
  let position: number | undefined;
  let sinceMs: number | undefined;
  const told = (isCut: boolean) => ({
    unfinished: found.filter(({ id }) => !ended.has(id)),
    isCut,
  });
  for (let looked = 0; looked < entriesMax; ) {
    const { entries, more } = await log.back(LOG_PAGE_MAX, position);
    for (const { id, value, atMs, position: at } of entries) {
      sinceMs ??= atMs - lookBackMs;
      if (atMs > 0 && atMs < sinceMs) return told(false);
      position = at;
      looked += 1;
      const { record, begun } = fromBinary(wire.AuditEntryRecordSchema, value);
      if (!begun) ended.add(id);
      else if (record?.time !== undefined && timestampMs(record.time) < beforeMs) {
        found.push({ id: id.slice(0, -begunSuffix.length), record });
      }
    }
    if (!more || position === undefined) return told(false);
  }
  return told(true);
}

/** The line of one whose end nobody knows. */
export function unfinishedRecord(record: AuditRecord, nowMs: number): AuditRecord {
  const line = clone(AuditRecordSchema, record);
  // A search by time goes by when entries came into the log.
  line.time = timestampFromMs(nowMs);
  const askedAt =
    record.time === undefined ? '' : ` at ${timestampDate(record.time).toISOString()}`;
  const words =
    `asked for${askedAt}; the control plane ended before it could say what came of it: ` +
    'look at the resource';
  line.outcome = 'UNKNOWN';
  line.message = record.message === '' ? words : `${record.message}; ${words}`;
  return line;
}
