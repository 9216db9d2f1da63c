/**
 * Carries out the decisions of a pass. The caller keeps the order: evidence before the record that
 * cites it, everything else after the record is durable.
 */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  type CredentialName,
  type HostId,
  type HostUid,
  type OperationId,
  type RackId,
  store as wire,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import {
  copyOf,
  isStoreUnavailable,
  readShared,
  sameMessage,
  untilWritten,
  writeRecord,
  writeShared,
} from '../../records/index.ts';
import {
  type GivenFor,
  namedFor,
  noteGiven,
  openRecord,
  whyNotGiven,
} from '../../secrets/index.ts';
import { writeAbandoned, writeTombstone } from '../fleet/tombstones.ts';
import { isSameLife } from '../operation/lineage.ts';
import type { HostEffect } from '../pass/types.ts';
import type { HostsDependencies } from './dependencies.ts';
import { type ExistingStatements, writeCertificates, writeDocuments } from './erasure-records.ts';
import type { LiveSession } from './sessions.ts';

/** A cancel that an agent has not begun by then is useless. */
const cancelDeadlineMs = 3_600_000;

/**
 * Signs and writes the certificates of a pass, the output of steps, and the remains of a removal;
 * create-only, under deterministic names. Stops at existing statements that differ, and returns
 * them: the pass is then decided again.
 */
export async function writeEvidence(
  deps: HostsDependencies,
  before: wire.HostRecord,
  effects: readonly HostEffect[],
): Promise<ExistingStatements> {
  const none: ExistingStatements = new Map();
  for (const effect of effects) {
    let existing = none;
    if (effect.kind === 'abandon') await writeAbandoned(deps, effect);
    if (effect.kind === 'tombstone') await writeTombstone(deps, before);
    if (effect.kind === 'stepOutput') await writeOutput(deps, effect);
    if (effect.kind === 'document') existing = await writeDocuments(deps, effect.documents);
    if (effect.kind === 'certify') {
      existing = await writeCertificates(deps, before.host?.uid ?? '', effect.certificates);
    }
    if (existing.size > 0) return existing;
  }
  return none;
}

/** One result of an attempt counts: an earlier writer, in another pass, wrote the same. */
async function writeOutput(
  deps: HostsDependencies,
  { operationId, exit, tail }: Extract<HostEffect, { kind: 'stepOutput' }>,
): Promise<void> {
  const record = create(wire.StepOutputRecordSchema, { operationId, exit, tail });
  const key = storeKey('stepOutputs', ...operationId.split('/'));
  await writeRecord(deps, wire.StepOutputRecordSchema, key, record, 'absent');
}

/** Writes observed facts when they differ from the known ones (R2); other facts stay. */
export async function writeFacts(
  deps: HostsDependencies,
  hostId: HostId,
  hostUid: HostUid,
  facts: Partial<wire.HostFacts>,
): Promise<void> {
  const key = storeKey('facts', hostId);
  const schema = wire.HostFactsSchema;
  await untilWritten(`what is known of hosts/${hostId}`, async () => {
    const kept = await readShared(deps.store, schema, key);
    // Facts of another host with the same name are dropped.
    const known = kept?.record.hostUid === hostUid ? kept.record : create(schema, { hostUid });
    const next = copyOf({ ...known, ...facts });
    if (kept !== undefined && sameMessage(kept.record, next)) return true;
    const written = await writeShared(deps, schema, key, next, kept?.revision ?? 'absent');
    return written.kind === 'ok' || undefined;
  });
}

/** An operation for the journal that the record names. */
export interface Sending {
  readonly rackId: RackId;
  readonly operation: agent.Operation;
  readonly sentTo: agent.Journal | undefined;
}

/**
 * The secret is sent first, in a message of its own. Rejects, without sending the operation, when
 * one of its credentials does not open, or may not be sent there.
 */
export async function sendOperation(deps: HostsDependencies, sending: Sending): Promise<void> {
  const { rackId, operation } = sending;
  const rack = `racks/${rackId}`;
  const bmc = bmcOf(operation);
  if (bmc !== undefined && bmc.credential !== '') {
    await sendCredential(deps, sending, bmc.credential, { rack, bmcAddress: bmc.address });
  }
  const { kind } = operation;
  if (kind.case === 'inspect' && kind.value.bmc !== undefined) {
    await sendForDrives(deps, sending, kind.value.bmc);
  }
  for (const name of [...ofRegistries(operation), ...secretsOf(operation)]) {
    await sendCredential(deps, sending, name, { rack });
  }
  sessionFor(deps, sending)?.send({ case: 'operation', value: stamped(deps, operation) });
  deps.crashPoint('cp.operationSent');
}

/** An inspection works without the BMC's list of drives, so also without its credential. */
async function sendForDrives(
  deps: HostsDependencies,
  sending: Sending,
  { credential, address }: agent.BmcAccess,
): Promise<void> {
  const rack = `racks/${sending.rackId}`;
  try {
    await sendCredential(deps, sending, credential, { rack, bmcAddress: address });
  } catch (error) {
    if (isStoreUnavailable(error)) throw error;
    const operation = sending.operation.id;
    const reason = whyNotGiven(error);
    deps.log.warn({ operation, rack, reason }, 'no list of drives is asked for', error);
  }
}

