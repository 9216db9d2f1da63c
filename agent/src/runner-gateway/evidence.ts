import { type KeyObject, sign } from 'node:crypto';
import { create, toBinary } from '@bufbuild/protobuf';
import { agent, type HostUid, type RunnerSessionId } from '@rackwright/messages';

/** Signs a runner's report of a step with the agent's registered key. */
export interface EvidenceSigner {
  readonly privateKey: KeyObject;
  /** SPKI, DER. */
  readonly publicKeyDer: Uint8Array;
}

/**
 * The evidence with the agent's signature over its exact bytes. Which host and runner session it
 * belongs to is the agent's knowledge, so these fields are the agent's.
 */
export function signEvidence(
  signer: EvidenceSigner,
  step: agent.StepEvidence,
  proved: { readonly hostUid: HostUid; readonly runnerSession: RunnerSessionId },
): agent.Evidence {
  const { hostUid, runnerSession } = proved;
  const stated = create(agent.StepEvidenceSchema, { ...step, hostUid, runnerSession });
  const payload = toBinary(agent.StepEvidenceSchema, stated);
  const signature = sign('sha256', payload, signer.privateKey);
  const publicKey = signer.publicKeyDer;
  return create(agent.EvidenceSchema, { payload, signature, publicKey });
}
