/**
 * The state that the journal's records yield. Pure.
 *
 * 1. `applyRecords` is total: a record about something that is not kept changes nothing.
 * 2. Folding `recordsOf(state)` gives `state` again, so that compaction loses nothing.
 * 3. Phases only rise: received, begun, ended, answered.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  type HostUid,
  type Incarnation,
  noRevision,
  type OperationId,
  type Revision,
  type StoreRefusal,
  storeRefusalOf,
} from '@rackwright/messages';

/** An operation that the journal knows. */
export type JournalledOperation =
  | { readonly phase: 'received'; readonly operation: agent.Operation }
  | { readonly phase: 'begun'; readonly operation: agent.Operation }
  | {
      readonly phase: 'ended';
      readonly operation: agent.Operation;
      readonly report: agent.Report;
      /** The control plane has answered the report. */
      readonly answered: boolean;
    };

/** A boot grant with the key that owns it, once there is one. */
export interface JournalledGrant {
  readonly opened: agent.GrantOpened;
  readonly publicKey?: Uint8Array;
  /** The step that takes the runner of this boot away, once it may act. */
  readonly handedOff?: agent.GrantHandedOff;
}

export interface JournalState {
  /** Empty before the first JournalStarted. */
  readonly id: string;
  readonly generation: bigint;
  /**
   * The present life, then the earlier ones, the latest first; 0n: the journal is older than lives.
   */
  readonly life: bigint;
  readonly earlierLives: readonly bigint[];
  /** By operation id, in the order they were received. */
  readonly operations: ReadonlyMap<OperationId, JournalledOperation>;
  /** By the id of the operation that opened it. */
  readonly grants: ReadonlyMap<OperationId, JournalledGrant>;
  /** By host: the deployment that it has phoned home from last; the oldest first. */
  readonly proved: ReadonlyMap<HostUid, agent.HostProved>;
  /** Store incarnation and the highest revision seen in it. */
  readonly store?: {
    readonly incarnation: Incarnation;
    readonly revision: Revision;
    /** Revisions that were lost, by the acceptances so far. */
    readonly lostRevisions: Revision;
    /** Why nothing destructive is done for the store met last, until a person accepts it. */
    readonly refusal?: StoreRefusal;
  };
  /** Highest sequence of a final report, ever. */
  readonly lastSequence: bigint;
  /** Latest wall time of any record, milliseconds. */
  readonly latestTimeMs: number;
}

type RecordBody = agent.JournalRecord['record'];

/** A record's content, as fields. */
export type RecordInit = NonNullable<MessageInitShape<typeof agent.JournalRecordSchema>['record']>;

export const emptyJournal: JournalState = {
  id: '',
  generation: 0n,
  life: 0n,
  earlierLives: [],
  operations: new Map(),
  grants: new Map(),
  proved: new Map(),
  lastSequence: 0n,
  latestTimeMs: 0,
};

/** A record of `timeMs`. */
export function makeRecord(timeMs: number, record: RecordInit): agent.JournalRecord {
  return create(agent.JournalRecordSchema, { time: timestampFromMs(timeMs), record });
}

/** The state after more records; `before` stays as it is. */
export function applyRecords(
  before: JournalState,
  records: readonly agent.JournalRecord[],
): OwnState {
  return addRecords({ ...before, operations: new Map(before.operations) }, records);
}

/** A state whose operations belong to its holder alone. */
export interface OwnState extends JournalState {
  readonly operations: Map<OperationId, JournalledOperation>;
}

/**
 * The state after more records. It takes over the operations of `before`, which must not be used
 * any more: the work does not grow with their number.
 */
