/**
 * The agent's side of `burnin.network`: takes bytes of a runner and sends as many.
 *
 * Invariants:
 * 1. Only for a runner that knows the token of its boot, while its burn-in is ordered here.
 * 2. Few at once, each at a bounded rate and with bounded bytes: boots and sessions go on.
 * 3. A peer that is silent for too long is given up.
 */
import { createHash } from 'node:crypto';
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { OperationId, runner } from '@rackwright/messages';
import { type Clock, pause, type Random } from '@rackwright/platform';

export interface ExchangeLimits {
  /** Exchanges of all runners. */
  readonly atOnceMax: number;
  /** Bytes each way: in one exchange, and for one order. */
  readonly bytesMax: number;
  readonly orderBytesMax: number;
  /** The rate of one exchange, each way. */
  readonly bytesPerSecondMax: number;
  readonly silenceMs: number;
}

const mib = 1024 * 1024;

export const defaultExchangeLimits: ExchangeLimits = {
  atOnceMax: 2,
  bytesMax: 64 * mib,
  // The largest size that can be ordered, and exchanges that broke.
  orderBytesMax: 20 * 1024 * mib,
  bytesPerSecondMax: 32 * mib,
  silenceMs: 20_000,
};

export interface GatewayExchangeParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly limits: ExchangeLimits;
  /**
   * The network burn-in with this id in the boot of this token, the same object each time;
   * undefined: there is none.
   */
  readonly orderOf: (bootToken: string, operationId: OperationId) => object | undefined;
}

type ExchangeResponseInit = MessageInitShape<typeof runner.ExchangeResponseSchema>;
type RunnerMessage = runner.ExchangeRequest['message'];

const pieceBytesMax = 64 * 1024;
/** Shorter pauses are not worth a timer, milliseconds. */
const pauseMsMin = 4;
/** Time that was not used is kept for so long, milliseconds. */
const unusedMsMax = 50;

export class Exchanges {
  readonly #parts: GatewayExchangeParts;
  #atWork = 0;
  /** Bytes each way for each order. */
  readonly #used = new WeakMap<object, number>();

  constructor(parts: GatewayExchangeParts) {
    this.#parts = parts;
  }

  /** One exchange, from its first message to the last. */
  async *serve(
    requests: AsyncIterable<runner.ExchangeRequest>,
    signal: AbortSignal,
  ): AsyncGenerator<ExchangeResponseInit, void, undefined> {
    const incoming = requests[Symbol.asyncIterator]();
    const next = () => this.#next(incoming, signal);
    const admitted = this.#admit(await next());
    if (typeof admitted !== 'number') {
      yield { message: admitted };
      return;
    }
    this.#atWork += 1;
    try {
      yield { message: { case: 'ready', value: true } };
      const received = await this.#receive(admitted, next, signal);
      if (received === undefined) return;
      yield { message: { case: 'receivedSha256', value: received } };
      yield* this.#send(admitted, signal);
    } finally {
      this.#atWork -= 1;
    }
  }

  /** The admitted number of bytes, or the answer instead. */
  #admit(first: RunnerMessage | undefined): number | NonNullable<ExchangeResponseInit['message']> {
    const { limits, orderOf } = this.#parts;
    if (first?.case !== 'begin') return refused('the first message has to be ExchangeBegin');
    const { bootToken, operationId, bytes } = first.value;
    const order = orderOf(bootToken, operationId);
    if (order === undefined) return refused('no burn-in of the network is ordered for this boot');
    if (bytes < 1n || bytes > limits.bytesMax) {
      return refused(`bytes has to be from 1 to ${limits.bytesMax}`);
    }
    const used = (this.#used.get(order) ?? 0) + Number(bytes);
    if (used > limits.orderBytesMax) return refused('this burn-in has exchanged all that it may');
    if (this.#atWork >= limits.atOnceMax) {
      return { case: 'wait', value: `waits for the burn-ins of ${limits.atOnceMax} other hosts` };
    }
    this.#used.set(order, used);
    return Number(bytes);
  }

  /**
   * The digest of the received bytes; undefined when they did not arrive or were no valid piece.
   */
  async #receive(
    bytes: number,
    next: () => Promise<RunnerMessage | undefined>,
    signal: AbortSignal,
  ): Promise<Uint8Array | undefined> {
    const hash = createHash('sha256');
    const pace = new Pace(this.#parts, signal);
    for (let left = bytes; left > 0; ) {
      const message = await next();
      if (message?.case !== 'piece') return undefined;
      const { length } = message.value;
      if (length === 0 || length > Math.min(left, pieceBytesMax)) return undefined;
      hash.update(message.value);
      left -= length;
      await pace.after(length);
    }
    return hash.digest();
  }

  async *#send(
    bytes: number,
    signal: AbortSignal,
  ): AsyncGenerator<ExchangeResponseInit, void, undefined> {
    const hash = createHash('sha256');
    const pace = new Pace(this.#parts, signal);
    for (let left = bytes; left > 0 && !signal.aborted; ) {
      const piece = this.#parts.random.bytes(Math.min(left, pieceBytesMax));
      hash.update(piece);
      left -= piece.length;
      yield { message: { case: 'piece', value: piece } };
      await pace.after(piece.length);
    }
    yield { message: { case: 'sentSha256', value: hash.digest() } };
  }

  /** Undefined when the peer is silent, has ended, or its stream broke. */
  async #next(
    incoming: AsyncIterator<runner.ExchangeRequest>,
    signal: AbortSignal,
  ): Promise<RunnerMessage | undefined> {
    const { clock, limits } = this.#parts;
    const heard = new AbortController();
    const silence = pause(clock, limits.silenceMs, AbortSignal.any([signal, heard.signal]));
    try {
      return await Promise.race([
        silence.then(() => undefined),
        incoming.next().then(
          ({ done, value }) => (done === true ? undefined : value.message),
          // A stream that breaks has ended.
          () => undefined,
        ),
      ]);
    } finally {
      heard.abort();
    }
  }
}

/** Keeps one direction of an exchange at its rate. */
class Pace {
  readonly #clock: Clock;
  readonly #bytesPerMs: number;
  readonly #signal: AbortSignal;
  /** When all until now should be through. */
  #dueMs: number;

  constructor({ clock, limits }: GatewayExchangeParts, signal: AbortSignal) {
    this.#clock = clock;
    this.#signal = signal;
    this.#bytesPerMs = limits.bytesPerSecondMax / 1_000;
    this.#dueMs = clock.suspendAwareMs();
  }

  /** Resolves when more than these bytes may follow. */
  async after(bytes: number): Promise<void> {
    const nowMs = this.#clock.suspendAwareMs();
    this.#dueMs = Math.max(this.#dueMs, nowMs - unusedMsMax) + bytes / this.#bytesPerMs;
    const aheadMs = this.#dueMs - nowMs;
    if (aheadMs >= pauseMsMin) await pause(this.#clock, aheadMs, this.#signal);
  }
}

function refused(value: string): NonNullable<ExchangeResponseInit['message']> {
  return { case: 'refused', value };
}
