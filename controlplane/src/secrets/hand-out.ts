/**
 * Opens credentials for their recipients: agents, for their operations and polls, and the control
 * plane's own calls. Each use is recorded, by name and version.
 *
 * Invariant: a credential is opened only if the opened record itself permits the destination,
 * whatever was checked when a host or a step was configured with it.
 */
import { type CredentialName, type OperationId, store as wire } from '@rackwright/messages';
import { errorText } from '@rackwright/platform';
import { type StateStore, storeKey } from '@rackwright/store';
import { type AuditSink, credentialSent } from '../audit/index.ts';
import { readShared } from '../records/index.ts';
import { boundsProblem, type GivenFor, OutOfBounds } from './bounds.ts';

/** What is opened, and how. */
export interface CredentialOpener {
  readonly store: StateStore;
  /** Throws when it does not open. */
  readonly openCredential: (record: wire.CredentialRecord) => {
    readonly username: string;
    readonly password: string;
  };
}

/** A credential with its secret. */
export interface OpenedCredential {
  /** "credentials/C" */
  readonly name: string;
  readonly version: bigint;
  readonly username: string;
  readonly password: string;
}

/** The record of "credentials/C"; undefined when it does not exist. */
export async function credentialRecord(
  { store }: Pick<CredentialOpener, 'store'>,
  name: CredentialName,
): Promise<wire.CredentialRecord | undefined> {
  const key = storeKey(...name.split('/'));
  return (await readShared(store, wire.CredentialRecordSchema, key))?.record;
}

/**
 * The record of "credentials/C", if it may be sent there; undefined when it does not exist. Rejects
 * with `OutOfBounds` when it may not.
 */
export async function namedFor(
  opener: Pick<CredentialOpener, 'store'>,
  name: CredentialName,
  givenFor: GivenFor,
): Promise<wire.CredentialRecord | undefined> {
  const record = await credentialRecord(opener, name);
  const problem = record?.credential && boundsProblem(record.credential, givenFor);
  if (problem !== undefined) throw new OutOfBounds(problem);
  return record;
}

/**
 * Opens "credentials/C" for a destination; undefined when it does not exist. Rejects when it does
 * not open, and with `OutOfBounds` when it may not be sent there.
 */
export async function openNamed(
  opener: CredentialOpener,
  name: CredentialName,
  givenFor: GivenFor,
): Promise<OpenedCredential | undefined> {
  const record = await namedFor(opener, name, givenFor);
  return record === undefined ? undefined : openRecord(opener, name, record);
}

/** Opens a record whose bounds were checked. */
export function openRecord(
  { openCredential }: Pick<CredentialOpener, 'openCredential'>,
  name: CredentialName,
  record: wire.CredentialRecord,
): OpenedCredential {
  const { username, password } = openCredential(record);
  return { name, version: record.credential?.version ?? 0n, username, password };
}

/** Why a credential was not sent, in words for people. */
export function whyNotGiven(error: unknown): string {
  if (error instanceof OutOfBounds) return error.message;
  return `its credential cannot be opened: ${errorText(error)}`;
}

/** Records that it was sent to `to`, for an operation or, without one, for the agent's polls. */
export function noteGiven(
  audit: AuditSink | undefined,
  { name, version }: Pick<OpenedCredential, 'name' | 'version'>,
  to: string,
  operationId = '',
): void {
  audit?.note(credentialSent(name, version, to, operationId));
}

/** Opens credentials for the webhook of an operation, and records each. */
export function secretsForCalls(
  opener: CredentialOpener,
  audit: AuditSink,
): (
  name: CredentialName,
  operationId: OperationId,
  givenFor: GivenFor,
) => Promise<OpenedCredential | undefined> {
  return async (name, operationId, givenFor) => {
    const opened = await openNamed(opener, name, givenFor);
    if (opened !== undefined) noteGiven(audit, opened, 'a webhook', operationId);
    return opened;
  };
}
