/**
 * The conditions of a pool as a whole. Pure.
 *
 * Invariant: each condition is complete before it is compared, so that its time changes only when
 * its status or reason does.
 */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  counted,
  failureWord,
  type HostName,
  HostState,
  isPoolBecause,
  type PoolCondition,
  PoolConditionSchema,
  type PoolConditionType,
  type PoolReasons,
  poolCondition,
  type RolloutSlot,
  RolloutSlotState,
  verbFor,
  type store as wire,
} from '@rackwright/messages';
import type { Membership } from '../facts/members.ts';
import type { PoolWait, Survey, SurveyedHost } from '../facts/pool-status.ts';
import { runUnderWay, type SeenHost } from '../facts/seen.ts';
import { type GateWait, gateWait } from './approval.ts';
import { queueOf, SlotCapacity, stateText } from './survey.ts';

/** The most hosts that a text names; the rest are counted. */
const hostsNamedMax = 3;

interface Verdict<T extends PoolConditionType = PoolConditionType> {
  readonly status: boolean;
  readonly reason: PoolReasons[T];
  readonly message: string;
}

type UpToDate = PoolReasons['UpToDate'];

/** The present conditions, with the times of the unchanged ones. */
export function conditionsOf(
  record: wire.PoolRecord,
  surveyed: Survey,
  { contested, unready }: Pick<Membership, 'contested' | 'unready'>,
  nowMs: number,
): PoolCondition[] {
  const verdicts: readonly (readonly [PoolConditionType, Verdict])[] = [
    ['Resolved', resolved(record, surveyed)],
    ['UpToDate', warned(upToDate(record, surveyed, unready), surveyed)],
    ['Degraded', degraded(record, surveyed, contested)],
  ];
  const before = record.pool?.status;
  return verdicts.map(([type, { status, reason, message }]) => {
    const last = poolCondition(before, type);
    const isSame = last?.status === status && isPoolBecause(before, type, reason);
    const since = (isSame ? last?.since : undefined) ?? timestampFromMs(nowMs);
    return create(PoolConditionSchema, { type, status, reason, message, since });
  });
}

function resolved(
  { resolveFailure, pool }: wire.PoolRecord,
  { target }: Survey,
): Verdict<'Resolved'> {
  if (resolveFailure !== undefined) {
    const { type, message } = resolveFailure;
    return {
      status: false,
      reason: 'ResolutionFailed',
      message: `${failureWord(type)}: ${message}`,
    };
  }
  if (target !== undefined) return { status: true, reason: 'Resolved', message: target.image };
  const message = `${pool?.spec?.image} has not been looked up yet`;
  return { status: false, reason: 'Unresolved', message };
}

function warned(verdict: Verdict<'UpToDate'>, { warnings }: Survey): Verdict<'UpToDate'> {
  return { ...verdict, message: [verdict.message, ...warnings].join('; ') };
}

function upToDate(
  record: wire.PoolRecord,
  surveyed: Survey,
  unready: readonly SeenHost[],
): Verdict<'UpToDate'> {
  const { surveyedHosts, stop, opening } = surveyed;
  const no = (reason: UpToDate, message: string) => ({ status: false, reason, message });
  if (surveyedHosts.length === 0) return no('NoHosts', noHosts(unready));
  const current = surveyedHosts.filter(({ status }) => status === 'current').length;
  const count = onTheirImage(current, surveyedHosts.length);
  if (current === surveyedHosts.length)
    return { status: true, reason: 'AllUpdated', message: count };
  if (stop !== undefined) return no(capital(stop.reason), `${count}; ${stop.text}`);
  const { slots } = surveyed;
  if (slots.length === 0) {
    const { reason, text } = whyNobody(surveyed);
    return no(reason, text === '' ? count : `${count}; ${text}`);
  }
  const atGate = slots.filter(({ state }) => state === RolloutSlotState.GATE);
  if (atGate.length > 0 && atGate.length === slots.length) {
    const waits = atGate.map((slot) => gateWait(record, slot, { isOpen: opening.isOpen }));
    const found = gateVerdicts.find(({ wait }) => waits.includes(wait));
    if (found?.wait === 'others') {
      // The awaited hosts have no slot, so none of these slots brings them back.
      const slot = atGate[waits.indexOf('others')];
      return no(found.reason, `${count}; ${slot?.host}: ${slot?.message}`);
    }
    if (found !== undefined) {
      const waiting = waits.filter((wait) => wait === found.wait).length;
      const verb = waiting === 1 ? 'waits' : 'wait';
      return no(found.reason, `${count}; ${waiting} ${verb} for ${found.text}`);
    }
  }
  return no('RolloutInProgress', count);
}

/** Why no host is out, although not all are on their image. */
function whyNobody(surveyed: Survey): { readonly reason: UpToDate; readonly text: string } {
  const { surveyedHosts } = surveyed;
  const outage = new SlotCapacity(surveyed);
  const waits = queueOf(surveyed).map((each) => ({ ...each, wait: outage.waitOf(each) }));
  // Taken or claimed next, by another reconcile.
  const goes = waits.some(({ wait }) => wait === undefined);
  if (goes || surveyedHosts.some(({ status }) => status === 'unclaimed')) {
    return { reason: 'RolloutInProgress', text: '' };
  }
  // A host that waits for a window waits for nothing else.
  if (waits.some(({ wait }) => wait !== undefined && isForWindow(wait))) {
    return { reason: 'WaitingForWindow', text: '' };
  }
  const [first] = waits;
  if (first?.wait !== undefined) {
    return { reason: 'Waiting', text: `${first.name}: ${first.wait.text}` };
  }
  const still = surveyedHosts.filter(({ status }) => status === 'kept' || status === 'failed');
  return { reason: 'Waiting', text: namedWhy(still) };
}

