/** Reads the snapshot that one pass over a host decides upon. */
import { create } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { meaningfulUuid } from '@rackwright/erasure';
import {
  type agent,
  asRevision,
  type CredentialName,
  type Freeze,
  type HostName,
  type HostSpec,
  type HostUid,
  PowerMismatchPolicy,
  type ReplicaId,
  store as wire,
} from '@rackwright/messages';
import { type StateStore, storeKey } from '@rackwright/store';
import { credentialsOfRegistries } from '../../images/index.ts';
import { idOf, type ReadableStore, type RecordWriter, readShared } from '../../records/index.ts';
import { isByHand } from '../bmc/protocols.ts';
import { identityHex } from '../erasure/identity.ts';
import { fencesAround, fencesPending } from '../fleet/fences.ts';
import type { DisksElsewhere } from '../fleet/known-disks.ts';
import { identityReservation } from '../fleet/removal.ts';
import {
  confirm,
  couldReserve,
  hasAllReservations,
  isStale,
  releaseReserved,
  reserve,
  reservedValues,
} from '../fleet/reservations.ts';
import { isSameLife } from '../operation/lineage.ts';
import { freezeText } from '../pass/brake.ts';
import { activeRun } from '../pass/pass.ts';
import type {
  Brake,
  FreezeInForce,
  HostEvent,
  HostSnapshot,
  LeaseBrakeKind,
  SessionSnapshot,
} from '../pass/types.ts';
import { sessionHintMs } from './agent-away.ts';
import type { HostsDependencies } from './dependencies.ts';
import { quotaViews } from './limit-slots.ts';
import type { LiveSession } from './sessions.ts';

const nothing: ReadonlySet<string> = new Set();

/** The parts of the context that the caller provides. */
export interface HostSnapshotParts {
  readonly session: LiveSession | undefined;
  readonly fleet: wire.FleetRecord | undefined;
  /** By the identities in an event; empty without an event. */
  readonly identityOwners: ReadonlyMap<string, HostName>;
  /** For the disks in an event; empty without an event. */
  readonly disksElsewhere: DisksElsewhere;
  /** Whether the host may act under its addresses: a pass takes them, other callers only check. */
  readonly holdsAddresses: (record: wire.HostRecord) => Promise<AddressClaim>;
}

export interface AddressClaim {
  readonly holds: boolean;
  /** Hosts removed by force whose agent may still act on addresses that this host is to take. */
  readonly fencedBy: readonly HostUid[];
}

const notHeld: AddressClaim = { holds: false, fencedBy: [] };
const held: AddressClaim = { holds: true, fencedBy: [] };

/** Writes nothing itself. */
export async function readHostSnapshot(
  deps: Pick<HostsDependencies, 'clock' | 'replicaId' | 'timing' | 'software'> & {
    readonly store: ReadableStore;
  },
  record: wire.HostRecord,
  { session, fleet, identityOwners, disksElsewhere, holdsAddresses }: HostSnapshotParts,
): Promise<HostSnapshot> {
  const { store } = deps;
  const { host } = record;
  const { uid = '', name, spec } = host ?? {};
  const [rack, facts, credentialVersion, fences, addresses, registryCredentials] =
    await Promise.all([
      readRack(store, idOf(spec?.rack)),
      readShared(store, wire.HostFactsSchema, storeKey('facts', idOf(name))),
      spec !== undefined && isByHand(spec)
        ? noSecret
        : credentialVersionOf(store, spec?.bmc?.credential ?? ''),
      record.fences.length === 0 ? nothing : fencesPending(store, record),
      startsNothingNow(record) ? held : holdsAddresses(record),
      credentialVersions(deps, fleet),
    ]);
  return {
    nowMs: deps.clock.nowMs(),
    timing: deps.timing,
    session: isLatest(session, rack, deps.replicaId) ? sessionSnapshot(session, record) : undefined,
    sessionElsewhere: isElsewhere(deps, rack),
    ...ofRack(rack),
    credentialVersion,
    facts: factsOf(uid, facts?.record),
    fleet: fleet?.fleet?.spec,
    registryCredentials,
    identityOwners,
    disksElsewhere,
    hasReservations: addresses.holds,
    fencesPending: fences,
    fencesFound: addresses.fencedBy,
    rackFaults: rack?.rack?.status?.faults ?? [],
    incarnation: store.incarnation,
    freeze: freezeInForce(rack, fleet),
    quotaViews: quotaViews(uid, rack, fleet),
    replica: deps.replicaId,
    ...(deps.software === undefined ? {} : { software: deps.software }),
  };
}

