/**
 * Bounds the cost of refusals: a connection that goes on calling while it is refused is closed.
 *
 * Invariants:
 * 1. Only a connection with a refused call is closed. A connection whose calls are admitted stays,
 *    also when other clients at its address are refused.
 * 2. Such a connection got a time for its retry. It is closed soon after, whether or not its peer
 *    closes it.
 */
import { constants, type Http2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { unavailable } from '@rackwright/messages';
import { Bucket, Buckets, type Clock } from '@rackwright/platform';
import { networkOfPeer } from '../wire/caller-address.ts';
import type { RpcLimits } from '../wire/limits.ts';

export type RefusalLimits = Pick<
  RpcLimits,
  | 'refusalsPerSecond'
  | 'refusalsBurst'
  | 'refusalsPerAddressPerSecond'
  | 'refusalsPerAddressBurst'
  | 'retryAfterMs'
>;

/** Networks whose refusals are remembered at once. */
const networksMax = 4_096;
/** So long an end may take that has been announced. */
const endingMs = 250;

export class RefusedCalls {
  readonly #limits: RefusalLimits;
  readonly #clock: Pick<Clock, 'nowMs' | 'after'>;
  readonly #networks: Buckets;
  readonly #connections = new WeakMap<object, Bucket>();
  readonly #ending = new WeakSet<object>();
  #ended = 0;

  constructor(limits: RefusalLimits, clock: Pick<Clock, 'nowMs' | 'after'>) {
    this.#limits = limits;
    this.#clock = clock;
    const { refusalsPerAddressPerSecond: perSecond, refusalsPerAddressBurst: most } = limits;
    this.#networks = new Buckets({ perSecond, most }, networksMax);
  }

  /** Connections that were closed for it so far. */
  get ended(): number {
    return this.#ended;
  }

  /**
   * A call of this connection is refused. Undefined: it may get its own reason. Else the refusal
   * that replaces it and is the last answer on the connection: the caller calls `end` after it.
   */
  note(connection: object, peerAddress: string): Error | undefined {
    const nowMs = this.#clock.nowMs();
    const { refusalsPerSecond: perSecond, refusalsBurst: most } = this.#limits;
    const own = this.#connections.get(connection) ?? new Bucket({ perSecond, most }, nowMs);
    this.#connections.set(connection, own);
    const network = this.#networks.of(networkOfPeer(peerAddress), nowMs);
    const waitMs = Math.max(own.tryTake(1, nowMs), network.tryTake(1, nowMs));
    if (waitMs === 0) return undefined;
    const text = 'Too many calls of this connection or address were refused: it is closed.';
    return unavailable('TOO_MANY_REFUSED', text, Math.max(waitMs, this.#limits.retryAfterMs));
  }

  /** Says farewell and closes it. Idempotent. */
  end(connection: Http2Session): void {
    if (connection.destroyed || !this.#begins(connection)) return;
    const { retryAfterMs } = this.#limits;
    const debugBytes = Buffer.from(`too many calls were refused; come again in ${retryAfterMs} ms`);
    connection.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM, 0, debugBytes);
    // No stream is begun any more; sent answers get time to go out.
    connection.close();
    this.#clock.after(endingMs, () => {
      const { socket } = connection;
      connection.destroy();
      socket?.destroy();
    });
  }

  /** The same for HTTP/1.1, where the answer itself says that it is the last one. Idempotent. */
  endPlain(socket: Socket): void {
    if (socket.destroyed || !this.#begins(socket)) return;
    this.#clock.after(endingMs, () => socket.destroy());
  }

  /** False: its end has begun already. */
  #begins(connection: object): boolean {
    if (this.#ending.has(connection)) return false;
    this.#ending.add(connection);
    this.#ended += 1;
    return true;
  }
}
