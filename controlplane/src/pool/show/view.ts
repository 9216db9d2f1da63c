/** Pools for people: the record with counts, hosts and history. Pure. */
import { clone, create } from '@bufbuild/protobuf';
import {
  type DeployHistoryEntry,
  HostState,
  type HostUid,
  type Pool,
  type PoolHost,
  PoolHostSchema,
  PoolSchema,
  PoolStatusSchema,
  type RolloutPlan,
  RolloutPlanSchema,
  RolloutSlotState,
  RolloutTargetSchema,
  RunKind,
  type store as wire,
} from '@rackwright/messages';
import { unavailableCount } from '../decide/conditions.ts';
import { needsGate } from '../decide/gate.ts';
import { nextOf, queueOf, SlotCapacity, stateText, survey } from '../decide/survey.ts';
import { compare, membersOf, type OtherPool } from '../facts/members.ts';
import type { HostStatusInPool, PoolWait, SurveyedHost } from '../facts/pool-status.ts';
import { isServing, type SeenHost } from '../facts/seen.ts';
import { targetOf } from '../facts/target.ts';
import { historyLimitDefault, historyOf } from '../ledger/history.ts';

/** The inputs of a view. */
export interface PoolViewInputs {
  readonly record: wire.PoolRecord;
  readonly hosts: readonly SeenHost[];
  readonly ledger: readonly wire.DeploymentRecord[];
  readonly nowMs: number;
}

function byUid(hosts: readonly SeenHost[]): ReadonlyMap<HostUid, SeenHost> {
  return new Map(hosts.map((host) => [host.uid, host]));
}

/** The pool with its counts and its newest history; the caller adds the etag. */
export function shownPool(viewed: PoolViewInputs): Pool {
  const { record, hosts, nowMs } = viewed;
  const pool = clone(PoolSchema, record.pool ?? create(PoolSchema));
  pool.status ??= create(PoolStatusSchema);
  const { target, rolledBackFrom } = pool.status;
  // The record keeps the target on which hosts failed, so that a new one is recognized. People see
  // the target that the pool goes back to.
  if (rolledBackFrom !== '' && rolledBackFrom === target?.digest && record.previousTarget) {
    pool.status.target = clone(RolloutTargetSchema, record.previousTarget);
  }
  const surveyed = survey(record, byUid(hosts), nowMs);
  const { surveyedHosts } = surveyed;
  pool.status.hostCount = record.members.length;
  pool.status.currentCount = surveyedHosts.filter(({ status }) => status === 'current').length;
  pool.status.failedCount = surveyedHosts.filter(({ status }) => status === 'failed').length;
  pool.status.unavailableCount = unavailableCount(surveyed);
  pool.status.unavailableMax = surveyed.unavailableMax;
  pool.status.deleting = record.deletion !== undefined;
  pool.status.deployHistory = shownHistory(viewed, pool.spec?.historyLimit);
  return pool;
}

/** `limit` unset: the pool's own limit. */
export function shownHistory(
  { record, hosts, ledger }: PoolViewInputs,
  limit: number = historyLimitDefault,
): DeployHistoryEntry[] {
  const uids = new Set(record.members.map(({ hostUid }) => hostUid));
  const members = hosts.filter(({ uid }) => uids.has(uid));
  return historyOf(ledger, members, { limit, target: targetOf(record)?.digest ?? '' });
}