export function addRecords(before: OwnState, records: readonly agent.JournalRecord[]): OwnState {
  // A reader detects a change of the grants by the identity of this object.
  const changesGrants = records.some(({ record }) => isOfGrant(record));
  const { operations } = before;
  const own = { operations, grants: new Map(changesGrants ? before.grants : []) };
  let state: OwnState = changesGrants ? { ...before, grants: own.grants } : before;
  for (const { record, time } of records) {
    const timeMs = time === undefined ? 0 : timestampMs(time);
    const latestTimeMs = Math.max(state.latestTimeMs, timeMs);
    state = { ...state, ...changeBy(state, own, record), operations, latestTimeMs };
  }
  return state;
}

/** Parts that belong to the new state alone. */
interface Own {
  readonly operations: Map<OperationId, JournalledOperation>;
  readonly grants: Map<OperationId, JournalledGrant>;
}

function storeChange(
  { store: known }: JournalState,
  seen: Extract<RecordBody, { case: 'storeSeen' }>['value'],
): Partial<JournalState> {
  const { incarnation, revision, accepted } = seen;
  const lostRevisions = larger(known?.lostRevisions ?? noRevision, seen.lostRevisions);
  if (accepted) return { store: { incarnation, revision, lostRevisions } };
  // Only an acceptance lifts a refusal: what the agent sees of the store meanwhile has no effect.
  if (known?.refusal !== undefined) return {};
  const latest = known?.incarnation === incarnation ? known.revision : noRevision;
  const store = { incarnation, revision: larger(latest, revision), lostRevisions };
  const refusal = storeRefusalOf(seen.refusal, seen.refused);
  return { store: refusal === undefined ? store : { ...store, refusal } };
}

function changeBy(state: JournalState, own: Own, body: RecordBody): Partial<JournalState> {
  if (isOfGrant(body)) {
    changeGrants(own.grants, body);
    return {};
  }
  switch (body.case) {
    case 'started': {
      const { id, generation, lastSequence: last, life, earlierLives } = body.value;
      const lastSequence = larger(state.lastSequence, last);
      return { id, generation, life, earlierLives, lastSequence };
    }
    case 'received':
    case 'begun':
    case 'ended':
    case 'answered':
    case 'forgotten':
      return operationChange(state, own.operations, body);
    case 'storeSeen':
      return storeChange(state, body.value);
    case 'hostProved':
      return { proved: changedProofs(state.proved, body.value) };
    case undefined:
      return {};
  }
}

/** Hosts whose last proof is kept. */
const provedHostsMax = 10_000;

function changedProofs(
  before: JournalState['proved'],
  proof: agent.HostProved,
): JournalState['proved'] {
  const proved = new Map(before);
  proved.delete(proof.hostUid);
  // Without a deployment the host is forgotten.
  if (proof.deploymentId === '') return proved;
  proved.set(proof.hostUid, proof);
  const [oldest] = proved.keys();
  if (proved.size > provedHostsMax && oldest !== undefined) proved.delete(oldest);
  return proved;
}

type OperationBody = Extract<
  RecordBody,
  { case: 'received' | 'begun' | 'ended' | 'answered' | 'forgotten' }
>;

/** Changes `operations`, which are the new state's own. */
function operationChange(
  state: JournalState,
  operations: Map<OperationId, JournalledOperation>,
  body: OperationBody,
): Partial<JournalState> {
  switch (body.case) {
    case 'received': {
      const { operation } = body.value;
      if (operation === undefined || operations.has(operation.id)) return {};
      operations.set(operation.id, { phase: 'received', operation });
      return {};
    }
    case 'begun': {
      const known = operations.get(body.value.operationId);
      if (known?.phase !== 'received') return {};
      operations.set(known.operation.id, { phase: 'begun', operation: known.operation });
      return {};
    }
    case 'ended': {
      const { report } = body.value;
      if (report === undefined) return {};
      const lastSequence = larger(state.lastSequence, report.sequence);
      const known = operations.get(report.operationId);
      if (known === undefined || known.phase === 'ended') return { lastSequence };
      const { operation } = known;
      operations.set(operation.id, { phase: 'ended', operation, report, answered: false });
      return { lastSequence };
    }
    case 'answered': {
      const known = operations.get(body.value.operationId);
      if (known?.phase !== 'ended') return {};
      operations.set(known.operation.id, { ...known, answered: true });
      return {};
    }
    case 'forgotten':
      operations.delete(body.value.operationId);
      return {};
  }
}

