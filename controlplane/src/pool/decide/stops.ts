/**
 * What keeps a whole pool from beginning anything, and what stops its rollout. Pure.
 *
 * Invariants:
 * 1. Once reached, a halt is in the record: a change of the pool's hosts does not lift it. It is
 *    lifted by another target, by another size or deployment in the spec, and when a failed host
 *    recovers or a person has changed it.
 * 2. No wait is endless. A halt also follows, whatever the threshold, when as many hosts have
 *    failed as may be out, or all hosts of a wave that others wait for.
 * 3. While the pool goes back, only hosts that were ready before count.
 * 4. A pinned host counts for neither rollout nor threshold: only a person stops it.
 */
import { create } from '@bufbuild/protobuf';
import { counted, type HostUid, type RolloutTarget, store as wire } from '@rackwright/messages';
import { haltBasis } from '../facts/basis.ts';
import type { PoolStop, Survey, SurveyedHost } from '../facts/pool-status.ts';
import { isMissed } from '../facts/seen.ts';
import { isPinned } from '../facts/target.ts';

interface Parts {
  readonly target: RolloutTarget | undefined;
  readonly failed: ReadonlySet<HostUid>;
  readonly threshold: number;
  readonly isBack: boolean;
  readonly max: number;
}

/** Uids of the hosts that failed on the present target, as far as they count. */
export function failedOn(
  record: wire.PoolRecord,
  target: RolloutTarget | undefined,
  { isBack }: { readonly isBack: boolean },
): ReadonlySet<HostUid> {
  const notReady = new Set(record.members.flatMap((each) => (each.notReady ? each.hostUid : [])));
  const failures = record.failures.filter(({ counted, digest, host, hostUid }) => {
    if (!counted || digest !== target?.digest || isPinned(record, host)) return false;
    return !isBack || !notReady.has(hostUid);
  });
  return new Set(failures.map(({ hostUid }) => hostUid));
}

/** Why the pool begins nothing; undefined: it may. */
export function stopOfPool(
  record: wire.PoolRecord,
  surveyedHosts: readonly SurveyedHost[],
  parts: Parts,
): PoolStop | undefined {
  const byHand = manualStopOf(record, parts.max);
  return byHand?.reason === 'deleting'
    ? byHand
    : (whyStops(record, surveyedHosts, parts) ?? byHand);
}

/** A person's stop for all hosts, including pinned ones; undefined: none. */
export function manualStopOf(
  { deletion, pool }: wire.PoolRecord,
  unavailableMax: number,
): PoolStop | undefined {
  if (deletion !== undefined) {
    return { reason: 'deleting', text: `${deletion.by} asked for its deletion` };
  }
  if (pool?.spec?.rollout?.paused === true) return { reason: 'paused', text: 'it is paused' };
  if (unavailableMax === 0) return { reason: 'stopped', text: 'no host may be unavailable' };
  return undefined;
}

/** What stops one host of the pool, apart from its own reasons. */
export function stopOf(
  { stop, manualStop: byHand }: Pick<Survey, 'stop' | 'manualStop'>,
  { isPinned: isApart }: Pick<SurveyedHost, 'isPinned'>,
): PoolStop | undefined {
  return isApart ? byHand : stop;
}

/** What stops the rollout by itself. */
function whyStops(
  record: wire.PoolRecord,
  surveyedHosts: readonly SurveyedHost[],
  parts: Parts,
): PoolStop | undefined {
  const { spec } = record.pool ?? {};
  if (parts.target === undefined) {
    const why = record.resolveFailure?.message ?? 'it is being looked up';
    return { reason: 'noTarget', text: `${spec?.image || 'its image'} is not resolved: ${why}` };
  }
  const halt = whyHalts(record, surveyedHosts, parts) ?? haltInForce(record, parts.target);
  if (halt !== undefined) return { reason: 'halted', text: halt.text };
  const waves = spec?.rollout?.waves ?? [];
  if (waves.length > 0 && surveyedHosts.length > 0) {
    const isAnyIn = surveyedHosts.some(({ wave }) => wave < waves.length);
    if (!isAnyIn) return { reason: 'wavesEmpty', text: 'its waves select none of its hosts' };
  }
  return undefined;
}

/** Why a rollout halts: invariants 1 and 2. */
interface Halt {
  readonly kind: 'threshold' | 'allOut' | 'wave' | 'stored';
  /** For people. */
  readonly text: string;
}

function haltInForce(record: wire.PoolRecord, target: RolloutTarget): Halt | undefined {
  const { halt } = record;
  if (halt === undefined || halt.digest !== target.digest) return undefined;
  if (halt.basis !== haltBasis(record)) return undefined;
  return { kind: 'stored', text: halt.message };
}

/** Why the rollout halts now. */
function whyHalts(
  record: wire.PoolRecord,
  surveyedHosts: readonly SurveyedHost[],
  { target, failed, threshold, isBack, max }: Parts,
): Halt | undefined {
  const on = `failed on ${target?.image}`;
  if (failed.size >= threshold) {
    const stopped = `${threshold} ${threshold === 1 ? 'stops' : 'stop'} the rollout`;
    return { kind: 'threshold', text: `${counted(failed.size, 'host')} ${on}; ${stopped}` };
  }
  if (isBack) return undefined;
  const out = surveyedHosts.filter(({ host }) => failed.has(host.uid) && isMissed(host)).length;
  if (max > 0 && out >= max) {
    const are = out === 1 ? 'is' : 'are';
    const text = `${counted(out, 'host')} ${on} and ${are} out, as many as may be`;
    return { kind: 'allOut', text };
  }
  const ofPool = surveyedHosts.filter(({ isPinned: isApart }) => !isApart);
  const last = Math.max(...ofPool.map(({ wave }) => wave));
  const waves = Map.groupBy(ofPool, ({ wave }) => wave);
  const lost = [...waves].find(([wave, hosts]) => {
    return wave < last && hosts.every(({ host }) => failed.has(host.uid));
  });
  if (lost === undefined) return undefined;
  return { kind: 'wave', text: `all hosts of ${waveName(record, lost[0])} ${on}` };
}

/**
 * Empty waves, perhaps because of a wrong selector; not when no wave selects any host, which
 * stops the rollout (`whyStops`).
 */
export function emptyWaves(
  record: wire.PoolRecord,
  surveyedHosts: readonly SurveyedHost[],
): string[] {
  const waves = record.pool?.spec?.rollout?.waves ?? [];
  if (!surveyedHosts.some(({ wave }) => wave < waves.length)) return [];
  const ofPool = surveyedHosts.filter(({ name }) => !isPinned(record, name));
  const filled = new Set(ofPool.map(({ wave }) => wave));
  const empty = [...waves.keys()].filter((wave) => !filled.has(wave));
  return empty.map((wave) => `no host goes in ${waveName(record, wave)}`);
}

/** "wave canary" */
export function waveName({ pool }: wire.PoolRecord, wave: number): string {
  const named = pool?.spec?.rollout?.waves[wave]?.name ?? '';
  return `wave ${named === '' ? wave : named}`;
}

/** Invariant 1: stores the halt in `record`. */
export function noteHalt(
  record: wire.PoolRecord,
  target: RolloutTarget | undefined,
  stop: PoolStop | undefined,
): void {
  if (target === undefined || record.deletion !== undefined) return;
  if (stop?.reason !== 'halted') delete record.halt;
  else {
    const { digest } = target;
    record.halt = create(wire.PoolHaltSchema, {
      ...{ digest, basis: haltBasis(record), message: stop.text },
    });
  }
}
