/**
 * The hosts that a pool holds. Pure.
 *
 * Invariants:
 * 1. A pool acts on members alone. A host becomes a member before it is claimed: a crash in between
 *    leaves a claim to be made, never an unknown one.
 * 2. A host with another owner's claim is never taken, and two pools that want all matching hosts
 *    leave a contested one to neither. A pool with a size leaves it to one without.
 * 3. A member with a slot leaves only once its run has ended.
 */
import { createHash } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import {
  type HostName,
  HostState,
  type HostUid,
  type PoolSpec,
  RolloutSlotState,
  store as wire,
} from '@rackwright/messages';
import { isSelected, type SeenHost } from './seen.ts';

/** The most members of one pool: their data has to fit in one record. */
export const membersMax = 300;

/** What one pool has to know of another. */
export interface OtherPool {
  /** "pools/POOL" */
  readonly name: string;
  readonly spec: PoolSpec | undefined;
}

export interface Membership {
  readonly members: readonly wire.PoolMember[];
  /** Hosts that are selected and not held, with the reason. */
  readonly contested: ReadonlyMap<HostName, string>;
  /** Selected hosts without an owner, whose state does not permit a claim yet. */
  readonly unready: readonly SeenHost[];
}

const states: ReadonlySet<HostState> = new Set([HostState.AVAILABLE, HostState.PROVISIONED]);

/** The members from now on. */
export function membersOf(
  record: wire.PoolRecord,
  hosts: readonly SeenHost[],
  others: readonly OtherPool[],
): Membership {
  const pool = record.pool;
  const spec = pool?.spec;
  if (pool === undefined || spec === undefined) {
    return { members: [], contested: new Map(), unready: [] };
  }
  const bound = new Set(record.members.filter(hasRun(record)).map(({ hostUid }) => hostUid));
  const before = new Map(record.members.map((member) => [member.hostUid, member]));
  const contested = new Map<HostName, string>();
  const kept: SeenHost[] = [];
  const fitting: SeenHost[] = [];
  const unready: SeenHost[] = [];
  for (const host of hosts) {
    const isIn = isSelected(spec.hosts, host) && !host.isDeleting && record.deletion === undefined;
    if (bound.has(host.uid)) kept.push(host);
    else if (isIn) {
      const mayBeOthers = host.waitsForReview && host.claimedBy === undefined;
      const isMember = before.has(host.uid) && mayHave(host, pool.name) && !mayBeOthers;
      const why = isMember ? undefined : whyNot(host, pool.name, others);
      if (why !== undefined) contested.set(host.name, why);
      else if (isMember || host.claimedBy === pool.name || isFree(host)) fitting.push(host);
      else unready.push(host);
    }
  }
  const room = Math.max(0, Math.min(spec.size ?? membersMax, membersMax) - kept.length);
  const rank = (host: SeenHost) => rankOf(host, before, record);
  const sorted = fitting.toSorted(
    (a, b) => rank(a) - rank(b) || compare(orderKey(pool.uid, a), orderKey(pool.uid, b)),
  );
  const chosen = sorted.slice(0, room);
  const left = spec.size === undefined ? sorted.slice(room) : [];
  for (const { name } of left)
    contested.set(name, `one too many: a pool holds ${membersMax} hosts`);
  const members = [...kept, ...chosen]
    .toSorted((a, b) => compare(a.name, b.name))
    .map(({ name, uid }) => {
      const { notReady = false } = before.get(uid) ?? {};
      return create(wire.PoolMemberSchema, { host: name, hostUid: uid, notReady });
    });
  return { members, contested, unready };
}

/** The same on every replica and after every crash; no host can choose to be first. */
export function orderKey(...parts: readonly (string | SeenHost)[]): string {
  const texts = parts.map((part) => (typeof part === 'string' ? part : part.uid));
  return createHash('sha256').update(texts.join('/')).digest('hex');
}

/** By code points, as keys of the store are. */
export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function hasRun({ pool }: wire.PoolRecord) {
  const slots = pool?.status?.slots ?? [];
  const running = slots.filter(({ state }) => state !== RolloutSlotState.GATE);
  const uids = new Set(running.map(({ hostUid }) => hostUid));
  return ({ hostUid }: wire.PoolMember) => uids.has(hostUid);
}

function mayHave({ claimedBy }: SeenHost, pool: string): boolean {
  return claimedBy === undefined || claimedBy === pool;
}

/**
 * A host on its way to available cannot be written yet: until it is available, any pool may take
 * it. A host that is unowned only in a restored store is left to its possible owner.
 */
function isFree({ claimedBy, state, isInRescue, waitsForReview }: SeenHost): boolean {
  return claimedBy === undefined && states.has(state) && !isInRescue && !waitsForReview;
}

function whyNot(host: SeenHost, pool: string, others: readonly OtherPool[]): string | undefined {
  if (!mayHave(host, pool)) return `claimed by ${host.claimedBy}`;
  if (host.claimedBy === pool) return undefined;
  const rival = others.find(({ spec }) => {
    return spec !== undefined && spec.size === undefined && isSelected(spec.hosts, host);
  });
  return rival === undefined ? undefined : `selected by ${rival.name}, too`;
}

/** Members stay; after them come the hosts that need the least work. */
function rankOf(
  host: SeenHost,
  before: ReadonlyMap<HostUid, unknown>,
  { pool }: wire.PoolRecord,
): number {
  const isCurrent = host.digest !== '' && host.digest === pool?.status?.target?.digest;
  if (before.has(host.uid)) return isCurrent ? 0 : 1;
  if (host.claimedBy === pool?.name) return 2;
  if (isCurrent) return 3;
  return host.state === HostState.AVAILABLE ? 4 : 5;
}
