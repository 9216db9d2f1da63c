/**
 * Whether a host that passed the gate, or whose image is being fetched, may still go: other hosts
 * may have gone out or become unhealthy in the meantime. Pure apart from its own count.
 *
 * Invariants:
 * 1. A host at the gate is not out. So when two wait there and only one may go, the first goes, and
 *    they do not wait for each other.
 * 2. A host with a slot for its provision was never in service: it is out only after it has run an
 *    image and then failed.
 */
import {
  type HostName,
  type HostUid,
  type RackName,
  RolloutSlotState,
  RunKind,
} from '@rackwright/messages';
import type { PoolWait, Survey } from '../facts/pool-status.ts';
import { isMissed, type SeenHost } from '../facts/seen.ts';
import { namesText } from './slot-text.ts';
import { stopOf } from './stops.ts';

/** The hosts that are out of service, and whether another one may go. */
export class GateCapacity {
  readonly #max: number;
  readonly #perRackMax: number | undefined;
  /** By uid. */
  readonly #out = new Map<HostUid, { readonly name: HostName; readonly rack: RackName }>();
  readonly #isWanted: boolean;

  constructor(surveyed: Survey) {
    const { surveyedHosts, slots, unavailableMax, perRackMax, isBack } = surveyed;
    this.#max = unavailableMax;
    this.#perRackMax = perRackMax;
    for (const { host } of surveyedHosts) {
      if (isMissed(host) && !isBack) this.#out.set(host.uid, host);
    }
    for (const { hostUid, host: name, rack, state, kind } of slots) {
      const wasServing = kind !== RunKind.PROVISION;
      if (state !== RolloutSlotState.GATE && wasServing) this.#out.set(hostUid, { name, rack });
    }
    this.#isWanted = surveyedHosts.some((each) => {
      const isWaitingAndOut = each.status === 'waiting' && isMissed(each.host);
      return isWaitingAndOut && stopOf(surveyed, each) === undefined;
    });
  }

  /** A slot could bring back a host that is out, or that may be out. */
  get isWanted(): boolean {
    return this.#isWanted;
  }

  /** Why a host in service has to stay; undefined: it may go. */
  waitOf({ uid, rack }: SeenHost): PoolWait | undefined {
    const others = [...this.#out].flatMap(([of, out]) => (of === uid ? [] : [out]));
    if (others.length >= this.#max) return { kind: 'slot', text: textOf(others) };
    const there = others.filter((out) => out.rack === rack);
    const isFull = this.#perRackMax !== undefined && there.length >= this.#perRackMax;
    return isFull ? { kind: 'rackSlot', text: textOf(there) } : undefined;
  }

  /** The host stays unchanged, whatever slot it has. */
  stay(host: SeenHost): void {
    if (!isMissed(host)) this.#out.delete(host.uid);
  }

  /** The host goes. */
  take({ uid, name, rack }: SeenHost): void {
    this.#out.set(uid, { name, rack });
  }
}

function textOf(out: readonly { readonly name: string }[]): string {
  if (out.length === 0) return 'waits: no host may be out';
  const verb = out.length === 1 ? 'is' : 'are';
  return `waits for ${namesText(out)}, which ${verb} out`;
}
