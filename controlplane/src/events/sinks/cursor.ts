/**
 * The position of a sink, and the replica that delivers to it: one record, which only the replica
 * that owns it writes.
 *
 * Invariants:
 * 1. At any time at most one replica begins requests. It owns the record until a time that it has
 *    written itself, and begins no request that could outlast that time.
 * 2. A store that one process owns has no other replica: there the ownership has no end.
 */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  asSinkUid,
  type EventSink,
  type ReplicaId,
  type SinkUid,
  store as wire,
} from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { type StateStore, type StoreRevision, storeKey } from '@rackwright/store';
import { msOf, readRecord, writeRecord } from '../../records/index.ts';
import { isEventCollection } from '../derive/derive.ts';
import { type Positions, positionsFrom } from '../positions.ts';

const schema = wire.EventCursorRecordSchema;

/** How long a replica owns a cursor without renewing it. */
export const ownershipMs = 60_000;
/** Renewed when less than this remains. */
const renewBelowMs = 40_000;
/** Others wait this much longer: their clocks may differ. */
const clockSkewMs = 10_000;

export interface CursorParts {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly replicaId: ReplicaId;
}

/** Deliveries fail. */
export interface Standstill {
  readonly sinceMs: number;
  /** Why the last attempt failed, for people. */
  readonly problem: string;
}

/** '' without a sink. */
export function sinkUidOf(sink: Pick<EventSink, 'uid'> | undefined): SinkUid {
  return asSinkUid(sink?.uid ?? '');
}

/** Key of the cursor of a sink, by its uid. */
export function cursorKey(sinkUid: SinkUid): string {
  return storeKey('eventCursors', sinkUid);
}

export type TakenCursor =
  | { readonly kind: 'owned'; readonly cursor: OwnedCursor; readonly restored: boolean }
  /** Owned by another replica, until then at the latest. */
  | { readonly kind: 'elsewhere'; readonly untilMs: number };

/** Takes the cursor of a sink; a new cursor begins at `begin`. Throws `unavailable`. */
export async function takeCursor(
  parts: CursorParts,
  sinkUid: SinkUid,
  begin: StoreRevision,
): Promise<TakenCursor> {
  const { store, clock, replicaId } = parts;
  const key = cursorKey(sinkUid);
  const kept = await readRecord(store, schema, key);
  const record = kept?.record;
  const untilMs = (msOf(record?.holdUntil) ?? 0) + clockSkewMs;
  const isOthers = record !== undefined && !['', replicaId].includes(record.holder);
  if (store.isShared && isOthers && untilMs > clock.nowMs()) return { kind: 'elsewhere', untilMs };
  const from = record === undefined ? positionsFrom(store, begin) : positionsOf(record);
  const cursor = new OwnedCursor(parts, key, kept?.revision ?? 'absent', {
    positions: { ...from, incarnation: store.incarnation },
    standstill: standstillOf(record),
    lastDeliveryMs: msOf(record?.lastDeliveryTime),
  });
  const isTaken = await cursor.write();
  if (!isTaken) return { kind: 'elsewhere', untilMs: clock.nowMs() + clockSkewMs };
  return { kind: 'owned', cursor, restored: from.incarnation !== store.incarnation };
}

function positionsOf({ incarnation, since, revisions }: wire.EventCursorRecord): Positions {
  const known = Object.entries(revisions).filter(([collection]) => isEventCollection(collection));
  return {
    incarnation,
    since: Number(since),
    revisions: Object.fromEntries(known.map(([name, revision]) => [name, Number(revision)])),
  };
}

/** The time decides: the text is for people. */
function standstillOf(record: wire.EventCursorRecord | undefined): Standstill | undefined {
  const sinceMs = msOf(record?.problemSince);
  return sinceMs === undefined ? undefined : { sinceMs, problem: record?.problem ?? '' };
}

interface CursorState {
  readonly positions: Positions;
  /** Undefined: the last attempt did not fail. */
  readonly standstill: Standstill | undefined;
  readonly lastDeliveryMs: number | undefined;
}

function problemIn({ problem, sinceMs }: Standstill) {
  return { problem, problemSince: timestampFromMs(sinceMs) };
}

/** A cursor that this replica owns. */
export class OwnedCursor {
  readonly #parts: CursorParts;
  readonly #key: string;
  #expected: StoreRevision | 'absent';
  #written: CursorState;
  #state: CursorState;
  #ownedUntilMs = 0;
  #isLost = false;

  constructor(
    parts: CursorParts,
    key: string,
    expected: StoreRevision | 'absent',
    state: CursorState,
  ) {
    this.#parts = parts;
    this.#key = key;
    this.#expected = expected;
    this.#written = state;
    this.#state = state;
  }

  get positions(): Positions {
    return this.#state.positions;
  }

  get standstill(): Standstill | undefined {
    return this.#state.standstill;
  }

  /** Whether another replica has taken it. */
  get isLost(): boolean {
    return this.#isLost;
  }

  note(change: Partial<CursorState>): void {
    this.#state = { ...this.#state, ...change };
  }

  /** Whether a request of this length may begin (1). */
  mayLast(durationMs: number): boolean {
    const { store, clock } = this.#parts;
    if (this.#isLost) return false;
    return !store.isShared || clock.suspendAwareMs() + durationMs < this.#ownedUntilMs;
  }

  /** Whether the record differs from the noted state, or has to be renewed. */
  get isDue(): boolean {
    const { store, clock } = this.#parts;
    if (this.#written !== this.#state) return true;
    return store.isShared && this.#ownedUntilMs - clock.suspendAwareMs() < renewBelowMs;
  }

  /**
   * Writes the noted state, and renews the ownership. False: another replica has it. Throws
   * `unavailable`.
   */
  async write(): Promise<boolean> {
    return this.#write(this.#parts.replicaId, ownershipMs);
  }

  /** Lets another replica take it at once. */
  async release(): Promise<void> {
    if (!this.#isLost) await this.#write('', 0);
  }

  async #write(holder: string, forMs: number): Promise<boolean> {
    const { store, clock } = this.#parts;
    const state = this.#state;
    const askedMs = clock.suspendAwareMs();
    const { positions, standstill, lastDeliveryMs } = state;
    const record = create(schema, {
      incarnation: positions.incarnation,
      since: BigInt(positions.since),
      revisions: Object.fromEntries(
        Object.entries(positions.revisions).map(([name, revision]) => [name, BigInt(revision)]),
      ),
      ...{ holder, holdUntil: timestampFromMs(clock.nowMs() + forMs) },
      ...(standstill === undefined ? {} : problemIn(standstill)),
      ...(lastDeliveryMs === undefined
        ? {}
        : { lastDeliveryTime: timestampFromMs(lastDeliveryMs) }),
    });
    const written = await writeRecord({ store }, schema, this.#key, record, this.#expected);
    if (written.kind === 'conflict') {
      this.#isLost = true;
      return false;
    }
    this.#expected = written.revision;
    this.#written = state;
    this.#ownedUntilMs = askedMs + forMs;
    return true;
  }
}