async function readRack(store: ReadableStore, id: string): Promise<wire.RackRecord | undefined> {
  if (id === '') return undefined;
  return (await readShared(store, wire.RackRecordSchema, storeKey('racks', id)))?.record;
}

/** A person needs no credential: none is missing. */
const noSecret = 0n;

/** `name`: "credentials/CREDENTIAL", or empty. */
async function credentialVersionOf(
  store: ReadableStore,
  name: string,
): Promise<bigint | undefined> {
  if (name === '') return undefined;
  const kept = await readShared(store, wire.CredentialRecordSchema, storeKey(...name.split('/')));
  return kept?.record.credential?.version;
}

/** The parts that come from the rack's record alone. */
function ofRack(rack: wire.RackRecord | undefined) {
  const { lostBefore = 0n, lostRevisions = 0n, tombstones = [] } = rack ?? {};
  return {
    ...agentSeen(rack),
    ...joined(rack),
    agentPublicKey: rack?.agentPublicKey,
    agentSteps: rack?.journal === undefined ? undefined : rack.agentSteps,
    tombstones: tombstones.length,
    powerMismatch: rack?.rack?.spec?.powerMismatch ?? PowerMismatchPolicy.UNSPECIFIED,
    restored: restoredBrake(rack)?.text,
    restoredAccepted: rack?.acceptedStore !== undefined,
    lostRevisions: asRevision(lostBefore + lostRevisions),
  };
}

/** Facts of an earlier host with the same name do not apply to this one. */
function factsOf(hostUid: HostUid, kept: wire.HostFacts | undefined): wire.HostFacts {
  return kept?.hostUid === hostUid ? kept : create(wire.HostFactsSchema, { hostUid });
}

/** An agent whose key was revoked may still be working, and has everything to forget. */
function joined(
  rack: wire.RackRecord | undefined,
): Pick<HostSnapshot, 'agentRegistered' | 'agentRevoked'> {
  const { agentPublicKey = new Uint8Array(), revokedKeys = [] } = rack ?? {};
  const agentRevoked = agentPublicKey.length === 0 && revokedKeys.length > 0;
  return { agentRegistered: agentPublicKey.length > 0 || agentRevoked, agentRevoked };
}

/**
 * Takes addresses again that no host has any more. The creation of the host may have died before
 * it had them all; or another creation took them before its own host existed.
 *
 * Their last holder may have been removed by force. So the host's record must name all fences
 * around it before it takes an address: a host that has its addresses looks for no more of them.
 */
export async function takeAddresses(
  deps: RecordWriter,
  record: wire.HostRecord,
): Promise<AddressClaim> {
  const { spec, uid = '', name = '' } = record.host ?? {};
  if (spec === undefined) return notHeld;
  const { store } = deps;
  if (await hasAllReservations(store, uid, spec)) return held;
  const holder = { name, uid };
  const values = reservedValues(spec);
  if (!(await couldReserve(store, uid, values))) return notHeld;
  const before = await newFences(store, record, spec);
  if (before.length > 0) return { holds: false, fencedBy: before };
  const outcome = await reserve(deps, holder, values);
  if (outcome.kind !== 'reserved') return notHeld;
  // Another host may have had an address in between, and have been removed by force.
  const after = await newFences(store, record, spec);
  if (after.length > 0) {
    await releaseReserved(deps, holder, outcome.added);
    return { holds: false, fencedBy: after };
  }
  return (await confirm(deps, holder, values)) ? held : notHeld;
}

