/**
 * Changes of one record by compare-and-set.
 *
 * Invariants:
 * 1. A writer that always loses against others gets `TOO_BUSY`, for every kind of change; no change
 *    fails silently.
 * 2. An unchanged record is not written (R2).
 *
 * Must not: decide anything about a record's content.
 */
import { clone, type DescMessage, equals, type MessageShape } from '@bufbuild/protobuf';
import { ApiFailure, aborted } from '@rackwright/messages';
import { type KeptRecord, type RecordWriter, readRecord, writeRecord } from './record.ts';

/** How often one change may lose against other writers by default. */
const roundsUsualMax = 16;

/**
 * Repeats a change on the present record while another writer is first, which `attempt` reports
 * with undefined. `attempt` checks the etag itself: a call with an etag is refused in the next
 * round, and a call without one applies to the present resource. Throws `aborted`.
 */
export async function untilWritten<T>(
  name: string,
  attempt: () => Promise<T | undefined>,
  roundsMax: number = roundsUsualMax,
): Promise<T> {
  for (let round = 0; round < roundsMax; round += 1) {
    const written = await attempt();
    if (written !== undefined) return written;
  }
  throw tooBusy(name);
}

/** The error for a record that others change all the time. */
export function tooBusy(name: string): ApiFailure {
  return aborted('TOO_BUSY', `${name} changes all the time; try again.`);
}

/** Whether an error means that other writers always won: the same change may succeed later. */
export function isBusy(error: unknown): boolean {
  return error instanceof ApiFailure && error.error.reason === 'TOO_BUSY';
}

/** A record after a change. */
export interface ChangedRecord<T> extends KeptRecord<T> {
  /** False: it was already equal. */
  readonly isWritten: boolean;
}

/** Options of a change. */
export interface ChangeOptions<T> {
  /** The initial record where there is none; an unchanged one is not written. */
  readonly absent?: () => T;
  /** The name in errors; by default the resource of the key. */
  readonly name?: string;
  /** Writes what must be durable before the record that cites it; called again in each round. */
  readonly evidence?: (before: T, next: T) => Promise<void>;
  readonly roundsMax?: number;
}

/**
 * Changes the record at `key`. `change` gets a copy that it may modify, and returns that copy or
 * another record; undefined leaves everything unchanged. It is called again when another writer was
 * first; an exception ends the change. Undefined when there is no record. Throws `aborted` and
 * `unavailable`.
 */
export async function changeRecord<D extends DescMessage>(
  writer: RecordWriter,
  schema: D,
  key: string,
  change: (
    draft: MessageShape<D>,
  ) => MessageShape<D> | undefined | Promise<MessageShape<D> | undefined>,
  options: ChangeOptions<MessageShape<D>> = {},
): Promise<ChangedRecord<MessageShape<D>> | undefined> {
  const { name = key.replaceAll('.', '/'), absent, evidence, roundsMax } = options;
  const attempt = async () => {
    const kept = await readRecord(writer.store, schema, key);
    const before = kept?.record ?? absent?.();
    const next = before && (await change(clone(schema, before)));
    if (before === undefined || next === undefined || equals(schema, before, next)) {
      return kept === undefined ? 'absent' : { ...kept, isWritten: false };
    }
    await evidence?.(before, next);
    const written = await writeRecord(writer, schema, key, next, kept?.revision ?? 'absent');
    if (written.kind === 'conflict') return undefined;
    return { record: next, revision: written.revision, isWritten: true };
  };
  const changed = await untilWritten(name, attempt, roundsMax);
  return changed === 'absent' ? undefined : changed;
}
