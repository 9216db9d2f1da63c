/**
 * CreateHost: checks, reservations, record, confirmation, in that order.
 *
 * Invariants:
 * 1. A crash at any point leaves no host, or one whose reservations show whether it may act.
 * 2. A repeated request id for the same host id returns the host that it made.
 */
import { clone, create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type Actor,
  type ApiFailure,
  alreadyExists,
  type CreateHostRequest,
  type CredentialName,
  type Host,
  type HostId,
  HostSpecSchema,
  HostState,
  type HostUid,
  type RackName,
  type RequestId,
  type SystemIdentity,
  store as wire,
} from '@rackwright/messages';
import { randomId } from '@rackwright/platform';
import { storeKey } from '@rackwright/store';
import type { Principal } from '../../access/index.ts';
import { hostKey, presentHost, readHost } from '../../call/host-view.ts';
import { idProblem, nameProblem, parseName } from '../../call/names.ts';
import type { RpcDependencies } from '../../call/ports.ts';
import { checkLabels, checkRequestId } from '../../call/texts.ts';
import { Violations } from '../../call/violations.ts';
import {
  appliedId,
  copyOf,
  deleteRecord,
  hasApplied,
  orUnavailable,
  withApplied,
  writeShared,
} from '../../records/index.ts';
import {
  confirm,
  createMethod,
  fenceHold,
  fencesAround,
  isCreation,
  type ReserveResult,
  releaseReserved,
  reserve,
  reservedValues,
} from '../index.ts';
import { checkHostSpec } from '../spec/host-spec.ts';
import { answeredBefore, idsBefore } from './delete-host.ts';
import { checkDestination, checkMayPoint } from './destination.ts';

/** The dependencies of CreateHost. */
export type CreationDependencies = Pick<
  RpcDependencies,
  'store' | 'clock' | 'random' | 'log' | 'hosts' | 'actor'
> & {
  /** The caller; absent: discovery, by a rule or line. */
  readonly principal?: Principal;
};

/** The origin of a discovered host. */
export interface HostOrigin {
  readonly actor?: Actor;
  readonly cause?: string;
  /** As the machine reported it. */
  readonly identity?: SystemIdentity | undefined;
  /** "racks/RACK rule NAME" of the rule that accepted it. */
  readonly rule?: string;
}

/** Handles one CreateHost. */
export async function createHost(
  deps: CreationDependencies,
  request: CreateHostRequest,
  origin: HostOrigin = {},
): Promise<Host> {
  await checkRequest(deps, request);
  const before = await readHost(deps, request.hostId);
  if (before !== undefined) return sameRequest(request, before);
  const gone = await answeredBefore(deps, request.hostId, requestIdOf(request));
  if (gone !== undefined) return gone;
  const { principal } = deps;
  const spec = request.host?.spec;
  if (principal !== undefined && spec !== undefined) {
    await checkMayPoint({ ...deps, principal }, 'host.spec', undefined, spec);
  }
  const ids = await idsBefore(deps, request.hostId);
  const record = initialRecord(deps, request, ids, origin);
  if (request.validateOnly) return presentHost(deps, record, 0, undefined);
  const holder = { name: `hosts/${request.hostId}`, uid: record.host?.uid ?? '' };
  const values = record.host?.spec === undefined ? [] : reservedValues(record.host.spec);
  const reserved = await reserve(deps, holder, values);
  if (reserved.kind === 'taken') {
    const rival = await readHost(deps, request.hostId);
    if (rival !== undefined) return sameRequest(request, rival);
    throw takenFailure(reserved);
  }
  await fenceOff(deps, record);
  const key = hostKey(request.hostId);
  const written = await writeShared(deps, wire.HostRecordSchema, key, record, 'absent');
  if (written.kind === 'conflict') {
    await releaseReserved(deps, holder, values);
    const rival = await readHost(deps, request.hostId);
    if (rival === undefined) throw alreadyExists(`${holder.name} was made and removed meanwhile.`);
    return sameRequest(request, rival);
  }
  if (!(await confirm(deps, holder, values))) {
    await takeBack(deps, request.hostId, holder.uid);
    await releaseReserved(deps, holder, values);
    throw alreadyExists(
      `Another host took one of the addresses of ${holder.name} at the same moment. Try again.`,
    );
  }
  deps.hosts.wakeCreated(request.hostId, written.revision);
  return presentHost(deps, record, written.revision, undefined);
}

/**
 * Read after the addresses are reserved: a host that was removed by force with one of them has
 * written its tombstone before.
 */
async function fenceOff(deps: CreationDependencies, record: wire.HostRecord): Promise<void> {
  const { spec, status, createTime } = record.host ?? {};
  if (spec === undefined || status === undefined || createTime === undefined) return;
  record.fences = await fencesAround(deps.store, spec);
  if (record.fences.length > 0) status.holds.push(fenceHold(record.fences, createTime));
}

/** Reconciles of the host that may come between a read of its record and its deletion. */
const takeBackRoundsMax = 16;

/**
 * Removes a host that is refused after all, even if its first reconcile has already written it. A
 * new host has at most started a read of its BMC, and the agent drops that on request.
 */
