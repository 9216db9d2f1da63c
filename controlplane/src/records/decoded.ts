/**
 * A cache of decoded store values: each write is decoded once for all parts of this process, and
 * not at all when this process wrote it.
 *
 * Invariants:
 * 1. A returned record is shared, so callers must not change it; `copyOf` makes a draft. After
 *    `freezeShared`, as in tests and the simulation, a change throws.
 * 2. A record belongs to exactly one write, by its key, revision and write id. A late read never
 *    replaces a newer record.
 * 3. Bounded by the encoded size; the oldest entry is dropped first, but an entry that was used
 *    since the last pass stays for one more (second chance): a read moves nothing.
 */
import { type DescMessage, fromBinary, type MessageShape } from '@bufbuild/protobuf';
import type { Log } from '@rackwright/platform';
import type { Entry, StateStore, StoreRevision, WriteId } from '@rackwright/store';

/**
 * Encoded bytes of the cached records; decoded they take about 8 times as much. The hosts of a
 * large fleet fit. Otherwise a scan over all of them, as at the start, would decode each again for
 * every part.
 */
const keptBytesMax = 64 * 1024 * 1024;
/** The size after a cleanup: to search for the oldest entry each time costs too much. */
const keptBytesAfter = keptBytesMax * 0.9;
/** Unreadable records that are remembered as logged; with more, some are logged again. */
const loggedMax = 1_000;

interface DecodedRecord {
  readonly schema: DescMessage;
  readonly record: unknown;
  readonly revision: number;
  readonly writeId: WriteId;
  readonly bytes: number;
}

interface KeptDecoded extends DecodedRecord {
  wasAsked: boolean;
}

class DecodedRecords {
  readonly #kept = new Map<string, KeptDecoded>();
  /** The last logged revision of each record that cannot be decoded. */
  readonly #logged = new Map<string, StoreRevision>();
  #bytes = 0;
  frozen = false;

  of<D extends DescMessage>(schema: D, { key, value, revision, writeId }: Entry): MessageShape<D> {
    const kept = this.#kept.get(key);
    const isIt = kept?.revision === revision && kept.writeId === writeId;
    if (isIt && kept.schema === schema) {
      kept.wasAsked = true;
      return kept.record as MessageShape<D>;
    }
    const record = copyOf(fromBinary(schema, value));
    this.keep(key, { schema, record, revision, writeId, bytes: value.length });
    return record;
  }

