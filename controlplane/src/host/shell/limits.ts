/**
 * Settings of racks and the fleet for their hosts: follows them, wakes the affected hosts, and
 * manages the slots of limits (`limit-slots.ts`).
 */
import { equals } from '@bufbuild/protobuf';
import {
  FleetSpecSchema,
  type Freeze,
  FreezeSchema,
  type HostId,
  type HostUid,
  type RackId,
  RackSpecSchema,
  RunPhase,
  type store as wire,
} from '@rackwright/messages';
import type { Lane } from '../../loop/index.ts';
import { idOf } from '../../records/index.ts';
import { FleetFollower, type FleetObserver } from '../fleet/followed.ts';
import { type HostIndex, rackIdOf } from '../fleet/host-index.ts';
import type { HostEffect } from '../pass/types.ts';
import type { HostsDependencies } from './dependencies.ts';
import { LimitSlots, queuePosition, type TakenSlot, wokenBy } from './limit-slots.ts';
import { holdForNewIncarnation } from './restored-racks.ts';

export class Limits {
  readonly #deps: HostsDependencies;
  readonly #index: HostIndex;
  readonly #wake: (hostId: HostId, lane?: Lane) => void;
  readonly #followed: FleetFollower;
  readonly #slots: LimitSlots;

  constructor(
    deps: HostsDependencies,
    index: HostIndex,
    wake: (hostId: HostId, lane?: Lane) => void,
  ) {
    this.#deps = deps;
    this.#index = index;
    this.#wake = wake;
    const observer: FleetObserver = {
      fleet: (before, after) => this.#fleetChanged(before, after),
      rack: (rackId, before, after) => this.#rackChanged(rackId, before, after),
    };
    this.#followed = new FleetFollower(deps, observer);
    this.#slots = new LimitSlots(deps, this.#followed);
  }

  /** Afterwards every rack and the fleet are known; racks of a restored store are marked. */
  async start(): Promise<void> {
    await this.#followed.start();
    await holdForNewIncarnation(this.#deps, this.#followed);
  }

  stop(): void {
    this.#followed.stop();
    this.#slots.stop();
  }

  get fleet(): wire.FleetRecord | undefined {
    return this.#followed.fleet;
  }

  change(record: wire.HostRecord, { name, change }: Extract<HostEffect, { kind: 'quota' }>): void {
    this.#slots.change(rackIdOf(record), name, change);
  }

  /** The slots that are taken now: read before all hosts are listed, for `afterListing`. */
  taken(): readonly TakenSlot[] {
    return this.#slots.taken();
  }

  /** A host that had a slot before the indexed listing, and is missing in it, is gone forever. */
  afterListing(taken: readonly TakenSlot[]): void {
    const gone = ({ hostUid, rackId, name }: TakenSlot) =>
      name === 'fleetWipes'
        ? this.#index.hostIdOf(hostUid) === undefined
        : this.#index.hostIdOfUid(hostUid, rackId) === undefined;
    this.#slots.sweep(taken.filter(gone));
  }

  /** The position of the host's run in its queue, from 1. */
  queuePosition({ host }: wire.HostRecord): number | undefined {
    const run = host?.status?.run;
    if (host === undefined || run?.phase !== RunPhase.WAITING) return undefined;
    const rackId = idOf(host.spec?.rack);
    const owner = { hostUid: host.uid, run: run.number };
    return queuePosition(owner, this.#followed.rack(rackId), this.#followed.fleet);
  }

  #fleetChanged(before: wire.FleetRecord | undefined, after: wire.FleetRecord | undefined): void {
    const [had, has] = [before?.fleet, after?.fleet];
    const spec = !sameSpec(FleetSpecSchema, had?.spec, has?.spec);
    if (spec || !sameFreeze(had?.status?.freeze, has?.status?.freeze)) {
      // All hosts: one with a more specific reason was already woken with priority.
      for (const hostId of this.#index.hostIds()) this.#wake(hostId, 'later');
    } else this.#wakeAll(wokenBy(before, after));
    this.#slots.read(undefined, after);
  }

  #rackChanged(
    rackId: RackId,
    before: wire.RackRecord | undefined,
    after: wire.RackRecord | undefined,
  ): void {
    if (before !== undefined && after !== undefined && concernsHosts(before, after)) {
      for (const hostId of this.#index.hostIdsOfRack(rackId)) this.#wake(hostId);
    } else this.#wakeAll(wokenBy(before, after));
    this.#slots.read(rackId, after);
  }

  #wakeAll(uids: readonly HostUid[]): void {
    for (const uid of uids) {
      const hostId = this.#index.hostIdOf(uid);
      if (hostId !== undefined) this.#wake(hostId);
    }
  }
}

/** Whether a change of a rack may affect any of its hosts. */
function concernsHosts(before: wire.RackRecord, after: wire.RackRecord): boolean {
  const [had, has] = [before.rack, after.rack];
  if (!sameSpec(RackSpecSchema, had?.spec, has?.spec)) return true;
  if (!sameFreeze(had?.status?.freeze, has?.status?.freeze)) return true;
  return isRestored(before) !== isRestored(after);
}

function isRestored({ rack, acceptedStore }: wire.RackRecord): boolean {
  return rack?.status?.restoredStore !== undefined || acceptedStore !== undefined;
}

function sameFreeze(a: Freeze | undefined, b: Freeze | undefined): boolean {
  return a === undefined || b === undefined ? a === b : equals(FreezeSchema, a, b);
}

function sameSpec<D extends typeof RackSpecSchema | typeof FleetSpecSchema>(
  schema: D,
  a: Parameters<typeof equals<D>>[1] | undefined,
  b: Parameters<typeof equals<D>>[1] | undefined,
): boolean {
  return a === undefined || b === undefined ? a === b : equals(schema, a, b);
}