/** The fences around a host with this spec that its record does not name. */
async function newFences(
  store: StateStore,
  { fences }: wire.HostRecord,
  spec: HostSpec,
): Promise<HostUid[]> {
  return (await fencesAround(store, spec)).filter((uid) => !fences.includes(uid));
}

/** Whether the host has its addresses, or would take them in its next pass. Writes nothing. */
export async function mayHoldAddresses(
  store: ReadableStore,
  { host }: wire.HostRecord,
): Promise<AddressClaim> {
  const { spec, uid = '' } = host ?? {};
  if (spec === undefined) return notHeld;
  return (await couldReserve(store, uid, reservedValues(spec))) ? held : notHeld;
}

/**
 * The versions of the credentials that the fleet names for registries and steps; there are only a
 * few.
 */
export async function credentialVersions(
  { store }: { readonly store: ReadableStore },
  fleet: wire.FleetRecord | undefined,
): Promise<ReadonlyMap<CredentialName, bigint>> {
  const versions = new Map<CredentialName, bigint>();
  const { registryCredentials = {}, credentials = [] } = fleet?.fleet?.spec?.templates ?? {};
  const ofRegistries = credentialsOfRegistries(fleet?.fleet?.spec?.registries);
  const named = [...Object.values(registryCredentials), ...credentials, ...ofRegistries];
  for (const name of new Set(named)) {
    const version = await credentialVersionOf(store, name);
    if (version !== undefined) versions.set(name, version);
  }
  return versions;
}

/** The fleet's freeze takes precedence over the rack's. */
function freezeInForce(
  rack: wire.RackRecord | undefined,
  fleet: wire.FleetRecord | undefined,
): FreezeInForce | undefined {
  const of = (whose: string, freeze: Freeze | undefined) =>
    freeze === undefined ? undefined : { ...freeze, of: whose };
  return (
    of('the fleet', fleet?.fleet?.status?.freeze) ??
    of(rack?.rack?.name ?? '', rack?.rack?.status?.freeze)
  );
}

/** What keeps agents of the rack from beginning something destructive now; undefined: nothing. */
export function destructionBrake(
  rack: wire.RackRecord | undefined,
  fleet: wire.FleetRecord | undefined,
): Brake<LeaseBrakeKind> | undefined {
  const freeze = freezeInForce(rack, fleet);
  if (freeze === undefined) return restoredBrake(rack);
  const sinceMs = freeze.at === undefined ? undefined : timestampMs(freeze.at);
  return { kind: 'freeze', text: freezeText(freeze), sinceMs };
}

/** Until the acceptance has reached the agent, it gets no orders. */
function restoredBrake(rack: wire.RackRecord | undefined): Brake<LeaseBrakeKind> | undefined {
  const name = rack?.rack?.name ?? '';
  const restored = rack?.rack?.status?.restoredStore;
  const sinceMs = restored?.since === undefined ? undefined : timestampMs(restored.since);
  if (rack?.acceptedStore !== undefined) {
    const text = `the restored store was accepted; the agent of ${name} has not heard of it yet`;
    return { kind: 'restoredStoreAccepted', text, sinceMs };
  }
  if (restored === undefined) return undefined;
  const text = `the store was restored, and may have lost what the agent of ${name} has done since`;
  return { kind: 'restoredStore', text, sinceMs };
}

/**
 * R6: a half-open stream outlives its agent. An operation that was sent to a newer session of the
 * rack, perhaps at another replica, is not lost because this session does not have it.
 */
function isLatest(
  session: LiveSession | undefined,
  rack: wire.RackRecord | undefined,
  replicaId: ReplicaId,
): session is LiveSession {
  if (session === undefined) return false;
  const { journal, sessionReplica = '' } = rack ?? {};
  if (sessionReplica !== '' && sessionReplica !== replicaId) return false;
  return journal === undefined || isSameLife(journal, session.journal);
}