type GrantBody = Extract<
  RecordBody,
  { case: 'grantOpened' | 'grantBound' | 'grantClosed' | 'grantHandedOff' }
>;

function isOfGrant(body: RecordBody): body is GrantBody {
  switch (body.case) {
    case 'grantOpened':
    case 'grantBound':
    case 'grantClosed':
    case 'grantHandedOff':
      return true;
    default:
      return false;
  }
}

/** Changes `grants`, which are the new state's own. */
function changeGrants(grants: Map<OperationId, JournalledGrant>, body: GrantBody): void {
  switch (body.case) {
    case 'grantOpened':
      grants.set(body.value.operationId, { opened: body.value });
      return;
    case 'grantBound': {
      const { operationId, publicKey } = body.value;
      const known = grants.get(operationId);
      // The first key owns the boot.
      if (known === undefined || known.publicKey !== undefined) return;
      grants.set(operationId, { ...known, publicKey });
      return;
    }
    case 'grantHandedOff': {
      const known = grants.get(body.value.operationId);
      // A boot ends once.
      if (known === undefined || known.handedOff !== undefined) return;
      grants.set(body.value.operationId, { ...known, handedOff: body.value });
      return;
    }
    case 'grantClosed':
      grants.delete(body.value.operationId);
  }
}

/** The fewest records that add up to `state`. */
export function recordsOf(state: JournalState): agent.JournalRecord[] {
  const { id, generation, lastSequence, store, life } = state;
  const earlierLives = [...state.earlierLives];
  const bodies: RecordInit[] = [
    { case: 'started', value: { id, generation, lastSequence, life, earlierLives } },
    ...[...state.operations.values()].flatMap(operationBodies),
    ...[...state.grants.values()].flatMap(grantBodies),
    ...[...state.proved.values()].map((value) => ({ case: 'hostProved', value }) as const),
  ];
  if (store !== undefined) bodies.push(storeSeen(store, store.refusal));
  return bodies.map((body) => makeRecord(state.latestTimeMs, body));
}

/** The record of a store's position, and of the refusal of the store met after it. */
export function storeSeen(
  { incarnation, revision, lostRevisions }: NonNullable<JournalState['store']>,
  refusal: StoreRefusal | undefined,
): RecordInit {
  const value = { incarnation, revision, lostRevisions };
  if (refusal === undefined) return { case: 'storeSeen', value };
  const { kind, text } = refusal;
  return { case: 'storeSeen', value: { ...value, refusal: kind, refused: text } };
}

function operationBodies(known: JournalledOperation): RecordInit[] {
  const { operation } = known;
  const bodies: RecordInit[] = [{ case: 'received', value: { operation } }];
  if (known.phase === 'begun') {
    bodies.push({ case: 'begun', value: { operationId: operation.id } });
  }
  if (known.phase === 'ended') {
    bodies.push({ case: 'ended', value: { report: known.report } });
    if (known.answered) bodies.push({ case: 'answered', value: { operationId: operation.id } });
  }
  return bodies;
}

function grantBodies({ opened, publicKey, handedOff }: JournalledGrant): RecordInit[] {
  const bodies: RecordInit[] = [{ case: 'grantOpened', value: opened }];
  if (publicKey !== undefined) {
    bodies.push({ case: 'grantBound', value: { operationId: opened.operationId, publicKey } });
  }
  if (handedOff !== undefined) bodies.push({ case: 'grantHandedOff', value: handedOff });
  return bodies;
}

function larger<T extends bigint>(a: T, b: T): T {
  return a > b ? a : b;
}
