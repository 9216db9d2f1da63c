/**
 * Plans in the store: shown to a person, and kept until they are started or expire.
 *
 * Invariants:
 * 1. A plan's content never changes under its hash; a repeated request only renews its life.
 * 2. A host has at most `plansPerHostMax` plans, and each expires.
 */
import { clone, create, fromBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type HostName,
  HostRefusal,
  type HostUid,
  type Plan,
  PlanSchema,
  store as wire,
} from '@rackwright/messages';
import type { Cancel, Clock, Log, Random } from '@rackwright/platform';
import { type StateStore, storeKey } from '@rackwright/store';
import type { DraftPlan } from '../host/index.ts';
import { deleteRecord, msOf, orUnavailable, readRecord, writeRecord } from '../records/index.ts';

/** How long a plan may be started. */
export const planLifeMs = 24 * 3_600_000;
/** The most plans of one host; the oldest are removed first. */
export const plansPerHostMax = 8;
/** A plan that is requested again after this much of its life gets a full one. */
const renewAfterMs = 3_600_000;
const sweepIntervalMs = 3_600_000;

export interface PlanStore {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly random: Random;
}

/** Stores a plan; returns it as drafted, with its name and its life. Throws `unavailable`. */
export async function keepPlan(
  deps: PlanStore,
  hostName: HostName,
  { plan, basis }: DraftPlan,
): Promise<Plan> {
  const key = planKey(plan.hostUid, plan.hash);
  const schema = wire.PlanRecordSchema;
  const nowMs = deps.clock.nowMs();
  const before = await readRecord(deps.store, schema, key);
  const madeMs = msOf(before?.record.plan?.createTime);
  if (before !== undefined && madeMs !== undefined && nowMs - madeMs < renewAfterMs) {
    return named(plan, hostName, before.record.plan);
  }
  const life = {
    createTime: timestampFromMs(nowMs),
    expireTime: timestampFromMs(nowMs + planLifeMs),
  };
  const kept = named(plan, hostName, life);
  // The reason for a refusal is valid only now.
  const record = create(schema, {
    plan: { ...kept, refused: '', refusal: HostRefusal.UNSPECIFIED },
    basis,
  });
  await writeRecord(deps, schema, key, record, before?.revision ?? 'absent');
  await removeOldest(deps, plan.hostUid);
  return kept;
}

function named(
  plan: Plan,
  hostName: HostName,
  life: Pick<Plan, 'createTime' | 'expireTime'> | undefined,
): Plan {
  const answer = clone(PlanSchema, plan);
  answer.name = `${hostName}/plans/${plan.hash}`;
  if (life?.createTime !== undefined) answer.createTime = life.createTime;
  if (life?.expireTime !== undefined) answer.expireTime = life.expireTime;
  return answer;
}

/**
 * A plan of this particular host; undefined when it is not stored (any more). Throws `unavailable`.
 */
export async function readPlan(
  { store }: Pick<PlanStore, 'store'>,
  hostUid: HostUid,
  hash: string,
): Promise<wire.PlanRecord | undefined> {
  const key = planKey(hostUid, hash);
  return (await readRecord(store, wire.PlanRecordSchema, key))?.record;
}

/** Whether it may no longer be started. */
export function isExpired({ plan }: wire.PlanRecord, nowMs: number): boolean {
  return (msOf(plan?.expireTime) ?? 0) <= nowMs;
}

/** Removes expired plans; returns how many. Throws `unavailable`. */
export async function sweepPlans(deps: PlanStore): Promise<number> {
  const { entries } = await orUnavailable(deps.store.list('plans'));
  const nowMs = deps.clock.nowMs();
  const over = entries.filter(({ value }) =>
    isExpired(fromBinary(wire.PlanRecordSchema, value), nowMs),
  );
  for (const { key, revision } of over) await deleteRecord(deps, key, revision);
  return over.length;
}

/** Sweeps at its start, and at intervals. */
export class PlanSweeper {
  readonly #deps: PlanStore & { readonly log: Log };
  #cancel: Cancel | undefined;
  #stopped = false;

  constructor(deps: PlanStore & { readonly log: Log }) {
    this.#deps = deps;
  }

  start(): void {
    const { clock, log } = this.#deps;
    sweepPlans(this.#deps)
      .catch((error: unknown) => log.warn({}, 'plans were not swept', error))
      .finally(() => {
        if (!this.#stopped) this.#cancel = clock.after(sweepIntervalMs, () => this.start());
      });
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }
}

async function removeOldest(deps: PlanStore, hostUid: HostUid): Promise<void> {
  const { entries } = await orUnavailable(deps.store.list(storeKey('plans', hostUid)));
  const byAge = entries.toSorted((a, b) => b.revision - a.revision);
  for (const { key, revision } of byAge.slice(plansPerHostMax)) {
    await deleteRecord(deps, key, revision);
  }
}

function planKey(hostUid: HostUid, hash: string): string {
  return storeKey('plans', hostUid, hash);
}
