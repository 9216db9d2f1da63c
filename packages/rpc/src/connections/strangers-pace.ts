/**
 * The rate at which handshakes of strangers may begin. It follows from how earlier ones ended.
 * Agents that return after a restart authenticate, and keep the full rate. A flood does not, and
 * gets the lowest rate.
 */

export interface PaceLimits {
  /** Handshakes that begin in a second while they succeed, and while most fail. */
  readonly perSecondMax: number;
  readonly perSecondMin: number;
  /** Beginnings at once, before the rate applies. */
  readonly burst: number;
}

/** A connection that has not authenticated by then counts as failed so far. */
const provenWithinMs = 5_000;
/** A result counts half as much after this time, and less with each that follows. */
const halfLifeMs = 10_000;
const keptOfEach = 1 - 1 / 128;
/** Successes that are assumed at the start: a few failures are no flood. */
const granted = 16;
/** The rate falls while the share of failures rises from the first to the second. */
const fallsFrom = 1 / 2;
const fallsTo = 3 / 4;

export class StrangersPace<Connection extends object> {
  readonly #limits: PaceLimits;
  readonly #onFailure: (connection: Connection) => void;
  /** When they began, the first first. */
  readonly #unproven = new Map<Connection, number>();
  #successes = 0;
  #failures = 0;
  #countedMs: number;
  /** Before this none may begin. */
  #nextMs = Number.NEGATIVE_INFINITY;

  /** `onFailure` is called with each connection that has failed. */
  constructor(limits: PaceLimits, nowMs: number, onFailure: (connection: Connection) => void) {
    this.#limits = limits;
    this.#countedMs = nowMs;
    this.#onFailure = onFailure;
  }

  /** How long until another one may begin; 0: it may now. */
  waitMs(nowMs: number): number {
    return Math.max(0, Math.ceil(this.#nextMs - nowMs));
  }

  /** A handshake begins. Its result counts only if it `isWatched`. */
  countStart(connection: Connection, isWatched: boolean, nowMs: number): void {
    if (isWatched) this.#unproven.set(connection, nowMs);
    const betweenMs = 1_000 / this.perSecond(nowMs);
    const earliestMs = nowMs - (this.#limits.burst - 1) * betweenMs;
    this.#nextMs = Math.max(this.#nextMs, earliestMs) + betweenMs;
  }

  /** It has authenticated, late or not. */
  countSuccess(connection: Connection, nowMs: number): void {
    this.#unproven.delete(connection);
    this.#fade(nowMs, keptOfEach);
    this.#successes += 1;
  }

  /** It is gone or has failed. One that has counted as failed already is not counted again. */
  countFailure(connection: Connection, nowMs: number): void {
    if (!this.#unproven.delete(connection)) return;
    this.#fade(nowMs, keptOfEach);
    this.#failures += 1;
    this.#onFailure(connection);
  }

  /** The rate of now. */
  perSecond(nowMs: number): number {
    for (const [connection, beganMs] of this.#unproven) {
      if (nowMs - beganMs < provenWithinMs) break;
      this.countFailure(connection, nowMs);
    }
    this.#fade(nowMs);
    const share = this.#failures / (this.#successes + this.#failures + granted);
    const fallen = Math.min(1, Math.max(0, (share - fallsFrom) / (fallsTo - fallsFrom)));
    const { perSecondMax, perSecondMin } = this.#limits;
    return perSecondMax - fallen * Math.max(0, perSecondMax - perSecondMin);
  }

  #fade(nowMs: number, kept = 1): void {
    const left = kept * 0.5 ** (Math.max(0, nowMs - this.#countedMs) / halfLifeMs);
    this.#successes *= left;
    this.#failures *= left;
    this.#countedMs = nowMs;
  }
}
