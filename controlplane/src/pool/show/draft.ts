/**
 * What a pool would do that is not made, or not changed so, yet: decided by what decides of those
 * that are. Pure.
 */
import { clone, create } from '@bufbuild/protobuf';
import {
  counted,
  PoolAmountSchema,
  PoolStatusSchema,
  type RolloutPlan,
  store as wire,
} from '@rackwright/messages';
import type { PlatformDigests } from '../../images/index.ts';
import { healFailures } from '../decide/failures.ts';
import { namesText } from '../decide/slot-words.ts';
import { stateText } from '../decide/survey.ts';
import { type Membership, membersOf } from '../facts/members.ts';
import type { SeenHost } from '../facts/seen.ts';
import { foldResolved, knownDigest, targetOf } from '../facts/target.ts';
import { unavailableMax } from '../policy/amounts.ts';
import type { PoolSnapshot } from '../shell/snapshot.ts';
import { rolloutPlan } from './view.ts';

/** Hosts that it would not get and that are told one by one; the rest are counted. */
const toldMax = 5;

export interface Drafted {
  /** The pool as it would be. */
  readonly record: wire.PoolRecord;
  /** What stands there; undefined: nothing. */
  readonly before: wire.PoolRecord | undefined;
  /** What its image names; empty: it needs no looking up. */
  readonly digest: string;
  /** What that is for each platform; undefined: nobody has looked. */
  readonly platforms?: PlatformDigests | undefined;
}

/** Whether its image has to be looked up to know where it would lead. */
export function needsLookup(record: wire.PoolRecord): boolean {
  return targetOf(record) === undefined;
}

/** In which order the hosts would go that it would have, and what else would become of hosts. */
export function draftPlan(
  { record: wanted, before, digest, platforms }: Drafted,
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
    const looked = platforms === undefined ? {} : { platforms };
    foldResolved(record, status, { kind: 'digest', ...answer, ...looked }, old, nowMs);
  }
  // Which of a new one's hosts come first follows from its uid, and that is made with it.
  const all = before === undefined ? membersOf(withoutSize(record), hosts, others) : undefined;
  const membership = membersOf(record, hosts, others);
  const takes = membership.members.length;
  record.members = [...(all ?? membership).members];
  // A share is one of the hosts that it takes, not of those it chooses from.
  const { rollout } = spec;
  if (rollout?.maxUnavailable !== undefined) {
    const value = unavailableMax(rollout.maxUnavailable, takes);
    rollout.maxUnavailable = create(PoolAmountSchema, { amount: { case: 'count', value } });
  }
  const mayHave = new Set(record.members.map(({ hostUid }) => hostUid));
  healFailures({ record, status, hosts: byUid, nowMs, registries, deployments: [] });
  const claimed = hosts.map((host) => {
    return mayHave.has(host.uid)
      ? { ...host, claimedBy: host.claimedBy ?? record.pool?.name }
      : host;
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
  const held = `it would hold ${counted(takes, 'host')}`;
  if (before !== undefined || mayHave === 1) return [held];
  const which = takes < mayHave ? ` of these ${mayHave}, which ones` : '; in which order';
  return [`${held}${which} is settled when it is made`];
}

function notTaken({ contested, unready }: Membership): string[] {
  const lines = [
    ...[...contested].map(([host, why]) => `${host} is ${why}, and not taken`),
    ...unready.map((host) => `${host.name} is ${stateText(host)}: taken once it is ready`),
  ];
  const more = lines.length - toldMax;
  return more > 0 ? [...lines.slice(0, toldMax), `and ${more} more are not taken now`] : lines;
}

function leavingText(leaving: readonly SeenHost[]): string[] {
  return leaving.length === 0 ? [] : [`given back, as they are: ${namesText(leaving)}`];
}
