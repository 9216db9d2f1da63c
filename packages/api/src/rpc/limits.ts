/** Bounds of the transport; each may be lowered or raised by the program's configuration. */
export interface RpcLimits {
  /** Largest message accepted and sent, in bytes; larger ones end with resourceExhausted. */
  readonly messageBytesMax: number;
  /** Calls open at once on one connection. */
  readonly callsPerConnectionMax: number;
  /** A ping goes out after this much silence on a connection. */
  readonly keepaliveAfterMs: number;
  /** A ping unanswered for this long ends the connection. */
  readonly keepaliveTimeoutMs: number;
  /** How long `close` lets calls finish before it cuts them. */
  readonly closeGraceMs: number;
}

/**
 * A page of resources stays below 3 MiB, so 4 MiB leaves room; a cut link shows within
 * 15 s (10 + 5), well inside a work lease's life.
 */
export const defaultRpcLimits: RpcLimits = {
  messageBytesMax: 4 * 1024 * 1024,
  callsPerConnectionMax: 100,
  keepaliveAfterMs: 10_000,
  keepaliveTimeoutMs: 5_000,
  closeGraceMs: 2_000,
};
