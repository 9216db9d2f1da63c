/**
 * Plans in the store: what was shown to a person, until it is started or forgotten.
 *
 * Invariants:
 * 1. A plan's content never changes under its hash; asked for again, only its life begins anew.
 * 2. A host has at most `plansPerHostMax` of them, and each ends by itself.
 */
import { clone, create, fromBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type HostName,
  type HostUid,
  type Plan,
  PlanSchema,
  store as wire,
} from '@rackwright/messages';
import type { Cancel, Clock, Log, Random } from '@rackwright/platform';
import { type StateStore, storeKey } from '@rackwright/store';
import type { DraftPlan } from '../host/index.ts';
import { answered, deleteRecord, msOf, readRecord, writeRecord } from '../records/index.ts';

/** How long a plan may be started. */
export const planLifeMs = 24 * 3_600_000;
/** Plans of one host; the oldest go first. */
export const plansPerHostMax = 8;
/** A plan that is asked for again after this much of its life gets a whole one. */
const renewAfterMs = 3_600_000;
const sweepIntervalMs = 3_600_000;

export interface PlanStore {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly random: Random;
}

/** Keeps a plan; answers it as drafted, with its name and its life. Throws `unavailable`. */
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
  // What would refuse it is true only now.
  const record = create(schema, { plan: { ...kept, refused: '' }, basis });
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

/** A plan of this very host; undefined when it is not kept (any more). Throws `unavailable`. */
export async function readPlan(
  { store }: Pick<PlanStore, 'store'>,
  hostUid: HostUid,
  hash: string,
): Promise<wire.PlanRecord | undefined> {
  const key = planKey(hostUid, hash);
  return (await readRecord(store, wire.PlanRecordSchema, key))?.record;
}

/** Whether it may be started no longer. */
export function isExpired({ plan }: wire.PlanRecord, nowMs: number): boolean {
  return (msOf(plan?.expireTime) ?? 0) <= nowMs;
}

/** Removes what has expired; answers how many. Throws `unavailable`. */
export async function sweepPlans(deps: PlanStore): Promise<number> {
  const { entries } = await answered(deps.store.list('plans'));
  const nowMs = deps.clock.nowMs();
  const over = entries.filter(({ value }) =>
    isExpired(fromBinary(wire.PlanRecordSchema, value), nowMs),
  );
  for (const { key, revision } of over) await deleteRecord(deps, key, revision);
  return over.length;
}

/** Sweeps at its start, and from time to time. */
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
  const { entries } = await answered(deps.store.list(storeKey('plans', hostUid)));
  const byAge = entries.toSorted((a, b) => b.revision - a.revision);
  for (const { key, revision } of byAge.slice(plansPerHostMax)) {
    await deleteRecord(deps, key, revision);
  }
}

function planKey(hostUid: HostUid, hash: string): string {
  return storeKey('plans', hostUid, hash);
}
