/**
 * How fast strangers' handshakes may begin, by what came lately of those before: agents that come
 * back after a restart show who they are and go on at the full rate; a flood does not, and costs
 * no more than the least rate.
 */

export interface PaceLimits {
  /** Beginnings in a second while it goes well, and while most come to nothing. */
  readonly perSecondMax: number;
  readonly perSecondMin: number;
  /** So many at once before. */
  readonly burst: number;
}

/** Who has not shown who it is so long after its beginning has come to nothing so far. */
const provenWithinMs = 5_000;
/** What came of a handshake counts half as much after this, and less with each that follows. */
const halfLifeMs = 10_000;
const keptOfEach = 1 - 1 / 128;
/** So many that came to something are taken for granted: a few failures are no flood. */
const granted = 16;
/** The rate falls from the first share of those that came to nothing to the second. */
const fallsFrom = 1 / 2;
const fallsTo = 3 / 4;

export class StrangersPace<Visitor extends object> {
  readonly #limits: PaceLimits;
  readonly #onNothing: (visitor: Visitor) => void;
  /** When they began, the first first. */
  readonly #unproven = new Map<Visitor, number>();
  #something = 0;
  #nothing = 0;
  #countedMs: number;
  /** Before this none may begin. */
  #nextMs = Number.NEGATIVE_INFINITY;

  /** `onNothing` is called with each that has come to nothing. */
  constructor(limits: PaceLimits, nowMs: number, onNothing: (visitor: Visitor) => void) {
    this.#limits = limits;
    this.#countedMs = nowMs;
    this.#onNothing = onNothing;
  }

  /** How long until another one may begin; 0: it may now. */
  waitMs(nowMs: number): number {
    return Math.max(0, Math.ceil(this.#nextMs - nowMs));
  }

  /** One begins. Only of those that `isWatched` it counts what comes of them. */
  began(visitor: Visitor, isWatched: boolean, nowMs: number): void {
    if (isWatched) this.#unproven.set(visitor, nowMs);
    const betweenMs = 1_000 / this.perSecond(nowMs);
    const earliestMs = nowMs - (this.#limits.burst - 1) * betweenMs;
    this.#nextMs = Math.max(this.#nextMs, earliestMs) + betweenMs;
  }

  /** It has shown who it is, late or not. */
  cameToSomething(visitor: Visitor, nowMs: number): void {
    this.#unproven.delete(visitor);
    this.#fade(nowMs, keptOfEach);
    this.#something += 1;
  }

  /** It is gone or has failed. Nothing new of one that was taken for lost before. */
  cameToNothing(visitor: Visitor, nowMs: number): void {
    if (!this.#unproven.delete(visitor)) return;
    this.#fade(nowMs, keptOfEach);
    this.#nothing += 1;
    this.#onNothing(visitor);
  }

  /** The rate of now. */
  perSecond(nowMs: number): number {
    for (const [visitor, beganMs] of this.#unproven) {
      if (nowMs - beganMs < provenWithinMs) break;
      this.cameToNothing(visitor, nowMs);
    }
    this.#fade(nowMs);
    const share = this.#nothing / (this.#something + this.#nothing + granted);
    const fallen = Math.min(1, Math.max(0, (share - fallsFrom) / (fallsTo - fallsFrom)));
    const { perSecondMax, perSecondMin } = this.#limits;
    return perSecondMax - fallen * Math.max(0, perSecondMax - perSecondMin);
  }

  #fade(nowMs: number, kept = 1): void {
    const left = kept * 0.5 ** (Math.max(0, nowMs - this.#countedMs) / halfLifeMs);
    this.#something *= left;
    this.#nothing *= left;
    this.#countedMs = nowMs;
  }
}
