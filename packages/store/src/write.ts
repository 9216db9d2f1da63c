/**
 * The decisions that all drivers share: whether a write may happen, and what a store keeps of it.
 * Pure.
 */
import type {
  Change,
  ExpectedRevision,
  GetResult,
  KeyHistory,
  StoreRevision,
  WriteId,
} from './contract.ts';

/** A change as drivers keep it: with the revision of the same key's change before it, or 0. */
export type StoredChange = Change & { readonly previous: StoreRevision };

export type WriteDecision =
  /** Go ahead; the new change's `previous` is this. */
  | { readonly kind: 'write'; readonly previous: StoreRevision }
  /** This very write is already the key's last one. */
  | { readonly kind: 'landed'; readonly revision: StoreRevision }
  | { readonly kind: 'conflict' };

/**
 * Decides a put or delete, given the last change of its key. A write that may have landed before
 * must first be looked for among all kept changes: others may have followed it, and after a delete
 * a repeated creation would otherwise be made twice.
 */
export function decideWrite(
  last: Change | undefined,
  expected: ExpectedRevision,
  writeId: WriteId,
): WriteDecision {
  if (last === undefined) {
    return expected === 'absent' ? { kind: 'write', previous: 0 } : { kind: 'conflict' };
  }
  if (last.writeId === writeId) return { kind: 'landed', revision: last.revision };
  const fits = expected === 'absent' ? last.kind === 'delete' : last.revision === expected;
  return fits ? { kind: 'write', previous: last.revision } : { kind: 'conflict' };
}

/**
 * Finds the holes that trimming leaves in a log: a change whose predecessor lies after the watch's
 * start but was never seen. Memory grows with the number of keys that it has followed: a caller
 * that has seen everything begins with a new one.
 */
export class GapGuard {
  readonly #from: StoreRevision;
  readonly #lastByKey = new Map<string, StoreRevision>();

  constructor(from: StoreRevision) {
    this.#from = from;
  }

  /** Whether `change` follows on the seen changes. A change seen before follows too. */
  follows(change: StoredChange): boolean {
    const last = this.#lastByKey.get(change.key) ?? 0;
    if (change.previous > this.#from && change.previous > last) return false;
    if (change.revision > last) this.#lastByKey.set(change.key, change.revision);
    return true;
  }
}

/** A stored change without the fields that only drivers need. */
export function publicChange(change: StoredChange): Change {
  const { previous: _previous, ...rest } = change;
  return rest;
}

/**
 * A page of `past` from changes of one key, newest first; the input has up to one more than
 * requested.
 */
export function pastOf(
  changes: readonly StoredChange[],
  limit: number,
  from: StoreRevision | undefined,
): KeyHistory {
  const page = changes.slice(0, limit).map(publicChange);
  const oldest = changes[page.length - 1];
  const next = changes[limit];
  if (next !== undefined) return { changes: page, before: { kind: 'more', from: next.revision } };
  const isFirst = oldest === undefined ? from === undefined : oldest.previous === 0;
  return { changes: page, before: { kind: isFirst ? 'nothing' : 'gone' } };
}

/** The answer of `get` for a key whose last change is `last`. */
export function readResult(key: string, last: Change | undefined): GetResult {
  if (last === undefined) return { kind: 'absent', key };
  const { revision, writeId } = last;
  if (last.kind === 'delete') return { kind: 'absent', key, revision, writeId };
  return { kind: 'found', key, value: last.value, revision, writeId };
}
