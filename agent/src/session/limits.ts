/** Bounds of the session; each may be changed by the program's configuration. */
export interface SessionLimits {
  /** Pauses between attempts to connect, before full jitter. */
  readonly reconnectFirstMs: number;
  readonly reconnectLongestMs: number;
  /** A stream that brings no Welcome for this long is given up. */
  readonly welcomeWaitMs: number;
  /** A stream that brings nothing at all for this long is given up. */
  readonly silenceMs: number;
  /** The bounds of Welcome's heartbeat interval. */
  readonly heartbeatShortestMs: number;
  readonly heartbeatLongestMs: number;
  /** A longer work lease than this is taken as this (R11). */
  readonly leaseLongestMs: number;
  /** How long an operation waits for a credential that it names. */
  readonly credentialWaitMs: number;
  readonly credentialsMax: number;
  /** Secrets are dropped when no control plane has been connected for this long. */
  readonly credentialsKeptMs: number;
  /** Operations kept at once, including ended ones that are not settled. */
  readonly operationsMax: number;
  /** Hosts whose latest facts are kept. */
  readonly factsHostsMax: number;
  /** A final report larger than this cannot be delivered; it ends as `failed: internal`. */
  readonly reportBytesMax: number;
}

export const defaultSessionLimits: SessionLimits = {
  reconnectFirstMs: 1_000,
  reconnectLongestMs: 30_000,
  welcomeWaitMs: 30_000,
  silenceMs: 60_000,
  heartbeatShortestMs: 100,
  heartbeatLongestMs: 30_000,
  leaseLongestMs: 120_000,
  credentialWaitMs: 30_000,
  credentialsMax: 10_000,
  credentialsKeptMs: 24 * 3_600_000,
  operationsMax: 4_096,
  factsHostsMax: 4_096,
  // Below the 4 MiB that a gRPC message may have.
  reportBytesMax: 3 * 1024 * 1024,
};
