/**
 * Changes of one record by compare-and-set.
 *
 * Invariants:
 * 1. Who loses against other writers all the time is told `TOO_BUSY`, whatever was to be changed;
 *    no change ends in silence.
 * 2. A record that would be the same afterwards is not written (R2).
 *
 * Must not: decide anything about a record's content.
 */
import { clone, type DescMessage, equals, type MessageShape } from '@bufbuild/protobuf';
import { ApiFailure, aborted } from '@rackwright/messages';
import { type Kept, type RecordWriter, readRecord, writeRecord } from './record.ts';

/** How often one change may lose against other writers, if it does not say otherwise. */
const roundsUsualMax = 16;

/**
 * Makes a change anew from what stands there for as long as another writer was faster, which
 * `attempt` says by undefined. It checks the etag itself: who gave one is refused by the next
 * round, and whoever gave none means the resource as it is. Throws `aborted`.
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

/** Said of a record that others change all the time. */
export function tooBusy(name: string): ApiFailure {
  return aborted('TOO_BUSY', `${name} changes all the time; try again.`);
}

/** Whether an error says that others were faster all the time: the same may succeed later. */
export function isBusy(error: unknown): boolean {
  return error instanceof ApiFailure && error.error.reason === 'TOO_BUSY';
}

/** A record as it stands after a change. */
export interface Changed<T> extends Kept<T> {
  /** False: it stood so before. */
  readonly isWritten: boolean;
}

/** What a change may say of itself. */
export interface ChangeOptions<T> {
  /** What it begins with where there is no record; one that it leaves so is not written. */
  readonly absent?: () => T;
  /** What is called so in an error; otherwise the resource of the key. */
  readonly name?: string;
  /** What must be durable before the record that cites it; called anew in each round. */
  readonly evidence?: (before: T, next: T) => Promise<void>;
  readonly roundsMax?: number;
}

/**
 * Changes the record at `key`: `change` gets a copy that it may write into, and answers that copy
 * or another record; undefined leaves everything as it is. Called again when another writer was
 * faster; what it throws ends the change. Undefined when there is no record. Throws `aborted` and
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
): Promise<Changed<MessageShape<D>> | undefined> {
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
