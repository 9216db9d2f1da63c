/**
 * The status of each host of a pool, and why it does not go now. Deciding, explaining and planning
 * all use this, so that explanations match the decisions. Pure.
 *
 * Invariants:
 * 1. There are never more slots than hosts that may be out. A host in service is taken only while
 *    fewer hosts than that are out, for any reason; the same bound applies within its rack. While
 *    the pool goes back from an image, hosts that are out without a slot are not counted.
 * 2. A host that is out already, or was never in service, costs nothing: it needs no window and no
 *    gate, and it goes first when it is broken. A host that is ill in another way is still in
 *    service (`seen.ts`).
 * 3. The first host of a target goes alone. A wave goes when the earlier waves are done: none of
 *    their hosts could still go, and at least one runs the image.
 * 4. The order follows from names and digest alone, equal on every replica and after a crash.
 */
import { toJson } from '@bufbuild/protobuf';
import { TimestampSchema, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type HostName,
  HostState,
  type HostUid,
  type RackName,
  type RolloutSlot,
  type store as wire,
} from '@rackwright/messages';
import { msOf } from '../../records/index.ts';
import { compare, orderKey } from '../facts/members.ts';
import type { HostStatusInPool, PoolWait, Survey, SurveyedHost } from '../facts/pool-status.ts';
import {
  isBroken,
  isHealthyOn,
  isMissed,
  isSelected,
  isServing,
  type Keeper,
  rescueText,
  type SeenHost,
  type ServiceProblem,
  stateName,
} from '../facts/seen.ts';
import { isPinned, targetOf, wantedBy } from '../facts/target.ts';
import { failureThreshold, unavailableMax } from '../policy/amounts.ts';
import { opening } from '../policy/windows.ts';
import { attemptsMany } from './failures.ts';
import { namesText } from './slot-text.ts';
import { emptyWaves, failedOn, manualStopOf, stopOf, stopOfPool, waveName } from './stops.ts';

/** The most hosts that are out at once, for any pool: their slots have to fit in its record. */
export const slotsMax = 100;

/** The survey of all hosts from the present record. */
export function survey(
  record: wire.PoolRecord,
  hosts: ReadonlyMap<HostUid, SeenHost>,
  nowMs: number,
): Survey {
  const { spec, status } = record.pool ?? {};
  const policy = spec?.rollout;
  const slots = status?.slots ?? [];
  const slotOf = new Map(slots.map((slot) => [slot.hostUid, slot]));
  const failureOf = new Map(record.failures.map((each) => [each.hostUid, each]));
  const surveyedHosts = record.members.flatMap((member) => {
    const host = hosts.get(member.hostUid);
    if (host === undefined) return [];
    return surveyHost(record, host, slotOf.get(host.uid), failureOf.get(host.uid), nowMs);
  });
  const target = targetOf(record);
  const threshold = failureThreshold(policy?.failureThreshold, record.members.length);
  const isBack = (status?.rolledBackFrom ?? '') !== '';
  const failed = failedOn(record, target, { isBack });
  const ofPool = surveyedHosts.filter((each) => !each.isPinned);
  const allowed = unavailableMax(policy?.maxUnavailable, record.members.length);
  const max = Math.min(allowed, slotsMax);
  const parts = { target, failed, threshold, isBack, max };
  const waits = isBack ? undefined : firstUndone(ofPool);
  return {
    ...{ target, surveyedHosts, slots, threshold, isBack, failedCount: failed.size },
    unavailableMax: max,
    perRackMax: policy?.maxUnavailablePerRack,
    stop: stopOfPool(record, surveyedHosts, parts),
    manualStop: manualStopOf(record, max),
    opening: opening(policy?.windows ?? [], nowMs),
    warnings: emptyWaves(record, surveyedHosts),
    currentWave: waits?.wave ?? Infinity,
    waveWaitsFor: waits === undefined ? '' : `${waits.name}${ofWave(record, waits)}`,
    isProven: isBack || ofPool.some(({ status }) => status === 'current'),
  };
}

function ofWave(record: wire.PoolRecord, { wave }: SurveyedHost): string {
  const { length } = record.pool?.spec?.rollout?.waves ?? [];
  return length === 0 ? '' : ` of ${waveName(record, wave)}`;
}

/**
 * A host that its wave waits for, of the first wave that is not done: one of its hosts could still
 * go, or none runs the image.
 */
function firstUndone(ofPool: readonly SurveyedHost[]): SurveyedHost | undefined {
  const waves = [...Map.groupBy(ofPool, ({ wave }) => wave)].toSorted(([a], [b]) => a - b);
  for (const [, hosts] of waves) {
    const open =
      hosts.find(({ status }) => status === 'kept') ??
      hosts.find(({ status }) => status !== 'current' && status !== 'failed');
    if (open !== undefined) return open;
    if (!hosts.some(({ status }) => status === 'current')) return hosts[0];
  }
  return undefined;
}

