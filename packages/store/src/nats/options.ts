/** The options of the NATS driver, with every default and limit by name. */
import type { Random } from '@rackwright/platform';
import type { Retention } from '../contract.ts';

/**
 * How the servers' settings are proved. An ordinary client cannot see `sync_interval`; the HTTP
 * monitor and the system account can.
 */
export type DurabilityProof =
  /** The monitors of all servers that may hold a replica, as `http://host:8222`. */
  | { readonly kind: 'monitors'; readonly urls: readonly string[] }
  /** A user of the servers' system account. */
  | { readonly kind: 'systemAccount'; readonly user: string; readonly password: string }
  | { readonly kind: 'systemAccountCredentials'; readonly credentials: Uint8Array };

export type Authentication =
  | { readonly kind: 'password'; readonly user: string; readonly password: string }
  | { readonly kind: 'token'; readonly token: string }
  /** The contents of a `.creds` file. */
  | { readonly kind: 'credentials'; readonly credentials: Uint8Array };

/** PEM texts. */
export interface TlsFiles {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

export interface NatsStoreOptions {
  /** `host:port` of at least one server. */
  readonly servers: readonly string[];
  readonly random: Random;
  readonly authentication?: Authentication;
  readonly tls?: TlsFiles;
  /** Name of the bucket, 1–64 of `A–Z a–z 0–9 _ -`. */
  readonly bucket?: string;
  /** Copies of each value: 1, 3 or 5. An existing bucket must have as many. */
  readonly replicas?: 1 | 3 | 5;
  readonly durability?: DurabilityProof;
  /** Opens without a proof that an acknowledged write survives a loss of power. */
  readonly acceptUnprovenDurability?: boolean;
  readonly retention?: Retention;
  /** A restored or imported bucket: a new incarnation. */
  readonly restored?: boolean;
  /** How long a call may take, elections included, before it is `unknown` or `unavailable`. */
  readonly callTimeoutMs?: number;
  /** How long one request within a call may take. */
  readonly attemptTimeoutMs?: number;
}

export const BUCKET_DEFAULT = 'rackwright';
export const REPLICAS_DEFAULT = 3;
/** Longer than an election after the loss of a leader, which takes up to 9 s on a loaded host. */
export const CALL_TIMEOUT_DEFAULT_MS = 15_000;
export const ATTEMPT_TIMEOUT_DEFAULT_MS = 2_000;
/** Pauses between attempts double from the first to the longest. */
export const RETRY_FIRST_MS = 20;
export const RETRY_LONGEST_MS = 1_000;

/** The pause before attempt `attempt` (1 is the first repetition). */
export function retryDelayMs(attempt: number): number {
  return Math.min(RETRY_FIRST_MS * 2 ** Math.min(attempt - 1, 16), RETRY_LONGEST_MS);
}
