/**
 * Whose work is next, among racks that would all do theirs at once.
 *
 * Invariants:
 * 1. No more is under way than allowed, overall and of one rack: one that has much to do leaves
 *    room for the others at any time. While others have had turns lately it has fewer still, for
 *    what is under way delays what comes.
 * 2. Turns are given in the order in which they were asked for, except to a rack that has all that
 *    one may have. A session asks for one at a time, so that none has more than one place in line,
 *    and leaves it when it ends.
 */
import type { RackId } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';

export interface SlotLimits {
  readonly atOnceMax: number;
  /** Of one rack, while no other has anything to do. */
  readonly perRackMax: number;
  /** Of one rack, while others have. */
  readonly perRackSharedMax: number;
}

/** A rack has something to do until so long after its last turn. */
const latelyMs = 2_000;

/** To be called once, when the work is over. */
export type SlotOver = () => void;

const noTurn: SlotOver = () => undefined;

interface Waiting {
  readonly rackId: RackId;
  readonly begin: (over: SlotOver) => void;
}

export class RackSlots {
  readonly #limits: SlotLimits;
  readonly #clock: Pick<Clock, 'nowMs'>;
  /** When each rack had its last turn, the latest one last. */
  readonly #lastMs = new Map<string, number>();
  readonly #underWay = new Map<string, number>();
  readonly #line = new Set<Waiting>();
  #atOnce = 0;

  constructor(limits: SlotLimits, clock: Pick<Clock, 'nowMs'>) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** How many wait. */
  get waiting(): number {
    return this.#line.size;
  }

  get underWay(): number {
    return this.#atOnce;
  }

  /** The turn, at once when it is free; none once `leaving` aborts while it waits. */
  take(rackId: RackId, leaving?: AbortSignal): SlotOver | Promise<SlotOver> {
    if (this.#isFree(rackId)) return this.#begin(rackId);
    if (leaving?.aborted === true) return noTurn;
    return new Promise((resolve) => {
      const waiting: Waiting = {
        rackId,
        begin: (over) => {
          leaving?.removeEventListener('abort', leave);
          resolve(over);
        },
      };
      const leave = () => {
        this.#line.delete(waiting);
        resolve(noTurn);
      };
      this.#line.add(waiting);
      leaving?.addEventListener('abort', leave, { once: true });
    });
  }

  #isFree(rackId: RackId): boolean {
    const { atOnceMax, perRackMax, perRackSharedMax } = this.#limits;
    const most = this.#isShared(rackId) ? perRackSharedMax : perRackMax;
    return this.#atOnce < atOnceMax && (this.#underWay.get(rackId) ?? 0) < most;
  }

  /** Whether another rack has had a turn lately. */
  #isShared(rackId: RackId): boolean {
    const nowMs = this.#clock.nowMs();
    for (const [other, lastMs] of this.#lastMs) {
      if (Math.abs(nowMs - lastMs) > latelyMs) this.#lastMs.delete(other);
      else if (other !== rackId) return true;
    }
    return false;
  }

  #begin(rackId: RackId): SlotOver {
    this.#atOnce += 1;
    this.#lastMs.delete(rackId);
    this.#lastMs.set(rackId, this.#clock.nowMs());
    this.#underWay.set(rackId, (this.#underWay.get(rackId) ?? 0) + 1);
    let over = false;
    return () => {
      if (over) return;
      over = true;
      this.#atOnce -= 1;
      const left = (this.#underWay.get(rackId) ?? 1) - 1;
      if (left === 0) this.#underWay.delete(rackId);
      else this.#underWay.set(rackId, left);
      this.#next();
    };
  }

  #next(): void {
    if (this.#atOnce >= this.#limits.atOnceMax) return;
    for (const waiting of this.#line) {
      if (!this.#isFree(waiting.rackId)) continue;
      this.#line.delete(waiting);
      waiting.begin(this.#begin(waiting.rackId));
      if (this.#atOnce >= this.#limits.atOnceMax) return;
    }
  }
}
