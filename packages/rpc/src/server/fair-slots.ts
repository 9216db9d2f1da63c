/**
 * Slots at a rate. Waiting networks get them in rotation, so a network within its own ration waits
 * for at most one slot of each other network.
 *
 * Invariants:
 * 1. A request gets a free slot at once while no other one waits.
 * 2. Nobody waits longer than allowed, and no network with more than a few.
 */
import { Bucket, type BucketRate, type Cancel, type Clock } from '@rackwright/platform';

export interface SlotOptions {
  readonly rate: BucketRate;
  /** A request that has waited longer is refused. */
  readonly waitMs: number;
}

/** Waiting requests of one network; of all together. */
const waitingPerNetworkMax = 4;
const waitingMax = 4_096;

/** The end of a wait: `slot` is one, `late` asks for a retry after so many milliseconds. */
export type SlotEnd = 'slot' | { readonly lateMs: number };

interface Waiter {
  readonly settle: (end: SlotEnd) => void;
}

export class FairSlots {
  readonly #bucket: Bucket;
  readonly #perSecond: number;
  readonly #waitMs: number;
  readonly #clock: Pick<Clock, 'nowMs' | 'after'>;
  /** The network that is next is first. */
  readonly #waiting = new Map<string, Waiter[]>();
  #size = 0;
  #cancel: Cancel | undefined;

  constructor({ rate, waitMs }: SlotOptions, clock: Pick<Clock, 'nowMs' | 'after'>) {
    this.#bucket = new Bucket(rate, clock.nowMs());
    this.#perSecond = rate.perSecond;
    this.#waitMs = waitMs;
    this.#clock = clock;
  }

  /** Those that wait. */
  get size(): number {
    return this.#size;
  }

  /** `signal` aborted: it waits no more, and gets no slot. */
  take(network: string, signal: AbortSignal): SlotEnd | Promise<SlotEnd> {
    if (this.#size === 0 && this.#bucket.tryTake(1, this.#clock.nowMs()) === 0) return 'slot';
    const own = this.#waiting.get(network) ?? [];
    const isFull = own.length >= waitingPerNetworkMax || this.#size >= waitingMax;
    if (isFull || signal.aborted) return { lateMs: this.#allServedMs() };
    const { promise, resolve } = Promise.withResolvers<SlotEnd>();
    const giveUp = (): void => {
      this.#remove(network, waiter);
      waiter.settle({ lateMs: this.#allServedMs() });
    };
    const cancel = this.#clock.after(this.#waitMs, giveUp);
    signal.addEventListener('abort', giveUp, { once: true });
    const waiter: Waiter = {
      settle: (end) => {
        cancel();
        signal.removeEventListener('abort', giveUp);
        resolve(end);
      },
    };
    own.push(waiter);
    this.#waiting.set(network, own);
    this.#size += 1;
    if (this.#cancel === undefined) this.#serve();
    return promise;
  }

  #allServedMs(): number {
    return Math.ceil(((this.#size + 1) * 1_000) / this.#perSecond);
  }

  #remove(network: string, waiter: Waiter): void {
    const own = this.#waiting.get(network);
    const at = own?.indexOf(waiter) ?? -1;
    if (own === undefined || at < 0) return;
    own.splice(at, 1);
    this.#size -= 1;
    if (own.length === 0) this.#waiting.delete(network);
  }

  /** One timer for all that wait. */
  #serve(): void {
    this.#cancel = undefined;
    for (const [network, [first]] of this.#waiting) {
      const waitMs = this.#bucket.tryTake(1, this.#clock.nowMs());
      if (waitMs > 0) {
        this.#cancel = this.#clock.after(waitMs, () => this.#serve());
        return;
      }
      const own = this.#waiting.get(network) ?? [];
      // Behind all others: this loop reaches it again while there are slots left.
      this.#waiting.delete(network);
      own.shift();
      this.#size -= 1;
      if (own.length > 0) this.#waiting.set(network, own);
      first?.settle('slot');
    }
  }
}
