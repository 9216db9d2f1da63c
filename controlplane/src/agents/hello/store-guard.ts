/**
 * The guard against a store that has lost data (DESIGN §10), at an agent's Hello: compares what the
 * agent has seen with what the store has. Pure.
 *
 * Invariants:
 * 1. A known loss stays in the rack's record until a person accepts it, even when the store's
 *    revision has since passed it.
 * 2. An acceptance is kept until a Hello shows that the agent has it.
 * 3. The size of the loss is recorded also when the loss was accepted before the agent came.
 * 4. The revision plus all revisions lost before it never decreases, also after repeated restores.
 *    So numbers derived from it are never reused, and a backup from before an earlier restore is
 *    noticed.
 * 5. An agent whose memory is from before an accepted loss gets the acceptance again: a copy of an
 *    agent, or one whose disk was rolled back. Otherwise it would keep its list of hosts, which
 *    counts from further on, and ignore each newer one.
 */
import { create } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  asRevision,
  type HostUid,
  type Incarnation,
  noRevision,
  type RackStatus,
  RestoredStoreSchema,
  type Revision,
  storeRefusalOf,
  systemActor,
  type store as wire,
} from '@rackwright/messages';

/** Who repeats an acceptance. */
const by = systemActor('control plane');
/** The most operations of a journal that are shown to the person who accepts. */
const journalLinesMax = 64;

export interface StorePosition {
  readonly incarnation: Incarnation;
  readonly revision: Revision;
}

/** The revisions lost so far, as this rack's record has them. */
export function lostSoFar({ lostBefore, lostRevisions }: wire.RackRecord): Revision {
  return asRevision(lostBefore + lostRevisions);
}

/**
 * Whether the agent has seen data that this store lacks. An agent that has seen nothing has not.
 */
export function hasSeenMore(
  hello: agent.Hello,
  store: StorePosition,
  record: wire.RackRecord,
): boolean {
  if (storeRefusalOf(hello.storeRefusal, hello.storeRefused) !== undefined) return true;
  if (hello.incarnation === '') return false;
  if (hello.incarnation !== store.incarnation) return true;
  return seenBy(hello) > store.revision + lostSoFar(record);
}

/** Whether agent and store count the same loss: then the acceptance has reached the agent. */
function hasHeard(hello: agent.Hello, record: wire.RackRecord): boolean {
  return hello.incarnation === '' || hello.lostRevisions >= lostSoFar(record);
}

/** Invariant 4. */
function seenBy({ revision, lostRevisions }: agent.Hello): bigint {
  return revision + lostRevisions;
}

/** Puts the findings of a Hello into a rack's record. `hostName` names a host by its uid. */
export function foldStoreGuard(
  record: wire.RackRecord,
  status: RackStatus,
  hello: agent.Hello,
  store: StorePosition,
  nowMs: number,
  hostName: (hostUid: HostUid) => string,
): void {
  if (record.incarnation === '') record.incarnation = store.incarnation;
  const isAware = hasHeard(hello, record);
  if (!hasSeenMore(hello, store, record) && (isAware || record.acceptedStore === undefined)) {
    delete record.acceptedStore;
    // Invariant 5: without a loss that waits for a person, each counted loss was accepted.
    const isMissed = !isAware && status.restoredStore === undefined;
    if (isMissed) record.acceptedStore = create(agent.StoreAcceptedSchema, { ...store, by });
    return;
  }
  if (!isCovered(record, hello, store)) delete record.acceptedStore;
  const known = status.restoredStore ?? record.acceptedStore;
  if (known === undefined) beginLoss(record);
  const revision = known?.revision ?? store.revision;
  const lost = seenBy(hello) - revision - record.lostBefore;
  if (lost > record.lostRevisions) record.lostRevisions = asRevision(lost);
  if (record.acceptedStore !== undefined) return;
  const since: Timestamp = status.restoredStore?.since ?? timestampFromMs(nowMs);
  status.restoredStore = create(RestoredStoreSchema, {
    since,
    seenIncarnation: hello.incarnation,
    seenRevision: hello.revision,
    incarnation: store.incarnation,
    revision,
    journal: journalLines(hello.operations, hostName),
  });
}

/**
 * Whether the present acceptance is for this loss: a backup may contain an acceptance, and be
 * restored after a further loss. An acceptance from before the agent's Hello covers whatever the
 * agent brings from another incarnation.
 */
function isCovered(record: wire.RackRecord, hello: agent.Hello, store: StorePosition): boolean {
  const { acceptedStore, lostBefore, lostRevisions } = record;
  if (acceptedStore === undefined) return true;
  if (seenBy(hello) - acceptedStore.revision - lostBefore <= lostRevisions) return true;
  return hello.incarnation !== store.incarnation && lostRevisions === 0n;
}

/** A further loss is counted from here; earlier losses stay counted. */
function beginLoss(record: wire.RackRecord): void {
  record.lostBefore = lostSoFar(record);
  record.lostRevisions = noRevision;
}

/**
 * Whether the rack's agent gets no orders: a loss is not accepted, or the agent does not know yet.
 */
export function isGuarded(record: wire.RackRecord): boolean {
  return record.rack?.status?.restoredStore !== undefined || record.acceptedStore !== undefined;
}

/**
 * Until a loss is accepted, work that has begun goes on, and work that has ended keeps its report.
 * Work that has not begun gets no directive, so that it does not begin.
 */
export function guardedDirectives(
  operations: readonly agent.JournalledOperation[],
): agent.Directive[] {
  return operations
    .filter(({ state }) => state !== agent.JournalledOperation_State.JOURNALLED)
    .map(({ operationId }) =>
      create(agent.DirectiveSchema, { operationId, action: agent.Directive_Action.CONTINUE }),
    );
}

function journalLines(
  operations: readonly agent.JournalledOperation[],
  hostName: (hostUid: HostUid) => string,
): string[] {
  const lines = operations
    .slice(0, journalLinesMax)
    .map(
      ({ operationId, hostUid, state, answered }) =>
        `${hostName(hostUid)}: operation ${operationId} ${stateText(state, answered)}`,
    );
  const more = operations.length - lines.length;
  return more > 0 ? [...lines, `and ${more} more`] : lines;
}

function stateText(state: agent.JournalledOperation_State, answered: boolean): string {
  switch (state) {
    case agent.JournalledOperation_State.JOURNALLED:
      return 'received, not begun';
    case agent.JournalledOperation_State.BEGUN:
      return 'begun';
    case agent.JournalledOperation_State.ENDED:
      return answered ? 'ended' : 'ended, its result not taken in';
    default:
      return 'in a state that is not known here';
  }
}
