/** Hands secrets out to the control plane's own calls, each on record by name and version. */
import { store as wire } from '@rackwright/api';
import { type StateStore, storeKey } from '@rackwright/store';
import { type AuditTrail, credentialSent } from '../audit/index.ts';
import { readRecord } from '../records/index.ts';
import type { Secrets } from './secrets.ts';

/** Opens "credentials/C" for the webhook of an operation; undefined when there is none. */
export function secretsForCalls(
  secrets: Secrets,
  store: StateStore,
  audit: AuditTrail,
): (
  name: string,
  operationId: string,
) => Promise<{ readonly username: string; readonly password: string } | undefined> {
  return async (name, operationId) => {
    const key = storeKey(...name.split('/'));
    const kept = await readRecord(store, wire.CredentialRecordSchema, key);
    if (kept === undefined) return undefined;
    const opened = secrets.open(kept.record);
    const version = kept.record.credential?.version ?? 0n;
    audit.note(credentialSent(name, version, 'a webhook', operationId));
    return opened;
  };
}
