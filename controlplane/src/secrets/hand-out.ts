/**
 * Opens credentials for whoever is to have them: agents, for their operations and looks, and the
 * control plane's own calls. Who gives one away says so, by name and version.
 */
import { store as wire } from '@rackwright/api';
import { type StateStore, storeKey } from '@rackwright/store';
import { type AuditSink, credentialSent } from '../audit/index.ts';
import { readShared } from '../records/index.ts';

/** What is opened, and how. */
export interface Vault {
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

/** The record of "credentials/C"; undefined when there is none. */
export async function credentialRecord(
  { store }: Pick<Vault, 'store'>,
  name: string,
): Promise<wire.CredentialRecord | undefined> {
  const key = storeKey(...name.split('/'));
  return (await readShared(store, wire.CredentialRecordSchema, key))?.record;
}

/** Opens "credentials/C"; undefined when there is none. Rejects when it does not open. */
export async function openNamed(vault: Vault, name: string): Promise<OpenedCredential | undefined> {
  const record = await credentialRecord(vault, name);
  if (record === undefined) return undefined;
  const { username, password } = vault.openCredential(record);
  return { name, version: record.credential?.version ?? 0n, username, password };
}

/** On record: it has been given to `to`, for an operation or, without one, for looks of its own. */
export function noteGiven(
  audit: AuditSink | undefined,
  { name, version }: Pick<OpenedCredential, 'name' | 'version'>,
  to: string,
  operationId = '',
): void {
  audit?.note(credentialSent(name, version, to, operationId));
}

/** Opens credentials for the webhook of an operation, each on record. */
export function secretsForCalls(
  vault: Vault,
  audit: AuditSink,
): (name: string, operationId: string) => Promise<OpenedCredential | undefined> {
  return async (name, operationId) => {
    const opened = await openNamed(vault, name);
    if (opened !== undefined) noteGiven(audit, opened, 'a webhook', operationId);
    return opened;
  };
}