/** Each host of the pool, and the selected or named hosts that it does not get. */
export function shownHosts(
  { record, hosts, nowMs }: PoolViewInputs,
  others: readonly OtherPool[],
): PoolHost[] {
  const surveyed = survey(record, byUid(hosts), nowMs);
  const outage = new SlotCapacity(surveyed);
  const members = surveyed.surveyedHosts.map((surveyedHost) => {
    const { name, host, status, wanted, why, slot } = surveyedHost;
    const isAtGate = slot?.state === RolloutSlotState.GATE;
    const isTaken = slot !== undefined && !isAtGate && slot.state !== RolloutSlotState.PROVING;
    const message = status === 'waiting' ? (outage.waitOf(surveyedHost)?.text ?? 'goes next') : why;
    return create(PoolHostSchema, {
      ...{ host: name, rack: host.rack, image: host.image, wantedImage: wanted?.image ?? '' },
      // Nor is it healthy during the run of its slot, whatever its disk contains.
      ...{ healthy: isServing(host) && !isTaken },
      ...{ state: isAtGate ? 'atGate' : status, message },
    });
  });
  const { contested, unready } = membersOf(record, hosts, others);
  const taken = [...contested].map(([name, message]) => {
    const host = hosts.find((each) => each.name === name);
    return create(PoolHostSchema, {
      ...{ host: name, rack: host?.rack ?? '', image: host?.image ?? '' },
      ...{ state: 'contested', message },
    });
  });
  const notReady = unready.map((host) =>
    create(PoolHostSchema, {
      ...{ host: host.name, rack: host.rack, image: host.image },
      ...{ state: 'notReady', message: `it is ${stateText(host)}` },
    }),
  );
  const missing = missingOf(record, hosts).map((host) =>
    create(PoolHostSchema, { host, state: 'missing', message: 'there is no such host' }),
  );
  return [...members, ...taken, ...notReady, ...missing].toSorted((a, b) =>
    compare(a.host, b.host),
  );
}

/** Hosts that the pool names, to select or to pin, and that do not exist. */
function missingOf({ pool }: wire.PoolRecord, hosts: readonly SeenHost[]): string[] {
  const known = new Set(hosts.map(({ name }) => name));
  const named = new Set([
    ...(pool?.spec?.hosts?.names ?? []),
    ...Object.keys(pool?.spec?.pins ?? {}),
  ]);
  return [...named].filter((name) => !known.has(name));
}

interface PlannedStart {
  readonly each: SurveyedHost;
  /** Why the host does not go now; undefined: it goes. */
  readonly blocker:
    | PoolWait
    | { readonly kind: HostStatusInPool; readonly text: string }
    | undefined;
}

/** The order of the rollout over the hosts, at present; blocked hosts come last. */
export function rolloutPlan({ record, hosts, nowMs }: PoolViewInputs): RolloutPlan {
  const surveyed = survey(record, byUid(hosts), nowMs);
  const { target, stop, surveyedHosts, unavailableMax, warnings } = surveyed;
  const outage = new SlotCapacity(surveyed);
  const queue = inQueueOrder(queueOf(surveyed), new SlotCapacity(surveyed));
  const blocked = surveyedHosts.filter(({ status }) => status === 'kept' || status === 'failed');
  const planned: readonly PlannedStart[] = [
    ...queue.map((each) => ({ each, blocker: outage.waitOf(each) })),
    ...blocked.map((each) => ({ each, blocker: { kind: each.status, text: each.why } })),
  ];
  const [first] = planned;
  const isAnyFree = first !== undefined && first.blocker === undefined;
  const firstWaits = first === undefined ? '' : `${first.each.name}: ${first.blocker?.text}`;
  return create(RolloutPlanSchema, {
    ...{
      pool: record.pool?.name ?? '',
      unavailableMax,
      hosts: planned.map((each) => plannedOf(record, each)),
    },
    ...(target === undefined ? {} : { target }),
    heldBecause: isAnyFree ? '' : (stop?.text ?? firstWaits),
    warnings: [...warnings],
  });
}

/** The hosts that go now first, in their order of selection; then the others in theirs. */
function inQueueOrder(queue: readonly SurveyedHost[], outage: SlotCapacity): SurveyedHost[] {
  let rest = [...queue];
  const first: SurveyedHost[] = [];
  for (;;) {
    const next = nextOf(rest, outage);
    if (next === undefined) return [...first, ...rest];
    outage.take(next);
    first.push(next);
    rest = rest.filter((each) => each !== next);
  }
}

function plannedOf(
  record: wire.PoolRecord,
  { each: { name, host, wave, wanted }, blocker }: PlannedStart,
) {
  return {
    ...{ host: name, wave, blockedBecause: blocker?.text ?? '', fromImage: host.image },
    toImage: wanted?.image ?? '',
    askedAtGate: needsGate(record, isServing(host)),
    kind: host.state === HostState.PROVISIONED ? RunKind.REIMAGE : RunKind.PROVISION,
  };
}
