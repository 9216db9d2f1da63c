/** The configured bounds of a program's listener; every other bound follows from them. */
export interface ListenerLimits {
  readonly connectionsMax: number;
  readonly connectionsPerAddressMax: number;
  /** The machine's capacity: each handshake takes about 2 ms of a core. */
  readonly handshakesPerSecond: number;
  readonly callsMax: number;
  /** Calls without a token at once from one address, for example of agents that enrol together. */
  readonly openCallsBurst: number;
}

/** Bounds of the transport. */
export interface RpcLimits extends ListenerLimits {
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
  /** Connections at once, those before and in their handshake included. */
  readonly connectionsMax: number;
  /** Connections at once from one address; of IPv6, here and below, one network of 64 bits. */
  readonly connectionsPerAddressMax: number;
  /** Of these, reserved for networks that are known; a quarter at most. */
  readonly connectionsForKnownMax: number;
  /** Connections at once that have not shown a valid certificate or token yet. */
  readonly strangersMax: number;
  /** How long a network counts as known after its last authenticated connection ended. */
  readonly knownForMs: number;
  /** Handshakes that begin in a second, and so many at once before. */
  readonly handshakesPerSecond: number;
  readonly handshakesBurst: number;
  /** The same of one address; an address with many agents behind it may bring all at once. */
  readonly handshakesPerAddressPerSecond: number;
  readonly handshakesPerAddressBurst: number;
  /** Strangers' handshakes in a second while most of them fail. */
  readonly strangersPerSecondMin: number;
  /** Handshakes at once: each costs a public-key operation. The others wait. */
  readonly handshakesMax: number;
  /** Handshakes at once with one address, so that it does not take every slot. */
  readonly handshakesPerAddressMax: number;
  /** A handshake returns its slot after this, done or not. So a slow one delays no other. */
  readonly handshakeSlotMs: number;
  /** Handshakes at once with all suspect addresses: those of which one has failed lately. */
  readonly suspectHandshakesMax: number;
  /** How long an address counts as suspect after its last failed handshake. */
  readonly suspectForMs: number;
  /** How long a failed handshake keeps its slot. */
  readonly failedSlotMs: number;
  /** A connection whose handshake is not over this long after it got its slot is cut. */
  readonly handshakeMs: number;
  /** A connection that waits longer for its slot is cut: its peer has given up by then. */
  readonly handshakeWaitMs: number;
  /** A connection without a call for this long is closed. */
  readonly connectionIdleMs: number;
  /** The first message of a call must be complete this long after its headers. */
  readonly firstMessageMs: number;
  /** An answer over HTTP/1.1 is cut when its peer reads nothing of it for this time. */
  readonly answerStallMs: number;
  /** The memory of requests that are not whole yet, over all connections, in bytes. */
  readonly incomingBytesMax: number;
  /** Calls open at once over all connections; others are refused with a time for a retry. */
  readonly callsMax: number;
  /** Of these, from one caller. */
  readonly callsPerCallerMax: number;
  /** Calls open at once of one service that needs no token: in all, and from one address. */
  readonly openCallsMax: number;
  readonly openCallsPerAddressMax: number;
  /** A call that was refused for want of room is told to retry after this time, plus a jitter. */
  readonly retryAfterMs: number;
  /** A token bucket of calls that need no token, for each address: its rate and its size. */
  readonly openCallsPerSecond: number;
  readonly openCallsBurst: number;
  /** A token bucket of them for each service, over all addresses, which are served in rotation. */
  readonly allOpenCallsPerSecond: number;
  readonly allOpenCallsBurst: number;
  /** A call that waits longer for its slot is refused. */
  readonly openCallWaitMs: number;
  /** A token bucket of refused calls for each connection. Once it is empty, the connection ends. */
  readonly refusalsPerSecond: number;
  readonly refusalsBurst: number;
  /** The same for each address. Once it is empty, each refusal ends its connection. */
  readonly refusalsPerAddressPerSecond: number;
  readonly refusalsPerAddressBurst: number;
}

/**
 * For both ends of a session with an agent or a runner: a cut link shows within 15 s (10 + 5). A
 * work lease does not depend on it: it ends by the agent's own clock.
 */
export const sessionKeepalive: Pick<RpcLimits, 'keepaliveAfterMs' | 'keepaliveTimeoutMs'> = {
  keepaliveAfterMs: 10_000,
  keepaliveTimeoutMs: 5_000,
};

/**
 * A page of resources stays below 3 MiB, so 4 MiB leaves room. A busy client has gRPC's usual time
 * to answer a ping (gRPC, "Keepalive"). A handshake takes about 2 ms of a core, so that 16 delay an
 * open session by some 30 ms; many agents may have one address.
 */
export const defaultRpcLimits: RpcLimits = {
  messageBytesMax: 4 * 1024 * 1024,
  callsPerConnectionMax: 100,
  keepaliveAfterMs: 10_000,
  keepaliveTimeoutMs: 20_000,
  closeGraceMs: 2_000,
  connectionsMax: 8_192,
  connectionsPerAddressMax: 2_048,
  connectionsForKnownMax: 2_048,
  strangersMax: 512,
  knownForMs: 3_600_000,
  handshakesPerSecond: 150,
  handshakesBurst: 4,
  handshakesPerAddressPerSecond: 50,
  handshakesPerAddressBurst: 2_048,
  strangersPerSecondMin: 20,
  handshakesMax: 16,
  handshakesPerAddressMax: 8,
  handshakeSlotMs: 500,
  suspectHandshakesMax: 4,
  suspectForMs: 60_000,
  failedSlotMs: 200,
  handshakeMs: 10_000,
  handshakeWaitMs: 20_000,
  connectionIdleMs: 300_000,
  firstMessageMs: 15_000,
  answerStallMs: 60_000,
  incomingBytesMax: 64 * 1024 * 1024,
  callsMax: 16_384,
  callsPerCallerMax: 1_024,
  openCallsMax: 4_096,
  openCallsPerAddressMax: 256,
  retryAfterMs: 5_000,
  openCallsPerSecond: 20,
  openCallsBurst: 100,
  allOpenCallsPerSecond: 100,
  allOpenCallsBurst: 1_000,
  openCallWaitMs: 5_000,
  refusalsPerSecond: 5,
  refusalsBurst: 200,
  refusalsPerAddressPerSecond: 20,
  refusalsPerAddressBurst: 400,
};

/** All bounds of a listener. With the configured ones at their default, so are the others. */
export function rpcLimitsOf(configured: ListenerLimits): RpcLimits {
  const { connectionsMax, connectionsPerAddressMax, handshakesPerSecond, callsMax } = configured;
  const openCallsMax = share(callsMax, 4);
  return {
    ...defaultRpcLimits,
    ...configured,
    connectionsForKnownMax: share(connectionsMax, 4),
    strangersMax: share(connectionsMax, 16),
    handshakesPerAddressPerSecond: share(handshakesPerSecond, 3),
    handshakesPerAddressBurst: connectionsPerAddressMax,
    strangersPerSecondMin: Math.max(10, share(2 * handshakesPerSecond, 15)),
    callsPerCallerMax: share(callsMax, 16),
    openCallsMax,
    openCallsPerAddressMax: share(openCallsMax, 16),
    allOpenCallsBurst: 10 * configured.openCallsBurst,
  };
}

function share(whole: number, parts: number): number {
  return Math.max(1, Math.floor(whole / parts));
}