  keep(key: string, decoded: DecodedRecord): void {
    if (this.frozen) freeze(decoded.record);
    const before = this.#kept.get(key);
    if (before !== undefined && before.revision > decoded.revision) return;
    this.#kept.set(key, { ...decoded, wasAsked: before !== undefined });
    this.#bytes += decoded.bytes - (before?.bytes ?? 0);
    if (this.#bytes > keptBytesMax) this.#makeRoom();
  }

  /** Whether this is the first call for the revision of the record. */
  isNewlyUnreadable({ key, revision }: Entry): boolean {
    if (this.#logged.get(key) === revision) return false;
    if (this.#logged.size >= loggedMax) this.#logged.clear();
    this.#logged.set(key, revision);
    return true;
  }

  /** (3) Terminates, because no reads happen in between. */
  #makeRoom(): void {
    for (const [key, oldest] of this.#kept) {
      if (this.#bytes <= keptBytesAfter) break;
      this.#kept.delete(key);
      if (oldest.wasAsked) {
        oldest.wasAsked = false;
        this.#kept.set(key, oldest);
      } else this.#bytes -= oldest.bytes;
    }
  }
}

/** A store for readers: it cannot be written by mistake. */
export type ReadableStore = Omit<StateStore, 'put' | 'delete'>;

/** By store, so that all readers of one store share its records. */
const stores = new WeakMap<ReadableStore, DecodedRecords>();

function decodedOf(store: ReadableStore): DecodedRecords {
  const known = stores.get(store);
  if (known !== undefined) return known;
  const decoded = new DecodedRecords();
  stores.set(store, decoded);
  return decoded;
}

/** The record of an entry, shared (invariant 1). */
export function sharedRecordOf<D extends DescMessage>(
  store: ReadableStore,
  schema: D,
  entry: Entry,
): MessageShape<D> {
  return decodedOf(store).of(schema, entry);
}

/** The readers of one store; without a log when another reader of the same records has one. */
export interface RecordReader {
  readonly store: ReadableStore;
  readonly log?: Pick<Log, 'warn'>;
}

/**
 * As `sharedRecordOf`, for readers of many records: undefined for one that cannot be decoded, so
 * that it stops no work on the others. It is logged once for each of its revisions.
 */
export function readableRecordOf<D extends DescMessage>(
  reader: RecordReader,
  schema: D,
  entry: Entry,
): MessageShape<D> | undefined {
  return ifReadable(reader, entry, () => sharedRecordOf(reader.store, schema, entry));
}

/** The same, without a place in the cache: for records that are read once and are many. */
export function readableOnce<D extends DescMessage>(
  reader: RecordReader,
  schema: D,
  entry: Entry,
): MessageShape<D> | undefined {
  return ifReadable(reader, entry, () => fromBinary(schema, entry.value));
}

function ifReadable<T>({ store, log }: RecordReader, entry: Entry, decode: () => T): T | undefined {
  try {
    return decode();
  } catch (error) {
    if (log !== undefined && decodedOf(store).isNewlyUnreadable(entry)) {
      log.warn({ record: entry.key }, 'a record cannot be decoded; it counts as absent', error);
    }
    return undefined;
  }
}

/**
 * Stores a record that this process has just written, so that it is not decoded; it is shared then.
 */
export function keepShared<D extends DescMessage>(
  store: StateStore,
  schema: D,
  entry: Pick<Entry, 'key' | 'revision' | 'writeId'> & { readonly bytes: number },
  record: MessageShape<D>,
): void {
  const { key, revision, writeId, bytes } = entry;
  decodedOf(store).keep(key, { schema, record, revision, writeId, bytes });
}

/** From now on, a change of a shared record throws; for tests. */
export function freezeShared(store: StateStore): void {
  decodedOf(store).frozen = true;
}

/**
 * A deep copy of a message, for changes: the same result as protobuf's `clone`, without reflection.
 * Times and durations in it are shared with the original: they are immutable values.
 *
 * It takes half the memory of the decoder's result, and is faster to read: V8 makes an object a
 * hash table when it gets more than a dozen properties one by one, but not the copy.
 */
export function copyOf<T>(value: T): T {
  return copy(value) as T;
}

/** Message types that are immutable values. */
const shared: ReadonlySet<unknown> = new Set([
  'google.protobuf.Timestamp',
  'google.protobuf.Duration',
]);

function copy(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(copy);
  if (value instanceof Uint8Array) return value.slice();
  if (shared.has((value as { readonly $typeName?: unknown }).$typeName)) return value;
  const target = shallowCopy(value);
  for (const name in target) {
    const part = target[name];
    if (typeof part === 'object' && part !== null) target[name] = copy(part);
  }
  return target;
}

/**
 * V8 caches the result of `assign` for each object shape, while `...` adds field after field when
 *    many shapes occur. Only `...` copies names that people choose, such as `__proto__`.
 */
function shallowCopy(value: object): Record<string, unknown> {
  if (!isPlain(value)) {
    return Object.assign(Object.create(Object.getPrototypeOf(value) as object | null), value);
  }
  return '$typeName' in value ? Object.assign({}, value) : { ...value };
}

function isPlain(value: object): boolean {
  return Object.getPrototypeOf(value) === Object.prototype;
}

/**
 * Whether two messages are equal, field by field and without reflection: like protobuf's `equals`,
 * but unknown fields count too. For a draft and its original.
 */
export function sameMessage<T extends object>(one: T, other: T): boolean {
  return same(one, other);
}

function same(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== 'object' || typeof other !== 'object') return Object.is(one, other);
  if (one === null || other === null) return false;
  if (Array.isArray(one)) {
    if (!Array.isArray(other) || one.length !== other.length) return false;
    return one.every((each, index) => same(each, other[index]));
  }
  if (one instanceof Uint8Array) {
    return other instanceof Uint8Array && Buffer.compare(one, other) === 0;
  }
  return sameFields(one as Fields, other as Fields);
}

type Fields = Readonly<Record<string, unknown>>;

/** An undefined field equals an absent one. Iterates over names without a list. */
function sameFields(one: Fields, other: Fields): boolean {
  return isPlain(one) && isPlain(other) ? samePlain(one, other) : sameInherited(one, other);
}

/** A value from `Object.prototype` is no value of a message: it never equals one. */
function samePlain(one: Fields, other: Fields): boolean {
  let more = 0;
  for (const name in one) {
    const value = one[name];
    if (value === undefined) continue;
    if (!same(value, other[name])) return false;
    more += 1;
  }
  for (const name in other) if (other[name] !== undefined) more -= 1;
  return more === 0;
}

function sameInherited(one: Fields, other: Fields): boolean {
  for (const name in one) {
    if (Object.hasOwn(one, name) && !same(one[name], own(other, name))) return false;
  }
  for (const name in other) {
    if (own(other, name) !== undefined && own(one, name) === undefined) return false;
  }
  return true;
}

/** Prototypes of messages hold the defaults of fields that are not set. */
function own(message: Fields, name: string): unknown {
  return Object.hasOwn(message, name) ? message[name] : undefined;
}

function freeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return;
  // Bytes cannot be frozen.
  if (value instanceof Uint8Array) return;
  Object.freeze(value);
  for (const part of Object.values(value)) freeze(part);
}