async function sendCredential(
  deps: HostsDependencies,
  sending: Sending,
  name: string,
  givenFor: GivenFor,
): Promise<void> {
  const record = await namedFor(deps, name, givenFor);
  const session = sessionFor(deps, sending);
  if (record === undefined || session === undefined) return;
  const version = record.credential?.version ?? 0n;
  const given = givenTo(session);
  if (given.get(name) !== version) {
    const opened = openRecord(deps, name, record);
    session.send({ case: 'credentialValue', value: create(agent.CredentialValueSchema, opened) });
    if (given.size >= givenMax) given.clear();
    given.set(name, version);
  }
  const to = `the agent of racks/${sending.rackId}`;
  noteGiven(deps.audit, { name, version }, to, sending.operation.id);
}

/** The most credentials that are remembered for one session: more than an agent keeps. */
const givenMax = 10_000;

/**
 * By name, the version that each session got with an operation. Its agent keeps the credential
 * until the last host that uses it is forgotten.
 */
const versionsGiven = new WeakMap<LiveSession, Map<CredentialName, bigint>>();

function givenTo(session: LiveSession): Map<CredentialName, bigint> {
  const given = versionsGiven.get(session) ?? new Map<CredentialName, bigint>();
  versionsGiven.set(session, given);
  return given;
}

/** R9. If the agent has meanwhile reconnected with another journal, the pass of its Hello sends. */
function sessionFor(
  { registry }: HostsDependencies,
  { rackId, sentTo }: Sending,
): LiveSession | undefined {
  const session = registry.sessionOf(rackId);
  const isIt = session !== undefined && sentTo !== undefined && isSameLife(session.journal, sentTo);
  return isIt ? session : undefined;
}

/** The last cancel sent by each session, by host: every pass decides it, and it is sent once. */
const cancelsSent = new WeakMap<LiveSession, Map<HostUid, OperationId>>();

/** If the session breaks off, the cancel is sent again after the next session's Hello. */
export function sendCancel(
  deps: HostsDependencies,
  rackId: RackId,
  record: wire.HostRecord,
  { cancelId, operationId }: Extract<HostEffect, { kind: 'cancel' }>,
): void {
  const session = deps.registry.sessionOf(rackId);
  if (session === undefined) return;
  const sent = cancelsSent.get(session) ?? new Map<HostUid, OperationId>();
  cancelsSent.set(session, sent);
  const hostUid = record.host?.uid ?? '';
  if (sent.get(hostUid) === cancelId) return;
  sent.set(hostUid, cancelId);
  const value = create(agent.OperationSchema, {
    id: cancelId,
    hostUid,
    hostName: record.host?.name ?? '',
    deadline: timestampFromMs(deps.clock.nowMs() + cancelDeadlineMs),
    kind: { case: 'cancel', value: create(agent.CancelSchema, { operationId }) },
  });
  session.send({ case: 'operation', value: stamped(deps, value) });
}

/** With our time at this sending, so that an agent with a different clock measures like us. */
function stamped({ clock }: HostsDependencies, operation: agent.Operation): agent.Operation {
  return { ...operation, sendTime: timestampFromMs(clock.nowMs()) };
}

export function sendForget(deps: HostsDependencies, rackId: RackId, record: wire.HostRecord): void {
  const value = create(agent.ForgetSchema, { hostUid: record.host?.uid ?? '' });
  // With its last host the agent drops a credential.
  const session = deps.registry.sessionOf(rackId);
  if (session !== undefined) versionsGiven.delete(session);
  send(deps, rackId, { case: 'forget', value });
}

function send(
  { registry }: HostsDependencies,
  rackId: RackId,
  message: agent.SessionResponse['message'],
): void {
  registry.sessionOf(rackId)?.send(message);
}

function bmcOf(operation: agent.Operation): agent.BmcAccess | undefined {
  switch (operation.kind.case) {
    case 'verifyAccess':
    case 'setPower':
    case 'runStep':
      return operation.kind.value.bmc;
    default:
      return undefined;
  }
}

/** Credentials of which the step's program gets a part. */
function secretsOf({ kind }: agent.Operation): ReadonlySet<CredentialName> {
  return new Set(kind.case === 'runStep' ? kind.value.secrets.map((use) => use.credential) : []);
}

/** Credentials of its image registries, including mirrors. */
function ofRegistries({ kind }: agent.Operation): ReadonlySet<CredentialName> {
  if (kind.case !== 'runStep') return new Set();
  const { image, deployment } = kind.value;
  const sources = [image, deployment?.image, ...(deployment?.image?.mirrors ?? [])];
  const names = sources.map((source) => source?.credential ?? '');
  return new Set(names.filter((name) => name !== ''));
}
