/** The part of a session about trust: it sends the authorities to trust, and ends with its key. */
import type { agent, CallContext, RackId } from '@rackwright/messages';
import type { SessionRefusal } from './session-refusal.ts';

/** Knows keys and certificate authorities. */
export interface SessionTrust {
  /** The authorities that agents are to trust now. */
  bundle(): agent.TrustBundle;
  /** Those of these authorities (SHA-256, lower-case hex) that exist. */
  existing(digests: readonly string[]): Promise<string[]>;
  /** Calls `observer` when the bundle has changed. */
  onChange(observer: () => void): void;
  /**
   * Watches the key and the certificate of the caller, until the returned function is called. Calls
   * `end` once, when one of them is no longer valid.
   */
  attend(
    context: CallContext,
    rackId: RackId,
    end: (reason: SessionRefusal, message: string) => void,
  ): () => void;
}

/** The most authorities that are remembered for one agent. */
const trustedMax = 8;

/**
 * The authorities that the agent reports to trust, as far as they exist: invented ones are not
 * recorded.
 */
export async function trustedBy(
  applied: Pick<agent.TrustApplied, 'trustedCaSha256'>,
  trust: SessionTrust | undefined,
): Promise<string[]> {
  const digests = trustedOf(applied);
  return trust === undefined ? digests : trust.existing(digests);
}

/** The fingerprints that the agent reports to trust; bounded. */
export function trustedOf({
  trustedCaSha256,
}: Pick<agent.TrustApplied, 'trustedCaSha256'>): string[] {
  const digests = trustedCaSha256.filter((text) => /^[0-9a-f]{64}$/.test(text));
  return [...new Set(digests)].slice(0, trustedMax).sort();
}
