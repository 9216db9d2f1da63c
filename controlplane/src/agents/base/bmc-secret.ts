/**
 * Sends the secret of a BMC to the agent that is to use it. The credential's own record must permit
 * it. The secret goes in a message of its own, before the message that needs it, and is recorded.
 */
import { create } from '@bufbuild/protobuf';
import { agent } from '@rackwright/messages';
import type { AuditSink } from '../../audit/index.ts';
import type { LiveSession, SessionRegistry } from '../../host/index.ts';
import { isStoreUnavailable } from '../../records/index.ts';
import { type CredentialOpener, noteGiven, openNamed, whyNotGiven } from '../../secrets/index.ts';

export interface BmcSecretDependencies extends CredentialOpener {
  readonly registry: Pick<SessionRegistry, 'sessionOf'>;
  readonly audit: AuditSink;
}

export type GivenSecret =
  | { readonly kind: 'given'; readonly version: bigint }
  /** The secret may not be sent there, or does not open; for people. */
  | { readonly kind: 'noSecret'; readonly message: string }
  /** The session has ended, or a newer one has opened. */
  | { readonly kind: 'noAgent' };

/** Sends the secret into this session. Throws `unavailable` while the store does not answer. */
export async function giveBmcSecret(
  deps: BmcSecretDependencies,
  session: LiveSession,
  { credential, address }: agent.BmcAccess,
): Promise<GivenSecret> {
  const { rackId } = session;
  let secret: agent.CredentialValue;
  try {
    const givenFor = { rack: `racks/${rackId}`, bmcAddress: address };
    const opened = await openNamed(deps, credential, givenFor);
    if (opened === undefined) return { kind: 'noSecret', message: `${credential} does not exist` };
    secret = create(agent.CredentialValueSchema, opened);
  } catch (error) {
    if (isStoreUnavailable(error)) throw error;
    return { kind: 'noSecret', message: whyNotGiven(error) };
  }
  if (deps.registry.sessionOf(rackId) !== session) return { kind: 'noAgent' };
  session.send({ case: 'credentialValue', value: secret });
  noteGiven(deps.audit, secret, `the agent of racks/${rackId}`);
  return { kind: 'given', version: secret.version };
}