function surveyHost(
  record: wire.PoolRecord,
  host: SeenHost,
  slot: RolloutSlot | undefined,
  failure: wire.PoolFailure | undefined,
  nowMs: number,
): SurveyedHost {
  const wanted = wantedBy(record, host.name);
  const base = {
    ...{ name: host.name, host, wanted, slot, wave: waveOf(record, host) },
    isPinned: isPinned(record, host.name),
    order: orderKey(record.pool?.uid ?? '', host, wanted?.digest ?? ''),
  };
  const inStatus = (status: HostStatusInPool, why = '', untilMs?: number): SurveyedHost => {
    return { ...base, status, why, untilMs };
  };
  if (slot !== undefined) return inStatus('out', slot.message);
  if (host.claimedBy !== record.pool?.name) return inStatus('unclaimed', 'the pool claims it next');
  if (wanted === undefined) return inStatus('waiting');
  if (isHealthyOn(host, wanted.digest)) return inStatus('current');
  const ofImage = failure?.digest === wanted.digest ? failure : undefined;
  if (ofImage?.counted === true) return inStatus('failed', ofImage.message);
  const kept = whyKept(host, wanted.digest);
  if (kept !== undefined) return inStatus('kept', kept.text);
  const paused = ofImage === undefined ? undefined : pauseAfter(ofImage, nowMs);
  if (paused !== undefined) return inStatus(paused.status, paused.why, paused.untilMs);
  const mayGo = host.state === HostState.AVAILABLE || host.state === HostState.PROVISIONED;
  return mayGo ? inStatus('waiting') : inStatus('kept', `it is ${stateText(host)}`);
}

/** The pause after a failure that does not count against the image; undefined: it is over. */
function pauseAfter({ attempts, message, retryTime }: wire.PoolFailure, nowMs: number) {
  const untilMs = msOf(retryTime);
  if (untilMs === undefined || untilMs <= nowMs) return undefined;
  const status: HostStatusInPool = attempts < attemptsMany ? 'kept' : 'failed';
  return { status, why: `tried again after a pause: ${message}`, untilMs };
}

/** Why a host cannot get the image, apart from earlier failures. */
function whyKept(
  { digest, state, illness, keptBy }: SeenHost,
  wanted: string,
): Keeper | ServiceProblem | undefined {
  const runsIt = digest === wanted && state === HostState.PROVISIONED;
  if (!runsIt || illness === undefined) return keptBy;
  return { kind: illness.kind, text: `it runs the image, but: ${illness.text}` };
}

/** "manageable: its goal leads it to be available first": why a host cannot be written yet. */
export function stateText(host: SeenHost): string {
  const name = stateName(host);
  if (host.isInRescue) return `${name}, and ${rescueText(host.name)}`;
  if (host.waitsForReview) return `${name}; ${host.keptBy?.text}`;
  if (host.state !== HostState.MANAGEABLE) return name;
  return `${name}: ${host.goalStopped?.text ?? 'its goal leads it to be available first'}`;
}

/** The first wave that selects it; hosts without a wave come last. */
function waveOf({ pool }: wire.PoolRecord, host: SeenHost): number {
  const waves = pool?.spec?.rollout?.waves ?? [];
  const index = waves.findIndex(({ hosts }) => isSelected(hosts, host));
  return index === -1 ? waves.length : index;
}

const firstGoesAlone: PoolWait = {
  kind: 'first',
  text: 'the first host goes alone, and is not healthy on the image yet',
};

/** The hosts that are out, updated while slots are given one after the other. */
export class SlotCapacity {
  readonly #survey: Survey;
  #slots: number;
  #ofTarget: number;
  /** By uid. */
  readonly #out = new Map<HostUid, { readonly name: HostName; readonly rack: RackName }>();
  readonly #racks = new Map<RackName, number>();
  /** Computed once for all waiting hosts, by rack. */
  readonly #names = new Map<string, string>();

