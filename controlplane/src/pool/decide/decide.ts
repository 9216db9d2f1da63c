/**
 * One pass over a pool: its members, the result of each slot, and who gets the next slot. Pure;
 * two replicas with the same data decide the same, and the record's compare-and-set lets one win.
 *
 * Invariants:
 * 1. A slot is in the record before anything is requested of its host (R3). There are never more
 *    slots than hosts that may be out, whatever was lost or repeated.
 * 2. The deploy ledger is never read.
 */
import { clone, create } from '@bufbuild/protobuf';
import {
  type ImageRegistry,
  PoolStatusSchema,
  RolloutSlotState,
  store as wire,
} from '@rackwright/messages';
import { msOf } from '../../records/index.ts';
import type { PoolDraft, SlotNews } from '../facts/draft-types.ts';
import { type Membership, membersOf, type OtherPool } from '../facts/members.ts';
import type { Survey } from '../facts/pool-status.ts';
import { isMissed, type SeenHost } from '../facts/seen.ts';
import { foldResolved, type ResolvedImage } from '../facts/target.ts';
import { type CallOffs, callOffs } from './call-off.ts';
import { conditionsOf } from './conditions.ts';
import { healFailures } from './failures.ts';
import {
  foldGateCalls,
  type GateFacts,
  type GateOrder,
  gateOrders,
  gateTimes,
  noGate,
} from './gate.ts';
import { GateCapacity } from './gate-capacity.ts';
import { foldSlots, healthDeadlineMs, newSlot, passGates, soakEndMs } from './slots.ts';
import { failedOn, noteHalt } from './stops.ts';
import { isSettled, nextOf, queueOf, SlotCapacity, survey } from './survey.ts';

/** What one pass decides upon, besides the pool itself. */
export interface PoolPassSnapshot {
  /** Every host of the store. */
  readonly hosts: readonly SeenHost[];
  /** The other pools that are not being deleted. */
  readonly others: readonly OtherPool[];
  /** The known state of the runs, by the slots' numbers. */
  readonly news: ReadonlyMap<bigint, SlotNews>;
  /** The result of resolving the image, if it was resolved. */
  readonly resolved?: ResolvedImage | undefined;
  /** The fleet's settings for registries. */
  readonly registries?: readonly ImageRegistry[];
  /** Missing: no webhook is asked. */
  readonly gate?: GateFacts;
  readonly nowMs: number;
}

export interface PoolDecision {
  readonly record: wire.PoolRecord;
  /** Entries of the ledger, to be written before the record. */
  readonly deployments: readonly wire.DeploymentRecord[];
  /** Questions to the gate's webhook, to be sent once the record is written. */
  readonly questions: readonly GateOrder[];
  /** Deployments to be called off, once the record is written. */
  readonly callOffs: CallOffs;
  /** When time alone may change something. */
  readonly nextPassMs: number | undefined;
}

/** One reconcile of the pool. */
export function decidePool(kept: wire.PoolRecord, snapshot: PoolPassSnapshot): PoolDecision {
  const record = clone(wire.PoolRecordSchema, kept);
  const { pool } = record;
  if (pool === undefined) throw new Error('a pool record without pool is none of ours');
  pool.status ??= create(PoolStatusSchema);
  const { status } = pool;
  const { nowMs, gate = noGate, registries = [] } = snapshot;
  const hosts = new Map(snapshot.hosts.map((host) => [host.uid, host]));
  const draft: PoolDraft = { record, status, hosts, nowMs, registries, deployments: [] };
  const members = record.members.flatMap(({ hostUid }) => hosts.get(hostUid) ?? []);
  foldResolved(record, status, snapshot.resolved, members, nowMs);
  foldSlots(draft, snapshot.news);
  const membership = membersOf(record, snapshot.hosts, snapshot.others);
  record.members = [...membership.members];
  healFailures(draft);
  const before = survey(record, hosts, nowMs);
  noteHalt(record, before.target, before.stop);
  rollBack(draft, before);
  const first = survey(record, hosts, nowMs);
  foldGateCalls(draft, gate);
  passGates(draft, { surveyed: first, room: new GateCapacity(first) }, gate);
  takeSlots(draft);
  const surveyed = survey(record, hosts, nowMs);
  if (isSettled(surveyed)) record.targetSettled = true;
  status.conditions = conditionsOf(record, surveyed, membership, nowMs);
  status.deleting = record.deletion !== undefined;
  const questions = gateOrders(record, hosts, gate);
  const nextPassMs = nextPassMsOf(draft, surveyed);
  const orders = { questions, callOffs: callOffs(record, hosts, surveyed) };
  return { record, deployments: draft.deployments, ...orders, nextPassMs };
}

/** Hosts that are selected and not held, with the reason; for explanations. */
export function contestedOf(
  record: wire.PoolRecord,
  { hosts, others }: Pick<PoolPassSnapshot, 'hosts' | 'others'>,
): Membership['contested'] {
  return membersOf(record, hosts, others).contested;
}

/** A person has requested it: the earlier image replaces the target, once for each target. */
function rollBack({ record, status, hosts }: PoolDraft, { stop }: Survey): void {
  const { previousTarget, members } = record;
  const { target } = status;
  if (status.rolledBackFrom !== '') return;
  for (const member of members) member.notReady = false;
  const isWanted = record.pool?.spec?.rollout?.rollback === true && record.deletion === undefined;
  if (!isWanted || target === undefined || stop?.reason !== 'halted') return;
  if (previousTarget === undefined || previousTarget.digest === target.digest) return;
  const failed = failedOn(record, target, { isBack: false });
  for (const member of members) {
    const host = hosts.get(member.hostUid);
    member.notReady = failed.has(member.hostUid) || (host !== undefined && isMissed(host));
  }
  status.rolledBackFrom = target.digest;
}

function takeSlots(draft: PoolDraft): void {
  const surveyed = survey(draft.record, draft.hosts, draft.nowMs);
  const outage = new SlotCapacity(surveyed);
  let queue = queueOf(surveyed);
  for (;;) {
    const next = nextOf(queue, outage);
    if (next?.wanted === undefined) return;
    newSlot(draft, next.host, next.wanted.image);
    outage.take(next);
    queue = queue.filter((each) => each !== next);
  }
}

function nextPassMsOf({ record, status, nowMs }: PoolDraft, surveyed: Survey): number | undefined {
  const { GATE, PROVING } = RolloutSlotState;
  const times = [
    ...status.slots.flatMap((slot) => {
      if (slot.state === GATE) return [msOf(slot.gateDeadline)];
      return slot.state === PROVING
        ? [soakEndMs(record, slot), healthDeadlineMs(record, slot)]
        : [];
    }),
    ...gateTimes(record, nowMs),
    ...record.failures.map(({ retryTime }) => msOf(retryTime)),
    surveyed.opening.untilMs,
  ];
  const ahead = times.filter((ms) => ms !== undefined && ms > nowMs) as number[];
  return ahead.length === 0 ? undefined : Math.min(...ahead);
}