function isForWindow({ kind }: PoolWait): boolean {
  switch (kind) {
    case 'window':
      return true;
    case 'poolStopped':
    case 'wave':
    case 'first':
    case 'slot':
    case 'rackSlot':
      return false;
  }
}

/** The first few with their reasons; the rest are counted. */
function namedWhy(surveyedHosts: readonly Pick<SurveyedHost, 'name' | 'why'>[]): string {
  const texts = surveyedHosts.slice(0, hostsNamedMax).map(({ name, why }) => `${name}: ${why}`);
  if (surveyedHosts.length > texts.length) texts.push(`${surveyedHosts.length} in all`);
  return texts.join('; ');
}

/**
 * Kept by a reason that does not end by itself; a pause, a run and the clean before the image do.
 */
function isKept({ status, host, untilMs, slot }: SurveyedHost): boolean {
  const isUnderWay = slot !== undefined && slot.state !== RolloutSlotState.GATE;
  if (isUnderWay && host.brake !== undefined) return true;
  const { state, goalStopped, keptBy } = host;
  const isLed = state === HostState.MANAGEABLE && goalStopped === undefined && keptBy === undefined;
  return status === 'kept' && untilMs === undefined && runUnderWay(host) === undefined && !isLed;
}

function noHosts(unready: readonly SeenHost[]): string {
  if (unready.length === 0) return 'it holds no host';
  const named = unready.slice(0, hostsNamedMax);
  const texts = named.map((host) => `${host.name} is ${stateText(host)}`);
  const more = unready.length > named.length ? `; ${unready.length} in all` : '';
  return `it holds no host; what it selects is not ready: ${texts.join('; ')}${more}`;
}

/** The first that matches is shown. */
const gateVerdicts: readonly {
  readonly wait: GateWait;
  readonly reason: UpToDate;
  readonly text?: string;
}[] = [
  { wait: 'others', reason: 'Waiting' },
  { wait: 'approval', reason: 'WaitingForApproval', text: 'an approval' },
  { wait: 'webhook', reason: 'WaitingForWebhook', text: 'the gate’s webhook' },
  { wait: 'window', reason: 'WaitingForWindow', text: 'a window' },
];

function onTheirImage(current: number, all: number): string {
  if (all === 1) return `its only host is ${current === 1 ? '' : 'not '}on its image`;
  return `${current} of ${all} hosts ${verbFor(current)} on their image`;
}

/** Names the worst problem. */
function degraded(
  record: wire.PoolRecord,
  surveyed: Survey,
  contested: ReadonlyMap<HostName, string>,
): Verdict<'Degraded'> {
  const { resolveFailure, pool } = record;
  const yes = (reason: PoolReasons['Degraded'], message: string) => {
    return { status: true, reason, message };
  };
  const { stop, surveyedHosts, failedCount } = surveyed;
  if (resolveFailure !== undefined) return yes('ResolutionFailed', resolveFailure.message);
  if (stop?.reason === 'wavesEmpty') return yes('WavesEmpty', stop.text);
  const failed = surveyedHosts.filter(({ status }) => status === 'failed');
  const whose = namedWhy(failed);
  if (stop?.reason === 'halted') {
    const parts = [stop.text, ...(whose === '' ? [] : [whose]), ...whyNotBack(record)];
    return yes('RolloutHalted', parts.join('; '));
  }
  const back = pool?.status?.rolledBackFrom ?? '';
  if (back !== '') return yes('RolledBack', `hosts failed on ${back}; it went back from it`);
  if (contested.size > 0) {
    const named = [...contested].slice(0, hostsNamedMax).map(([host, why]) => `${host} is ${why}`);
    const more = contested.size > named.length ? `; ${contested.size} in all` : '';
    return yes('HostConflict', `${named.join('; ')}${more}`);
  }
  if (failed.length > 0) return yes('HostFailed', whose);
  const kept = surveyedHosts
    .filter(isKept)
    .map((each) =>
      each.slot === undefined ? each : { ...each, why: each.host.brake?.text ?? '' },
    );
  if (kept.length > 0) return yes('HostKept', namedWhy(kept));
  const failures = `${counted(failedCount, 'host')} failed`;
  // A failure before the host is touched does not count, and is retried.
  const tried = namedWhy(surveyedHosts.filter(({ untilMs }) => untilMs !== undefined));
  const message = tried === '' ? failures : `${failures}; ${tried}`;
  return { status: false, reason: 'Healthy', message };
}

/** Why a pool that should go back has not. */
function whyNotBack({ pool, previousTarget }: wire.PoolRecord): string[] {
  const { spec, status } = pool ?? {};
  const isWanted = spec?.rollout?.rollback === true && status?.rolledBackFrom === '';
  if (
    !isWanted ||
    (previousTarget !== undefined && previousTarget.digest !== status.target?.digest)
  )
    return [];
  return ['it cannot go back: it was led to no other image as a whole'];
}

function capital<T extends string>(text: T): Capitalize<T> {
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}` as Capitalize<T>;
}

/** How many hosts are out of service, for any reason; those at the gate are not. */
export function unavailableCount(surveyed: Survey): number {
  const isOut = (slot: RolloutSlot) => slot.state !== RolloutSlotState.GATE;
  const surveyedHosts = surveyed.surveyedHosts.map((each) =>
    each.slot === undefined || isOut(each.slot) ? each : { ...each, slot: undefined },
  );
  return new SlotCapacity({
    ...surveyed,
    surveyedHosts,
    slots: surveyed.slots.filter(isOut),
    isBack: false,
  }).count;
}
