/**
 * Which deployments of a pool are called off, or not requested at all. While the image is fetched,
 * the host is unchanged; it stays so when the pool would no longer begin the deployment. Pure.
 *
 * Invariant: no reason that holds the pool keeps a host out of service, because its slot may heal
 * it; a deployment that has begun goes on to its end.
 */
import {
  type HostUid,
  type RolloutSlot,
  RolloutSlotState,
  type store as wire,
} from '@rackwright/messages';
import type { PoolWait, Survey } from '../facts/pool-status.ts';
import { isBroken, isSelected, isServing, runUnderWay, type SeenHost } from '../facts/seen.ts';
import { isPinned, wantedBy } from '../facts/target.ts';
import { GateCapacity } from './gate-capacity.ts';
import { stopOf } from './stops.ts';
import { survey } from './survey.ts';

/** The reasons, by the uids of the hosts. */
export type CallOffs = ReadonlyMap<HostUid, string>;

export function callOffs(
  record: wire.PoolRecord,
  hosts: ReadonlyMap<HostUid, SeenHost>,
  surveyed: Survey,
): CallOffs {
  const fetching = slotsWith(surveyed.slots, hosts, isFetching);
  const under = fetching.filter(({ host }) => host.run?.abort === undefined);
  if (under.length === 0) return new Map();
  const room = new GateCapacity(surveyed);
  for (const { host } of fetching) if (host.run?.abort !== undefined) room.stay(host);
  return new Map(
    staying(record, under, surveyed, room).map(({ host, why }) => [host.uid, why.text]),
  );
}

/**
 * Why hosts of new slots get no request for their runs: by the slots' numbers. A crash may lie
 * between slot and request, and the situation may have changed.
 */
export function notBegun(
  record: wire.PoolRecord,
  hosts: ReadonlyMap<HostUid, SeenHost>,
  nowMs: number,
): ReadonlyMap<bigint, string> {
  const beginning = slotsWith(record.pool?.status?.slots ?? [], hosts, isBeginning);
  if (beginning.length === 0) return new Map();
  const surveyed = survey(record, hosts, nowMs);
  const kept = staying(record, beginning, surveyed, new GateCapacity(surveyed));
  return new Map(kept.map(({ slot, why }) => [slot.number, why.text]));
}

interface SlotHost {
  readonly slot: RolloutSlot;
  readonly host: SeenHost;
}

function slotsWith(
  slots: readonly RolloutSlot[],
  hosts: ReadonlyMap<HostUid, SeenHost>,
  isMeant: (slot: RolloutSlot, host: SeenHost) => boolean,
): SlotHost[] {
  return slots.flatMap((slot) => {
    const host = hosts.get(slot.hostUid);
    return host !== undefined && isMeant(slot, host) ? [{ slot, host }] : [];
  });
}

function isFetching({ run: number }: RolloutSlot, host: SeenHost): boolean {
  return runUnderWay(host)?.number === number && host.isStillIn;
}

/** Its host is about to be asked for its run, or has just been asked. */
export function isBeginning({ run, state }: RolloutSlot): boolean {
  return run === 0n && state === RolloutSlotState.STARTING;
}

/** The last one first: when it stays, hosts with older slots have room. */
function staying(
  record: wire.PoolRecord,
  slots: readonly SlotHost[],
  surveyed: Survey,
  room: GateCapacity,
): (SlotHost & { readonly why: PoolWait | Obstacle })[] {
  return slots.toReversed().flatMap(({ slot, host }) => {
    const why =
      whyNotNow(record, slot, host, surveyed) ?? (isServing(host) ? room.waitOf(host) : undefined);
    if (why === undefined) return [];
    room.stay(host);
    return [{ slot, host, why }];
  });
}

/** What ends a deployment that is not begun, apart from other hosts. */
interface Obstacle {
  readonly kind: 'poolStopped' | 'brake' | 'left' | 'otherImage' | 'window';
  /** For people. */
  readonly text: string;
}

function whyNotNow(
  record: wire.PoolRecord,
  { image }: RolloutSlot,
  host: SeenHost,
  surveyed: Pick<Survey, 'stop' | 'manualStop' | 'opening'>,
): Obstacle | undefined {
  const { name } = host;
  const stop = stopOf(surveyed, { isPinned: isPinned(record, name) });
  if (stop !== undefined && !isBroken(host)) return { kind: 'poolStopped', text: stop.text };
  if (host.brake !== undefined) return { kind: 'brake', text: host.brake.text };
  // A person may want to save the data on its disk.
  if (!isSelected(record.pool?.spec?.hosts, host)) {
    return { kind: 'left', text: 'it has left the pool' };
  }
  const wanted = wantedBy(record, name);
  if (wanted !== undefined && wanted.image !== image) {
    return { kind: 'otherImage', text: 'its image is not wanted any more' };
  }
  // Windows apply only to a host in service.
  if (surveyed.opening.isOpen || !isServing(host)) return undefined;
  return { kind: 'window', text: 'the window has shut' };
}
