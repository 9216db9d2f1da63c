/**
 * Gives slots for work fairly to racks that compete for them.
 *
 * Invariants:
 * 1. The number of slots in use is bounded, in total and for each rack: a busy rack always leaves
 *    room for the others. While other racks have been active lately its bound is lower, because
 *    work in progress delays new work.
 * 2. Slots are given in the order of the requests, except to a rack that has reached its bound. A
 *    session requests one slot at a time, so it is in the queue at most once, and leaves it when
 *    it ends.
 */
import type { RackId } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';

export interface SlotLimits {
  readonly atOnceMax: number;
  /** Of one rack, while no other rack is active. */
  readonly perRackMax: number;
  /** Of one rack, while other racks are active. */
  readonly perRackSharedMax: number;
}

/** A rack counts as active for this long after its last slot. */
const latelyMs = 2_000;

/** To be called once, when the work is done. */
export type ReleaseSlot = () => void;

const noSlot: ReleaseSlot = () => undefined;

interface SlotRequest {
  readonly rackId: RackId;
  readonly begin: (over: ReleaseSlot) => void;
}

export class RackSlots {
  readonly #limits: SlotLimits;
  readonly #clock: Pick<Clock, 'nowMs'>;
  /** When each rack last got a slot; the latest one is at the end. */
  readonly #lastMs = new Map<RackId, number>();
  readonly #underWay = new Map<RackId, number>();
  readonly #line = new Set<SlotRequest>();
  #atOnce = 0;

  constructor(limits: SlotLimits, clock: Pick<Clock, 'nowMs'>) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** How many requests wait. */
  get waiting(): number {
    return this.#line.size;
  }

  get underWay(): number {
    return this.#atOnce;
  }

  /** A slot: at once when one is free; none if `leaving` aborts during the wait. */
  take(rackId: RackId, leaving?: AbortSignal): ReleaseSlot | Promise<ReleaseSlot> {
    if (this.#isFree(rackId)) return this.#begin(rackId);
    if (leaving?.aborted === true) return noSlot;
    return new Promise((resolve) => {
      const waiting: SlotRequest = {
        rackId,
        begin: (over) => {
          leaving?.removeEventListener('abort', leave);
          resolve(over);
        },
      };
      const leave = () => {
        this.#line.delete(waiting);
        resolve(noSlot);
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

  /** Whether another rack has had a slot lately. */
  #isShared(rackId: RackId): boolean {
    const nowMs = this.#clock.nowMs();
    for (const [other, lastMs] of this.#lastMs) {
      if (Math.abs(nowMs - lastMs) > latelyMs) this.#lastMs.delete(other);
      else if (other !== rackId) return true;
    }
    return false;
  }

  #begin(rackId: RackId): ReleaseSlot {
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
