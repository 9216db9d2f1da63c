/**
 * The secret of a BMC on its way to the agent that is to speak with it: only where it may go by
 * what its own record says, in a message of its own before what it is for, and on record.
 */
import { create } from '@bufbuild/protobuf';
import { agent } from '@rackwright/messages';
import type { AuditSink } from '../../audit/index.ts';
import type { LiveSession, SessionRegistry } from '../../host/index.ts';
import { noteGiven, openNamed, type Vault, whyNotGiven } from '../../secrets/index.ts';

export interface BmcSecretDependencies extends Vault {
  readonly registry: Pick<SessionRegistry, 'sessionOf'>;
  readonly audit: AuditSink;
}

export type Given =
  | { readonly kind: 'given'; readonly version: bigint }
  /** The secret may not go there, or does not open; for people. */
  | { readonly kind: 'noSecret'; readonly message: string }
  /** Meanwhile the session has ended, or a newer one has opened. */
  | { readonly kind: 'noAgent' };

/** Sends it into this session. */
export async function giveBmcSecret(
  deps: BmcSecretDependencies,
  session: LiveSession,
  { credential, address }: agent.BmcAccess,
): Promise<Given> {
  const { rackId } = session;
  let secret: agent.CredentialValue;
  try {
    const givenFor = { rack: `racks/${rackId}`, bmcAddress: address };
    const opened = await openNamed(deps, credential, givenFor);
    if (opened === undefined) return { kind: 'noSecret', message: `${credential} does not exist` };
    secret = create(agent.CredentialValueSchema, opened);
  } catch (error) {
    return { kind: 'noSecret', message: whyNotGiven(error) };
  }
  if (deps.registry.sessionOf(rackId) !== session) return { kind: 'noAgent' };
  session.send({ case: 'credentialValue', value: secret });
  noteGiven(deps.audit, secret, `the agent of racks/${rackId}`);
  return { kind: 'given', version: secret.version };
}
