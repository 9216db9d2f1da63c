/**
 * The shell of the limits: takes and releases slots by compare-and-set on the one record of each
 * limit, and wakes the hosts that got a slot.
 *
 * Invariants:
 * 1. A slot is requested only after the host's record says that it waits for one; a repeated
 *    request after a crash changes nothing (Q1).
 * 2. A slot that becomes free by time is given out by a timer of every replica; the first one wins.
 * 3. Nothing is read or written while no limit is set and no slot is taken.
 */
import { create } from '@bufbuild/protobuf';
import { type HostUid, type RackId, type RunNumber, store as wire } from '@rackwright/messages';
import type { Cancel } from '@rackwright/platform';
import { storeKey } from '@rackwright/store';
import { changeRecord } from '../../records/index.ts';
import { type FleetFollower, fleetKey } from '../fleet/followed.ts';
import {
  changedSlots,
  hasSlotForNext,
  limitHostsMax,
  nextSlotMs,
  type Quota,
  type QuotaName,
  type QuotaSlots,
  type QuotaView,
  quotaViewOf,
  type SlotChange,
} from '../pass/quota.ts';
import type { HostsDependencies } from './dependencies.ts';

const secondMs = 1_000;
const stretchSecondsDefault = 3_600;
/** The longest timer, so that a step of the wall clock does no lasting harm. */
const timerMsMax = 60_000;

/** The size of a wipe budget; undefined: no budget is set. */
export function wipeQuota(
  budget: { readonly hosts: number; readonly seconds?: number | undefined } | undefined,
): Quota | undefined {
  if (budget === undefined) return undefined;
  const { hosts, seconds = stretchSecondsDefault } = budget;
  return {
    kind: 'inStretch',
    hosts: Math.min(hosts, limitHostsMax),
    stretchMs: seconds * secondMs,
  };
}

export function runnerQuota(record: wire.RackRecord | undefined): Quota | undefined {
  const hosts = record?.rack?.spec?.limits?.runs;
  return hosts === undefined
    ? undefined
    : { kind: 'atOnce', hosts: Math.min(hosts, limitHostsMax) };
}

/** The positions of one host in the limits of its rack and of the fleet. */
export function quotaViews(
  hostUid: HostUid,
  rack: wire.RackRecord | undefined,
  fleet: wire.FleetRecord | undefined,
): QuotaView[] {
  const found: QuotaView[] = [];
  const add = (name: QuotaName, slots: QuotaSlots, quota: Quota | undefined) => {
    if (quota === undefined && slots.taken.length + slots.queued.length === 0) return;
    found.push(quotaViewOf(name, slots, quota, hostUid));
  };
  if (rack !== undefined) {
    add('runner', slotsOf(rack, 'runner'), runnerQuota(rack));
    add('rackWipes', slotsOf(rack, 'rackWipes'), wipeQuota(rack.rack?.spec?.wipeBudget));
  }
  if (fleet !== undefined) {
    add('fleetWipes', slotsOf(fleet, 'fleetWipes'), wipeQuota(fleet.fleet?.spec?.wipeBudget));
  }
  return found;
}

type LimitedRecord = wire.RackRecord | wire.FleetRecord;

function slotsOf(record: LimitedRecord, name: QuotaName): QuotaSlots {
  if (name === 'runner' && record.$typeName === 'rackwright.store.v1.RackRecord') {
    return { taken: record.running, queued: record.queued };
  }
  return { taken: record.wipes, queued: record.wipesQueued };
}

function putSlots(record: LimitedRecord, name: QuotaName, { taken, queued }: QuotaSlots): void {
  if (name === 'runner' && record.$typeName === 'rackwright.store.v1.RackRecord') {
    record.running = [...taken];
    record.queued = [...queued];
    return;
  }
  record.wipes = [...taken];
  record.wipesQueued = [...queued];
}

function quotaIn(record: LimitedRecord, name: QuotaName): Quota | undefined {
  if (record.$typeName === 'rackwright.store.v1.FleetRecord') {
    return wipeQuota(record.fleet?.spec?.wipeBudget);
  }
  return name === 'runner' ? runnerQuota(record) : wipeQuota(record.rack?.spec?.wipeBudget);
}

interface QuotaChange {
  readonly name: QuotaName;
  readonly change: SlotChange;
}

/** A rack's id; undefined stands for the fleet. */
type RackOrFleet = RackId | undefined;

export class LimitSlots {
  readonly #deps: HostsDependencies;
  readonly #followed: FleetFollower;
  readonly #wanted = new Map<RackOrFleet, QuotaChange[]>();
  readonly #busy = new Set<RackOrFleet>();
  readonly #timers = new Map<RackOrFleet, Cancel>();
  #stopped = false;

  constructor(deps: HostsDependencies, followed: FleetFollower) {
    this.#deps = deps;
    this.#followed = followed;
  }

