/**
 * How fast a rack is read. All streams under one key share one quota. A message beyond it is read
 * only when its time has come, so that the sender waits and nothing is buffered here. A quota
 * outlives its streams until it is full again: to reconnect gains nothing.
 */
import type { CallContext, Pace } from '@rackwright/messages';
import { Bucket, type Cancel, type Clock } from '@rackwright/platform';
import type { AgentLimits } from './limits.ts';

/** Messages of one stream in a row; then other events are handled. */
const inARowMax = 32;

interface ReadPace {
  readonly messages: Bucket;
  readonly bytes: Bucket;
  streams: number;
  /** Called while it has no streams: cancels its removal. */
  keep: Cancel;
}

export class ReadPaces {
  readonly #limits: AgentLimits;
  readonly #clock: Clock;
  readonly #byKey = new Map<string, ReadPace>();

  constructor(limits: AgentLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Keys that are remembered. */
  get size(): number {
    return this.#byKey.size;
  }

  /** The pace of a call's stream, until its signal aborts. */
  paceOf(context: CallContext): Pace {
    const key = context.peerCertificate()?.publicKeySha256 ?? '';
    const quota = this.#join(key);
    const leave = () => {
      quota.streams -= 1;
      if (quota.streams === 0) this.#forgetOnceFull(key, quota);
    };
    if (context.signal.aborted) leave();
    else context.signal.addEventListener('abort', leave, { once: true });
    let inARow = 0;
    return (bytes) => {
      const nowMs = this.#clock.nowMs();
      const waitMs = Math.max(quota.messages.take(1, nowMs), quota.bytes.take(bytes, nowMs));
      inARow = (inARow + 1) % inARowMax;
      if (waitMs === 0 && inARow !== 0) return undefined;
      return new Promise((resolve) => this.#clock.after(waitMs, resolve));
    };
  }

  #forgetOnceFull(key: string, quota: ReadPace): void {
    const nowMs = this.#clock.nowMs();
    const fullInMs = Math.max(quota.messages.fullInMs(nowMs), quota.bytes.fullInMs(nowMs));
    if (fullInMs === 0) {
      this.#byKey.delete(key);
      return;
    }
    quota.keep = this.#clock.after(fullInMs, () => this.#forgetOnceFull(key, quota));
  }

  #join(key: string): ReadPace {
    const { messagesPerSecond, messagesBurst, bytesPerSecond, bytesBurst } = this.#limits;
    const nowMs = this.#clock.nowMs();
    const quota = this.#byKey.get(key) ?? {
      messages: new Bucket({ perSecond: messagesPerSecond, most: messagesBurst }, nowMs),
      bytes: new Bucket({ perSecond: bytesPerSecond, most: bytesBurst }, nowMs),
      streams: 0,
      keep: () => undefined,
    };
    quota.keep();
    quota.streams += 1;
    this.#byKey.set(key, quota);
    return quota;
  }
}
