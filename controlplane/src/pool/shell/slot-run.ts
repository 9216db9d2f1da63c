/**
 * Requests the run of a slot from its host, once, and reads its result.
 *
 * Invariant: however often it is requested, one slot gives its host one run. The host remembers the
 * request by the slot's number, and the run is recognized by its requester among the runs since the
 * slot.
 */
import { create } from '@bufbuild/protobuf';
import {
  type Actor,
  DeploySpecSchema,
  type HostId,
  type RolloutSlot,
  RolloutSlotState,
  type Run,
  RunKind,
  readActor,
  store as wire,
} from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { type StateStore, type StoreRevision, storeKey } from '@rackwright/store';
import type { HostRequest, Requester, RequestOutcome } from '../../host/index.ts';
import { idOf, readShared } from '../../records/index.ts';
import type { SlotNews } from '../facts/draft-types.ts';
import { isServing, rescueText, seenHost } from '../facts/seen.ts';
import { opening } from '../policy/windows.ts';

/** The host loop, as far as pools use it. */
export interface PoolHosts {
  request(
    hostId: HostId,
    request: HostRequest,
    by: Requester,
    expectedRevision?: StoreRevision,
  ): Promise<RequestOutcome>;
}

export interface KeptHost {
  readonly record: wire.HostRecord;
  readonly revision: StoreRevision;
}

interface SlotRunDependencies {
  readonly store: StateStore;
  readonly hosts: PoolHosts;
  readonly clock: Pick<Clock, 'nowMs'>;
}

/** The most runs of a host that are searched for the slot's. */
const runsMax = 64n;

/**
 * The present state of the slot's run; undefined: the host has just changed, read it again.
 * `notNow`: why no further request is sent, if none was sent yet.
 */
export async function newsOfSlot(
  deps: SlotRunDependencies,
  pool: wire.PoolRecord,
  slot: RolloutSlot,
  kept: KeptHost,
  notNow?: string,
): Promise<SlotNews | undefined> {
  const { GATE, PROVING, STARTING } = RolloutSlotState;
  const { name = '', uid = '', spec } = pool.pool ?? {};
  const actor = readActor(name);
  if (slot.state === GATE || slot.state === PROVING) return undefined;
  if (slot.state !== STARTING) return runNews(await readRun(deps, kept.record, slot.run));
  // The host forgets requests after a while, but not its runs.
  const begun = await firstRun(deps, kept.record, slot, actor);
  if (begun !== undefined) return runNews(begun);
  if (notNow !== undefined) return { kind: 'recalled' };
  // The rescue was requested after the slot was taken.
  if (kept.record.host?.status?.inRescue === true) {
    return { kind: 'refused', message: rescueText(slot.host) };
  }
  const outcome = await deps.hosts.request(
    idOf(slot.host),
    {
      kind: slot.kind === RunKind.REIMAGE ? 'reimage' : 'provision',
      image: slot.image,
      deploy: spec?.deploy ?? create(DeploySpecSchema),
      ...beginsBefore(deps, pool, kept),
    },
    { actor, requestId: `pool:${uid}/${slot.number}` },
    kept.revision,
  );
  switch (outcome.kind) {
    case 'accepted':
      return runNews(await firstRun(deps, outcome.record, slot, actor));
    case 'refused':
      if (outcome.code === 'aborted') return undefined;
      return { kind: 'refused', message: outcome.message };
    default:
      return undefined;
  }
}

/** The end of the open window, for a host in service: its image may arrive too late for it. */
function beginsBefore(
  { clock }: Pick<SlotRunDependencies, 'clock'>,
  { pool }: wire.PoolRecord,
  { record }: KeptHost,
): { readonly notAfterMs?: number } {
  const windows = pool?.spec?.rollout?.windows ?? [];
  const host = seenHost(record);
  if (windows.length === 0 || host === undefined || !isServing(host)) return {};
  const nowMs = clock.nowMs();
  const { isOpen, untilMs } = opening(windows, nowMs);
  if (!isOpen) return { notAfterMs: nowMs };
  return untilMs === undefined ? {} : { notAfterMs: untilMs };
}

function runNews(run: Run | undefined): SlotNews {
  if (run !== undefined) return { kind: 'run', run };
  return { kind: 'lost', message: 'what became of its run is not known any more' };
}

/** The run that the slot's request has started. */
async function firstRun(
  deps: SlotRunDependencies,
  record: wire.HostRecord,
  { runsBefore, kind }: RolloutSlot,
  pool: Actor,
): Promise<Run | undefined> {
  const last = record.runCount < runsBefore + runsMax ? record.runCount : runsBefore + runsMax;
  for (let number = runsBefore + 1n; number <= last; number++) {
    const run = await readRun(deps, record, number);
    if (run?.kind === kind && run.requestedBy === pool) return run;
  }
  return undefined;
}

async function readRun(
  { store }: SlotRunDependencies,
  { host, finishedRuns }: wire.HostRecord,
  number: bigint,
): Promise<Run | undefined> {
  const present = host?.status?.run;
  const here = [present, ...finishedRuns].find((run) => run?.number === number);
  if (here !== undefined) return here;
  const key = storeKey('runs', host?.uid ?? '', String(number));
  return (await readShared(store, wire.FinishedRunRecordSchema, key))?.record.run;
}
