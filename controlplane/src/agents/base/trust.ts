/** What a session does for trust: it tells which authorities to believe, and ends with its key. */
import type { agent, CallContext, RackId } from '@rackwright/messages';

/** Who knows of keys and certificate authorities. */
export interface SessionTrust {
  /** What agents shall believe now. */
  bundle(): agent.TrustBundle;
  /** Of these authorities (SHA-256, lower-case hex) those that there are. */
  existing(digests: readonly string[]): Promise<string[]>;
  /** Calls `listener` when that has changed. */
  onChange(listener: () => void): void;
  /**
   * Watches over the key and the certificate that the caller came with, until the returned function
   * is called: `end` is called once, when they are good no more.
   */
  attend(
    context: CallContext,
    rackId: RackId,
    end: (reason: string, message: string) => void,
  ): () => void;
}

/** Authorities of one agent that are remembered. */
const trustedMax = 8;

/**
 * What the agent says it believes, as far as there is such an authority: what it makes up is
 * written down by nobody.
 */
export async function believedBy(
  said: Pick<agent.TrustApplied, 'trustedCaSha256'>,
  trust: SessionTrust | undefined,
): Promise<string[]> {
  const digests = trustedOf(said);
  return trust === undefined ? digests : trust.existing(digests);
}

/** The fingerprints among what the agent says that it believes; bounded. */
export function trustedOf({
  trustedCaSha256,
}: Pick<agent.TrustApplied, 'trustedCaSha256'>): string[] {
  const digests = trustedCaSha256.filter((text) => /^[0-9a-f]{64}$/.test(text));
  return [...new Set(digests)].slice(0, trustedMax).sort();
}
