/**
 * Keys that wait to be written into the table of newest changes, found by key. The keys between two
 * of one collection are found without a look at any other collection: a listing of a collection
 * without writes must not cost more while all hosts are being written.
 */
import type { StoreRevision } from '../contract.ts';

export interface WaitingKey {
  readonly revision: StoreRevision;
  /** Changes of the key that the table has not counted. */
  readonly added: number;
}

/** The character behind the name of a collection in its keys. */
const BEHIND_COLLECTION = '.';
/** The code unit after it. */
const AFTER_COLLECTION = '/';

export class WaitingKeys {
  readonly #byKey: Map<string, WaitingKey>;
  readonly #ofCollection = new Map<string, Set<string>>();

  constructor(waiting: Iterable<readonly [string, WaitingKey]> = []) {
    this.#byKey = new Map(waiting);
    for (const key of this.#byKey.keys()) this.#note(key);
  }

  get size(): number {
    return this.#byKey.size;
  }

  get(key: string): WaitingKey | undefined {
    return this.#byKey.get(key);
  }

  set(key: string, waiting: WaitingKey): void {
    const { size } = this.#byKey;
    this.#byKey.set(key, waiting);
    if (this.#byKey.size > size) this.#note(key);
  }

  #note(key: string): void {
    const collection = collectionOf(key);
    const known = this.#ofCollection.get(collection);
    if (known === undefined) this.#ofCollection.set(collection, new Set([key]));
    else known.add(key);
  }

  delete(key: string): void {
    if (!this.#byKey.delete(key)) return;
    const collection = collectionOf(key);
    const known = this.#ofCollection.get(collection);
    known?.delete(key);
    if (known?.size === 0) this.#ofCollection.delete(collection);
  }

  clear(): void {
    this.#byKey.clear();
    this.#ofCollection.clear();
  }

  keys(): Iterable<string> {
    return this.#byKey.keys();
  }

  /** The same, in the order of keys. */
  inOrder(): WaitingKeys {
    return new WaitingKeys([...this.#byKey].sort(([one], [other]) => (one < other ? -1 : 1)));
  }

  /** Those after one key and before another, in no order. */
  between(after: string, end: string): string[] {
    const found = [];
    for (const key of this.#around(after, end)) if (key > after && key < end) found.push(key);
    return found;
  }

  /** The sets that hold the keys between the two: one collection's, or all. */
  #around(after: string, end: string): Iterable<string> {
    const at = after.indexOf(BEHIND_COLLECTION);
    const collection = after.slice(0, at);
    const isWithin = at > 0 && end <= `${collection}${AFTER_COLLECTION}`;
    return isWithin ? (this.#ofCollection.get(collection) ?? []) : this.#byKey.keys();
  }
}

/** "hosts" of "hosts.h1", and of "hosts". */
function collectionOf(key: string): string {
  const at = key.indexOf(BEHIND_COLLECTION);
  return at < 0 ? key : key.slice(0, at);
}
