/**
 * A change as a message of the bucket's stream. The layout is that of a NATS key-value bucket, so
 * that ordinary tools can read it; two headers of ours carry the contract's additions.
 */
import type { MsgHdrs } from 'nats';
import { headers } from 'nats';
import { asWriteId, type StoreRevision, type WriteId } from '../contract.ts';
import type { StoredChange } from '../write.ts';

const WRITE_ID_HEADER = 'Rackwright-Write-Id';
const PREVIOUS_HEADER = 'Rackwright-Previous';
/** Set by key-value clients for deletes. */
const OPERATION_HEADER = 'KV-Operation';
const DELETE_OPERATION = 'DEL';

export function streamName(bucket: string): string {
  return `KV_${bucket}`;
}

export function subjectOf(bucket: string, key: string): string {
  return `$KV.${bucket}.${key}`;
}

export function keyOf(bucket: string, subject: string): string {
  return subject.slice(subjectOf(bucket, '').length);
}

/** The subjects of the keys under `prefix`. */
export function subjectsUnder(bucket: string, prefix: string): string[] {
  if (prefix === '') return [subjectOf(bucket, '>')];
  return [subjectOf(bucket, prefix), subjectOf(bucket, `${prefix}.>`)];
}

export function changeHeaders(
  kind: StoredChange['kind'],
  writeId: WriteId,
  previous: StoreRevision,
): MsgHdrs {
  const set = headers();
  set.set(WRITE_ID_HEADER, writeId);
  set.set(PREVIOUS_HEADER, String(previous));
  if (kind === 'delete') set.set(OPERATION_HEADER, DELETE_OPERATION);
  return set;
}

/** "STREAM SEQUENCE …", set by the server on messages that a stream has sourced from another. */
const SOURCE_HEADER = 'Nats-Stream-Source';

/** The revision of a change in the bucket that it was sourced from; 0 when unknown. */
export function sourcedRevision(set: MsgHdrs | undefined): StoreRevision {
  const revision = Number((set?.get(SOURCE_HEADER) ?? '').split(' ')[1]);
  return Number.isSafeInteger(revision) ? revision : 0;
}

/**
 * The change that a message holds. One written by another program has no write id of ours and no
 * known predecessor; it is shown, under an id of its own, rather than hidden.
 */
export function changeOfMessage(
  key: string,
  revision: StoreRevision,
  value: Uint8Array,
  set: MsgHdrs | undefined,
): StoredChange {
  const writeId = set?.get(WRITE_ID_HEADER) || `foreign-${revision}`;
  const previous = Number(set?.get(PREVIOUS_HEADER) || '0');
  const fields = {
    key,
    revision,
    writeId: asWriteId(writeId),
    previous: Number.isSafeInteger(previous) ? previous : 0,
  };
  const operation = set?.get(OPERATION_HEADER) ?? '';
  return operation === '' ? { kind: 'put', ...fields, value } : { kind: 'delete', ...fields };
}
