/**
 * What a new or changed pool would do before it is written: by the same functions that decide for
 * written pools. Pure.
 */
import { clone, create } from '@bufbuild/protobuf';
import {
  counted,
  PoolAmountSchema,
  PoolStatusSchema,
  type RolloutPlan,
  readActor,
  store as wire,
} from '@rackwright/messages';
import type { PlatformDigests } from '../../images/index.ts';
import { healFailures } from '../decide/failures.ts';
import { namesText } from '../decide/slot-text.ts';
import { stateText } from '../decide/survey.ts';
import { type Membership, membersOf } from '../facts/members.ts';
import type { SeenHost } from '../facts/seen.ts';
import { foldResolved, knownDigest, targetOf } from '../facts/target.ts';
import { unavailableMax } from '../policy/amounts.ts';
import type { PoolSnapshot } from '../shell/snapshot.ts';
import { rolloutPlan } from './view.ts';

/** The most hosts outside the pool that are listed; the rest are counted. */
const shownMax = 5;

export interface DraftedPool {
  /** The resulting pool. */
  readonly record: wire.PoolRecord;
  /** The present pool; undefined: there is none. */
  readonly before: wire.PoolRecord | undefined;
  /** The resolved digest of its image; empty: it needs no resolution. */
  readonly digest: string;
  /** The digests for each platform; undefined: not read. */
  readonly platforms?: PlatformDigests | undefined;
}

/** Whether its image has to be resolved to know the target. */
export function needsLookup(record: wire.PoolRecord): boolean {
  return targetOf(record) === undefined;
}

/** The order of the rollout over the pool's future hosts, and the effects on other hosts. */
export function draftPoolPlan(
  { record: wanted, before, digest, platforms }: DraftedPool,
  { hosts, others, registries }: Pick<PoolSnapshot, 'hosts' | 'others' | 'registries'>,
  nowMs: number,
): RolloutPlan {
  const record = clone(wire.PoolRecordSchema, wanted);
  const spec = record.pool?.spec;
  if (record.pool === undefined || spec === undefined) throw new Error('a pool needs a spec');
  const status = (record.pool.status ??= create(PoolStatusSchema));
  const byUid = new Map(hosts.map((host) => [host.uid, host]));
  const old = record.members.flatMap(({ hostUid }) => byUid.get(hostUid) ?? []);
  if (digest !== '') {
    const { image: reference } = spec;
    const answer = { reference, digest, version: '', known: knownDigest(record, reference) };
    const platformFields = platforms === undefined ? {} : { platforms };
    foldResolved(record, status, { kind: 'digest', ...answer, ...platformFields }, old, nowMs);
  }
  // The order of a new pool's hosts depends on its uid, which does not exist yet.
  const all = before === undefined ? membersOf(withoutSize(record), hosts, others) : undefined;
  const membership = membersOf(record, hosts, others);
  const takes = membership.members.length;
  record.members = [...(all ?? membership).members];
  // A percentage refers to the hosts that the pool takes, not to those that it chooses from.
  const { rollout } = spec;
  if (rollout?.maxUnavailable !== undefined) {
    const value = unavailableMax(rollout.maxUnavailable, takes);
    rollout.maxUnavailable = create(PoolAmountSchema, { amount: { case: 'count', value } });
  }
  const mayHave = new Set(record.members.map(({ hostUid }) => hostUid));
  healFailures({ record, status, hosts: byUid, nowMs, registries, deployments: [] });
  const own = record.pool && readActor(record.pool.name);
  const claimed = hosts.map((host) => {
    return mayHave.has(host.uid) ? { ...host, claimedBy: host.claimedBy ?? own } : host;
  });
  const plan = rolloutPlan({ record, hosts: claimed, ledger: [], nowMs });
  plan.warnings.unshift(
    ...drawnText(before, takes, mayHave.size),
    ...notTaken(membership),
    ...leavingText(old.filter(({ uid }) => !mayHave.has(uid))),
  );
  return plan;
}

function withoutSize(record: wire.PoolRecord): wire.PoolRecord {
  const whole = clone(wire.PoolRecordSchema, record);
  delete whole.pool?.spec?.size;
  return whole;
}

function drawnText(before: wire.PoolRecord | undefined, takes: number, mayHave: number): string[] {
  if (mayHave === 0) return ['it would hold no host'];
  const taken = `it would hold ${counted(takes, 'host')}`;
  if (before !== undefined || mayHave === 1) return [taken];
  const which = takes < mayHave ? ` of these ${mayHave}, which ones` : '; in which order';
  return [`${taken}${which} is settled when it is made`];
}

function notTaken({ contested, unready }: Membership): string[] {
  const lines = [
    ...[...contested].map(([host, why]) => `${host} is ${why}, and not taken`),
    ...unready.map((host) => `${host.name} is ${stateText(host)}: taken once it is ready`),
  ];
  const more = lines.length - shownMax;
  return more > 0 ? [...lines.slice(0, shownMax), `and ${more} more are not taken now`] : lines;
}

function leavingText(leaving: readonly SeenHost[]): string[] {
  return leaving.length === 0 ? [] : [`given back, as they are: ${namesText(leaving)}`];
}