  constructor(surveyed: Survey) {
    this.#survey = surveyed;
    this.#slots = surveyed.slots.length;
    const { target } = surveyed;
    this.#ofTarget = surveyed.slots.filter(({ image }) => image === target?.image).length;
    for (const { host, slot } of surveyed.surveyedHosts) {
      if (slot !== undefined || (isMissed(host) && !surveyed.isBack)) this.#out.set(host.uid, host);
    }
    // The slot of a host that is no longer a member still counts.
    for (const { hostUid, host: name, rack } of surveyed.slots) {
      this.#out.set(hostUid, { name, rack });
    }
    for (const { rack } of this.#out.values()) this.#racks.set(rack, this.inRack(rack) + 1);
  }

  get count(): number {
    return this.#out.size;
  }

  inRack(rack: RackName): number {
    return this.#racks.get(rack) ?? 0;
  }

  /** The host has got a slot. */
  take({ host, wanted }: SurveyedHost): void {
    this.#slots += 1;
    if (wanted?.image === this.#survey.target?.image) this.#ofTarget += 1;
    if (this.#out.has(host.uid)) return;
    this.#out.set(host.uid, host);
    this.#names.clear();
    this.#racks.set(host.rack, this.inRack(host.rack) + 1);
  }

  /** Why a host that could go has to wait; undefined: it may go. */
  waitOf(surveyedHost: SurveyedHost): PoolWait | undefined {
    const { host, wave, wanted } = surveyedHost;
    const { target, perRackMax, isProven, currentWave } = this.#survey;
    const max = this.#survey.unavailableMax;
    const stop = stopOf(this.#survey, surveyedHost);
    if (stop !== undefined) return { kind: 'poolStopped', text: stop.text };
    const isOfTarget = wanted?.image === target?.image;
    if (isOfTarget && wave > currentWave) {
      return { kind: 'wave', text: `its wave waits for ${this.#survey.waveWaitsFor}` };
    }
    if (isOfTarget && !isProven && this.#ofTarget > 0) return firstGoesAlone;
    if (this.#slots >= max) return this.#noSlot(max);
    // A host that already counts as out, and may serve, has to wait for the others (`room.ts`).
    const isOut = this.#out.has(host.uid);
    const there = this.inRack(host.rack) - (isOut ? 1 : 0);
    if (perRackMax !== undefined && there >= perRackMax && (!isOut || isServing(host))) {
      const out = `${there} of ${perRackMax} out there`;
      const text = `waits for a slot in ${host.rack}: ${out}${this.#named(host.rack)}`;
      return { kind: 'rackSlot', text };
    }
    if (!isServing(host)) return undefined;
    const others = this.count - (isOut ? 1 : 0);
    if (others >= max) return this.#noSlot(max);
    const { isOpen, untilMs } = this.#survey.opening;
    if (isOpen) return undefined;
    const opens = untilMs === undefined ? '' : `, which opens at ${timeText(untilMs)}`;
    return { kind: 'window', text: `waits for a window${opens}` };
  }

  #noSlot(max: number): PoolWait {
    return { kind: 'slot', text: `waits for a slot: ${this.#taken(max)}` };
  }

  /** "2 of 2 out (hosts/h1, hosts/h2), oldest since …" */
  #taken(max: number): string {
    const times = this.#survey.slots.flatMap(({ takeTime }) => msOf(takeTime) ?? []);
    const oldest = times.length === 0 ? '' : `, oldest since ${timeText(Math.min(...times))}`;
    return `${this.count} of ${max} out${this.#named()}${oldest}`;
  }

  /** " (hosts/h1, hosts/h2)": the hosts that are out, in one rack or in total. */
  #named(rack = ''): string {
    const known = this.#names.get(rack);
    if (known !== undefined) return known;
    const out = [...this.#out.values()].filter((each) => rack === '' || each.rack === rack);
    const text = out.length === 0 ? '' : ` (${namesText(out)})`;
    this.#names.set(rack, text);
    return text;
  }
}

/** Hosts that could go, in their order. */
export function queueOf({ surveyedHosts }: Survey): SurveyedHost[] {
  return surveyedHosts.filter(({ status }) => status === 'waiting').toSorted(inOrder);
}

function inOrder(a: SurveyedHost, b: SurveyedHost): number {
  return rank(a) - rank(b) || a.wave - b.wave || compare(a.order, b.order);
}

/** Broken hosts go first, then those that may be: both count as out, and others wait for them. */
function rank({ host }: SurveyedHost): number {
  if (isBroken(host)) return 0;
  return isMissed(host) ? 1 : 2;
}

/** The next one to go: among equals one from the rack with the fewest hosts out. */
export function nextOf(
  queue: readonly SurveyedHost[],
  outage: SlotCapacity,
): SurveyedHost | undefined {
  const ready = queue.filter((each) => outage.waitOf(each) === undefined);
  const [first] = ready;
  if (first === undefined) return undefined;
  const alike = ready.filter((each) => rank(each) === rank(first) && each.wave === first.wave);
  return alike.reduce((best, each) => {
    return outage.inRack(each.host.rack) < outage.inRack(best.host.rack) ? each : best;
  }, first);
}

/** "2026-01-01T00:00:00Z" */
export function timeText(ms: number): string {
  return toJson(TimestampSchema, timestampFromMs(ms));
}

/** Whether all hosts are on the target, except those with an own reason or a failure. */
export function isSettled({ surveyedHosts, target, stop, isBack }: Survey): boolean {
  if (target === undefined || isBack || stop?.reason === 'halted') return false;
  const ofPool = surveyedHosts.filter((each) => !each.isPinned);
  const current = ofPool.filter(({ status }) => status === 'current').length;
  const rests = (status: HostStatusInPool) =>
    status === 'current' || status === 'failed' || status === 'kept';
  return ofPool.every(({ status }) => rests(status)) && current * 2 > ofPool.length;
}