function isElsewhere(
  { replicaId, clock }: Pick<HostsDependencies, 'replicaId' | 'clock'>,
  rack: wire.RackRecord | undefined,
): boolean {
  const { sessionReplica: holder = '', sessionTime } = rack ?? {};
  if (holder === '' || holder === replicaId || sessionTime === undefined) return false;
  return timestampMs(sessionTime) + sessionHintMs > clock.nowMs();
}

/** A replica that was killed with a session has left only the last renewal of its hint. */
function agentSeen(rack: wire.RackRecord | undefined): { readonly agentSeenMs?: number } {
  const times = [rack?.rack?.status?.lastSeenTime, rack?.sessionTime];
  const seenMs = times.filter((time) => time !== undefined).map((time) => timestampMs(time));
  return seenMs.length === 0 ? {} : { agentSeenMs: Math.max(...seenMs) };
}

/** Unique values are read only when a run could start: during a run they stay the host's. */
function startsNothingNow(record: wire.HostRecord): boolean {
  const status = record.host?.status;
  return status !== undefined && activeRun(status) !== undefined;
}

function sessionSnapshot(session: LiveSession, record: wire.HostRecord): SessionSnapshot {
  return {
    journal: session.journal,
    lastMessageMs: session.lastMessageMs(),
    openedMs: session.openedMs,
    awaitsReport: session.awaitsReport(record.operation?.operation?.id ?? ''),
    operationKinds: session.operationKinds,
  };
}

/**
 * Called before a report with a BMC identity is judged: the identity is reserved for this host, or
 * its owner is found. Also finds the owner of a machine that came up in place of this host.
 */
export async function reserveIdentity(
  writer: RecordWriter,
  record: wire.HostRecord,
  event: HostEvent,
): Promise<ReadonlyMap<string, HostName>> {
  const owners = new Map<string, HostName>();
  const { host } = record;
  if (event.kind !== 'report' || host === undefined) return owners;
  const { report } = event;
  if (report.operationId !== record.operation?.operation?.id) return owners;
  const observations = observationsOf(report);
  const guid = observations?.bmcIdentity?.guid;
  if (guid !== undefined && meaningfulUuid(guid) !== undefined) {
    const value = identityReservation(guid);
    if (report.result.case === 'complete') {
      const outcome = await reserve(writer, host, [value]);
      if (outcome.kind === 'taken') owners.set(value.value, outcome.taken[0]?.by ?? 'another host');
      else if (!(await confirm(writer, host, [value]))) owners.set(value.value, 'another host');
    } else {
      await findOwner(writer, guid, owners);
    }
  }
  const uuid = observations?.inventory?.system?.uuid;
  if (uuid !== undefined) await findOwner(writer, uuid, owners);
  return owners;
}

/** Looks up a raw identity in the byte orders that firmware and BMCs use. */
async function findOwner(
  { store }: RecordWriter,
  bytes: Uint8Array,
  owners: Map<string, HostName>,
): Promise<void> {
  for (const order of byteOrders(bytes)) {
    const value = identityReservation(order);
    const kept = await readShared(store, wire.ReservationSchema, value.key);
    if (kept === undefined || (await isStale(store, kept.record, value))) continue;
    owners.set(identityHex(bytes), kept.record.holder);
  }
}

function byteOrders(bytes: Uint8Array): Uint8Array[] {
  if (bytes.length !== 16) return [];
  const swap = (from: Uint8Array) =>
    Uint8Array.of(
      ...from.subarray(0, 4).toReversed(),
      ...from.subarray(4, 6).toReversed(),
      ...from.subarray(6, 8).toReversed(),
      ...from.subarray(8),
    );
  return [bytes, swap(bytes), bytes.toReversed()];
}

function observationsOf(report: agent.Report): agent.Observations | undefined {
  switch (report.result.case) {
    case 'complete':
    case 'failed':
    case 'hostUpdated':
      return report.result.value.observations;
    default:
      return undefined;
  }
}