async function takeBack(deps: CreationDependencies, hostId: HostId, uid: HostUid): Promise<void> {
  for (let round = 0; round < takeBackRoundsMax; round++) {
    const kept = await readHost(deps, hostId);
    if (kept?.host.uid !== uid) return;
    if (kept.host.status?.state !== HostState.NEW) break;
    const deleted = await deleteRecord(deps, hostKey(hostId), kept.revision);
    if (deleted.kind !== 'conflict') return;
  }
  throw alreadyExists(
    `hosts/${hostId} was made, and another host took one of its addresses at the same moment: ` +
      `nothing starts on it. See \`rackwright host explain ${hostId}\`.`,
  );
}

/** The refusal that names every value that other hosts hold. */
export function takenFailure(outcome: Extract<ReserveResult, { kind: 'taken' }>): ApiFailure {
  const violations = outcome.taken.map(({ value, by }) => ({
    field: `host.${value.field}`,
    description: `is ${value.value}, which belongs to ${by}; each address belongs to one host`,
  }));
  const [first] = violations;
  const more = violations.length > 1 ? ` (and ${violations.length - 1} more)` : '';
  return alreadyExists(`${first?.field} ${first?.description}${more}.`, violations);
}

/** Adds violations for an absent rack or credential that the spec names. */
export async function checkReferences(
  { store }: Pick<RpcDependencies, 'store'>,
  path: string,
  spec: {
    readonly rack: RackName;
    readonly bmc?: { readonly credential: CredentialName } | undefined;
  },
  violations: Violations,
): Promise<void> {
  const rackId = parseName('racks', spec.rack);
  if (rackId !== undefined && !(await exists(store, 'racks', rackId))) {
    const hint = `create it first: rackwright rack create ${rackId}`;
    violations.add(`${path}.rack`, `names ${spec.rack}, which does not exist; ${hint}`);
  }
  const credential = spec.bmc?.credential ?? '';
  const credentialId = parseName('credentials', credential);
  if (credentialId !== undefined && !(await exists(store, 'credentials', credentialId))) {
    const hint = `create it first: rackwright credential create ${credentialId} --username USER`;
    violations.add(`${path}.bmc.credential`, `names ${credential}, which does not exist; ${hint}`);
  }
}

async function exists(
  store: RpcDependencies['store'],
  collection: string,
  id: string,
): Promise<boolean> {
  return (await orUnavailable(store.get(storeKey(collection, id)))).kind === 'found';
}

async function checkRequest(deps: CreationDependencies, request: CreateHostRequest): Promise<void> {
  const violations = new Violations();
  const { host, hostId } = request;
  violations.addIf('host_id', idProblem(hostId));
  checkRequestId(request.requestId, violations);
  if (host === undefined) {
    violations.add('host', 'is missing; give at least its spec');
    violations.throwIfAny();
    return;
  }
  if (host.name !== '' && host.name !== `hosts/${hostId}`) {
    const problem = nameProblem('hosts', host.name) ?? `must be "hosts/${hostId}" or empty`;
    violations.add('host.name', problem);
  }
  checkLabels('host.labels', host.labels, violations);
  const spec = host.spec ?? create(HostSpecSchema);
  checkHostSpec('host.spec', spec, violations);
  await checkReferences(deps, 'host.spec', spec, violations);
  await checkDestination(deps, 'host.spec', undefined, spec, violations);
  violations.throwIfAny();
}

function initialRecord(
  deps: CreationDependencies,
  request: CreateHostRequest,
  earlierIds: readonly string[],
  { actor = deps.actor, cause = 'created', identity, rule = '' }: HostOrigin,
): wire.HostRecord {
  const { host, hostId, requestId } = request;
  const time = timestampFromMs(deps.clock.nowMs());
  const made = create(wire.HostRecordSchema, {
    host: {
      name: `hosts/${hostId}`,
      uid: randomId(deps.random),
      createTime: time,
      updateTime: time,
      labels: { ...host?.labels },
      ...(host?.spec === undefined ? {} : { spec: clone(HostSpecSchema, host.spec) }),
      status: { state: HostState.NEW, dirty: true, useEpoch: 1n },
    },
    change: { actor, cause, requestId, time },
    ...(identity === undefined ? {} : { acceptedIdentity: identity }),
    acceptedByRule: rule,
    requestIds: withApplied(
      earlierIds.filter((id) => !isCreation(id)),
      requestIdOf(request),
    ),
  });
  // In the form of decoded records, so that the next reader need not decode it.
  return copyOf(made);
}

/** In the form that the host's record has. */
function requestIdOf({ requestId }: { readonly requestId: RequestId }): RequestId | undefined {
  return appliedId(createMethod, requestId);
}

/** Invariant 2. */
function sameRequest(
  { requestId, hostId }: CreateHostRequest,
  existing: { host: Host; record: wire.HostRecord },
): Host {
  if (hasApplied(existing.record, requestIdOf({ requestId }))) return existing.host;
  throw alreadyExists(`hosts/${hostId} exists already.`);
}