  stop(): void {
    this.#stopped = true;
    for (const cancel of this.#timers.values()) cancel();
    this.#timers.clear();
  }

  /** Makes the change soon, together with others of the same record; retries until it succeeds. */
  change(rackId: RackId, name: QuotaName, change: SlotChange): void {
    const owner = name === 'fleetWipes' ? undefined : rackId;
    this.#wanted.set(owner, [...(this.#wanted.get(owner) ?? []), { name, change }]);
    void this.#work(owner);
  }

  /**
   * A record has changed: its free slots are given to waiting hosts, now or when their time comes.
   */
  read(owner: RackOrFleet, record: LimitedRecord | undefined): void {
    this.#timers.get(owner)?.();
    this.#timers.delete(owner);
    if (record === undefined || this.#stopped) return;
    const nowMs = this.#deps.clock.nowMs();
    let nextMs: number | undefined;
    for (const name of namesOf(owner)) {
      const slots = slotsOf(record, name);
      if (slots.queued.length === 0) continue;
      const quota = quotaIn(record, name);
      if (hasSlotForNext(slots, quota, nowMs)) {
        this.change(owner ?? '', name, { kind: 'promote' });
        continue;
      }
      const atMs = nextSlotMs(slots, quota);
      if (atMs !== undefined) nextMs = Math.min(nextMs ?? atMs, atMs);
    }
    if (nextMs === undefined) return;
    const waitMs = Math.min(Math.max(1, nextMs - nowMs), timerMsMax);
    const again = () => this.read(owner, this.#record(owner));
    this.#timers.set(owner, this.#deps.clock.after(waitMs, again));
  }

  /** Releases the slots of removed hosts. */
  sweep(gone: readonly TakenSlot[]): void {
    for (const { rackId, name, hostUid, run } of gone) {
      this.change(rackId, name, { kind: 'leave', owner: { hostUid, run } });
    }
  }

  /** Every taken slot and waiting request, as last seen. */
  taken(): TakenSlot[] {
    const all: TakenSlot[] = [];
    const add = (rackId: RackId, name: QuotaName, record: LimitedRecord) => {
      const { taken, queued } = slotsOf(record, name);
      const open = taken.filter((slot) => slot.open);
      for (const { hostUid, run } of [...open, ...queued]) all.push({ rackId, name, hostUid, run });
    };
    for (const [rackId, record] of this.#followed.racks()) {
      add(rackId, 'runner', record);
      add(rackId, 'rackWipes', record);
    }
    if (this.#followed.fleet !== undefined) add('', 'fleetWipes', this.#followed.fleet);
    return all;
  }

  #record(owner: RackOrFleet): LimitedRecord | undefined {
    return owner === undefined ? this.#followed.fleet : this.#followed.rack(owner);
  }

  async #work(owner: RackOrFleet): Promise<void> {
    if (this.#busy.has(owner)) return;
    this.#busy.add(owner);
    try {
      for (;;) {
        const wanted = this.#wanted.get(owner) ?? [];
        this.#wanted.delete(owner);
        if (wanted.length === 0 || this.#stopped) return;
        await this.#write(owner, wanted);
      }
    } finally {
      this.#busy.delete(owner);
    }
  }

  async #write(owner: RackOrFleet, wanted: readonly QuotaChange[]): Promise<void> {
    const { log, clock, timing } = this.#deps;
    try {
      if (owner === undefined) await this.#writeFleet(wanted);
      else await this.#writeRack(owner, wanted);
    } catch (error) {
      log.warn({ rack: owner ?? 'fleet' }, 'slots could not be written yet', error);
      clock.after(timing.retryDelayMs, () => {
        this.#wanted.set(owner, [...wanted, ...(this.#wanted.get(owner) ?? [])]);
        void this.#work(owner);
      });
    }
  }

  async #writeRack(rackId: RackId, wanted: readonly QuotaChange[]): Promise<void> {
    const key = storeKey('racks', rackId);
    const schema = wire.RackRecordSchema;
    const changed = await changeRecord(this.#deps, schema, key, (record) => {
      return this.#apply(record, wanted);
    });
    if (changed) this.#followed.noteRack(rackId, changed.record, changed.revision);
  }

  async #writeFleet(wanted: readonly QuotaChange[]): Promise<void> {
    const schema = wire.FleetRecordSchema;
    const apply = (record: wire.FleetRecord) => this.#apply(record, wanted);
    const changed = await changeRecord(this.#deps, schema, fleetKey, apply, {
      absent: () => create(schema),
      name: 'the fleet',
    });
    if (changed) this.#followed.noteFleet(changed.record, changed.revision);
  }

  #apply<R extends LimitedRecord>(record: R, wanted: readonly QuotaChange[]): R {
    const nowMs = this.#deps.clock.nowMs();
    for (const { name, change } of wanted) {
      const slots = slotsOf(record, name);
      putSlots(record, name, changedSlots(slots, change, quotaIn(record, name), nowMs));
    }
    return record;
  }
}

export interface TakenSlot {
  readonly rackId: RackId;
  readonly name: QuotaName;
  readonly hostUid: HostUid;
  readonly run: RunNumber;
}

function namesOf(owner: RackOrFleet): readonly QuotaName[] {
  return owner === undefined ? ['fleetWipes'] : ['runner', 'rackWipes'];
}

/** Hosts whose slots in a record have changed so that they may go on. */
export function wokenBy(
  before: LimitedRecord | undefined,
  after: LimitedRecord | undefined,
): HostUid[] {
  if (after === undefined) return [];
  const woken = new Set<HostUid>();
  for (const name of ['runner', 'rackWipes'] as const) {
    const had = new Set(before === undefined ? [] : openOf(before, name));
    for (const uid of openOf(after, name)) if (!had.has(uid)) woken.add(uid);
  }
  return [...woken];
}

function openOf(record: LimitedRecord, name: QuotaName): HostUid[] {
  return slotsOf(record, name)
    .taken.filter(({ open }) => open)
    .map(({ hostUid }) => hostUid);
}

/** The position of a run in its queue, from 1; undefined: in none. */
export function queuePosition(
  { hostUid, run }: { readonly hostUid: HostUid; readonly run: RunNumber },
  rack: wire.RackRecord | undefined,
  fleet: wire.FleetRecord | undefined,
): number | undefined {
  const queues = [rack?.queued, rack?.wipesQueued, fleet?.wipesQueued];
  for (const queue of queues) {
    const index = queue?.findIndex((slot) => slot.hostUid === hostUid && slot.run === run) ?? -1;
    if (index >= 0) return index + 1;
  }
  return undefined;
}
