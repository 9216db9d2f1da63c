/** Explains what a pool, or a host of one, waits for: from the same survey that decides. Pure. */
import { clone, create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  CauseSchema,
  type Explanation,
  ExplanationSchema,
  type HostId,
  type HostName,
  poolCondition,
  type RolloutSlot,
  RolloutSlotState,
  type store as wire,
} from '@rackwright/messages';
import { idOf, msOf } from '../../records/index.ts';
import { type GateWait, gateWait } from '../decide/approval.ts';
import { originOf } from '../decide/gate.ts';
import { stopOf } from '../decide/stops.ts';
import { queueOf, SlotCapacity, survey } from '../decide/survey.ts';
import type {
  HostStatusInPool,
  PoolStopReason,
  Survey,
  SurveyedHost,
} from '../facts/pool-status.ts';
import { isServing, type SeenHost } from '../facts/seen.ts';
import { digestInImage } from '../policy/image-name.ts';

/** The most lines of one kind; the rest are counted. */
const linesMax = 5;

/** What the pool waits for, since when, and what would release it. */
export function explainPool(
  record: wire.PoolRecord,
  hosts: readonly SeenHost[],
  contested: ReadonlyMap<HostName, string>,
  nowMs: number,
): Explanation {
  const surveyed = survey(record, new Map(hosts.map((host) => [host.uid, host])), nowMs);
  const { pool } = record;
  const name = pool?.name ?? '';
  const upToDate = poolCondition(pool?.status, 'UpToDate');
  const shown = create(ExplanationSchema, {
    subject: name,
    headline: upToDate?.message ?? 'it has not been looked at yet',
    causes: causesOf(surveyed, contested),
  });
  if (upToDate?.status !== true) {
    shown.blocker = blockerOf(record, surveyed);
    if (upToDate?.since !== undefined) shown.since = upToDate.since;
    shown.unblock = adviceOf(record, surveyed, contested);
  }
  const times = attemptTimes(record, surveyed);
  if (times.length > 0) shown.nextAttemptTime = timestampFromMs(Math.min(...times));
  return shown;
}

/** The times of retries, and the next opening while a host waits for it; not for stopped hosts. */
function attemptTimes(record: wire.PoolRecord, surveyed: Survey): number[] {
  const { opening } = surveyed;
  const free = surveyed.surveyedHosts.filter((each) => stopOf(surveyed, each) === undefined);
  const times = free.flatMap(({ untilMs }) => untilMs ?? []);
  const isAwaited = free.some(({ slot, status, host }) => {
    if (slot === undefined) return status === 'waiting' && isServing(host);
    return isAtGate(slot) && gateWait(record, slot, { isOpen: false }) === 'window';
  });
  if (!opening.isOpen && opening.untilMs !== undefined && isAwaited) times.push(opening.untilMs);
  return times;
}

function isAtGate({ state }: RolloutSlot): boolean {
  return state === RolloutSlotState.GATE;
}

interface Line {
  readonly text: string;
  readonly since?: wire.PoolFailure['time'];
}

/** Problems go first: in a large rollout the hosts that are out matter less. */
function causesOf(surveyed: Survey, contested: ReadonlyMap<HostName, string>) {
  const { surveyedHosts, slots, stop } = surveyed;
  const outage = new SlotCapacity(surveyed);
  const [next] = queueOf(surveyed);
  const linesOf = (status: HostStatusInPool) =>
    surveyedHosts
      .filter((each) => each.status === status)
      .map(({ name, why }): Line => ({ text: `${name}: ${why}` }));
  const taken = [...contested].map(([host, why]): Line => ({ text: `${host} is ${why}` }));
  const lines: Line[] = [
    ...(stop === undefined ? [] : [{ text: stop.text }]),
    ...few(linesOf('failed'), 'that failed'),
    ...few(linesOf('kept'), 'that something keeps'),
    ...few(taken, 'that it does not get'),
    ...slotLines(slots),
  ];
  // The hold of the whole pool is already listed.
  if (next !== undefined && (stop === undefined || stopOf(surveyed, next) !== stop)) {
    lines.push({ text: `${next.name} ${outage.waitOf(next)?.text ?? 'goes next'}` });
  }
  return lines.map((line) => causeOf(line));
}

function few(lines: readonly Line[], which: string): Line[] {
  const more = lines.length - linesMax;
  const shown = lines.slice(0, linesMax);
  return more > 0 ? [...shown, { text: `and ${more} more ${which}` }] : shown;
}

/** As counts, where there are many, with the one that has been out for longest. */
function slotLines(slots: readonly RolloutSlot[]): Line[] {
  const lineOf = (slot: RolloutSlot): Line => ({
    text: `${slotText(slot)}${slot.message === '' ? '' : `: ${slot.message}`}`,
    ...(slot.takeTime === undefined ? {} : { since: slot.takeTime }),
  });
  if (slots.length <= linesMax) return slots.map(lineOf);
  const counts = slotStates.flatMap(([state, text]) => {
    const count = slots.filter((slot) => slot.state === state).length;
    return count === 0 ? [] : `${count} ${text}`;
  });
  const oldest = slots.toSorted((a, b) => (msOf(a.takeTime) ?? 0) - (msOf(b.takeTime) ?? 0))[0];
  const text = `of ${slots.length} slots ${counts.join(', ')}; the oldest:`;
  return [{ text }, ...(oldest === undefined ? [] : [lineOf(oldest)])];
}

const slotStates: readonly (readonly [RolloutSlotState, string])[] = [
  [RolloutSlotState.GATE, 'at the gate'],
  [RolloutSlotState.STARTING, 'about to begin'],
  [RolloutSlotState.RUNNING, 'at work'],
  [RolloutSlotState.PROVING, 'written, and proving that they run'],
];

function slotText(slot: RolloutSlot): string {
  return `${slot.host} ${isAtGate(slot) ? 'is at the gate' : 'is out'} for ${slot.image}`;
}

function causeOf({ text, since }: Line) {
  return create(CauseSchema, since === undefined ? { text } : { text, since });
}

/** What an inactive pool waits for, as the end of a sentence with "waits for". */
const stopBlockers: Readonly<Record<PoolStopReason, string>> = {
  deleting: 'the end of its deletion',
  paused: 'a person to resume it',
  stopped: 'a person to let hosts be out',
  noTarget: 'its image to be resolved',
  halted: 'another image, or a failed host to be well again',
  wavesEmpty: 'waves that select some of its hosts',
};

function blockerOf(record: wire.PoolRecord, surveyed: Survey): string {
  const { stop, slots, opening, surveyedHosts } = surveyed;
  if (stop !== undefined) return stopBlockers[stop.reason];
  const atGate = slots.filter(isAtGate);
  const waiting = (wait: GateWait) =>
    atGate.find((slot) => gateWait(record, slot, { isOpen: opening.isOpen }) === wait);
  const others = waiting('others');
  if (waiting('approval') !== undefined) return 'an approval';
  if (others !== undefined) return others.message.replace('waits for ', '');
  if (waiting('webhook') !== undefined) return `the webhook at ${originOf(gateUrlOf(record))}`;
  if (waiting('window') !== undefined) return 'its window';
  if (slots.length > 0) return `${slots.length} of its hosts that are out`;
  if (surveyedHosts.length === 0) return 'hosts that it may hold';
  return opening.isOpen ? surveyed.waveWaitsFor || 'its hosts' : 'its window';
}

/** What releases the slots at the gate. */
function gateAdvice(
  record: wire.PoolRecord,
  atGate: readonly RolloutSlot[],
  { isStopped, isOpen }: { readonly isStopped: boolean; readonly isOpen: boolean },
): string[] {
  const id = idOf(record.pool?.name);
  const waits = atGate.map((slot) => gateWait(record, slot, { isOpen }));
  const unapproved = atGate.filter((_, index) => waits[index] === 'approval');
  const digests = [...new Set(unapproved.map(({ image }) => digestInImage(image)))];
  const advice = digests.map((digest) => `approve them: rackwright pool approve ${id} ${digest}`);
  if (!isStopped && waits.includes('webhook')) {
    const receiver = originOf(gateUrlOf(record));
    const instead = `ask nobody: rackwright pool update ${id} --gate none`;
    advice.push(`see what ${receiver} wants, or ${instead}`);
  }
  return advice;
}

/** What a person can do, by the cause. */
function adviceOf(
  record: wire.PoolRecord,
  { stop, slots, surveyedHosts, opening, target }: Survey,
  contested: ReadonlyMap<HostName, string>,
): string[] {
  const { pool, resolveFailure } = record;
  const id = idOf(pool?.name);
  const failed = surveyedHosts.find(({ status }) => status === 'failed');
  const kept = surveyedHosts.find(({ status }) => status === 'kept');
  const { isOpen } = opening;
  const advice: string[] = [];
  if (stop?.reason === 'paused') advice.push(`let it go on: rackwright pool resume ${id}`);
  if (stop?.reason === 'halted' || failed !== undefined) {
    advice.push(`give it another image: rackwright pool update ${id} --image IMAGE`);
  }
  if (failed !== undefined) {
    const host = hostIdOf(failed);
    advice.push(`once what made it fail is mended, try it again: rackwright host retry ${host}`);
  }
  if (stop?.reason === 'stopped') {
    advice.push(`let hosts be out: rackwright pool update ${id} --max-unavailable 1`);
  }
  if (resolveFailure !== undefined || target === undefined) {
    advice.push(
      'see that the registry answers and has the image, or name a digest: ' +
        `rackwright pool update ${id} --image IMAGE`,
    );
  }
  advice.push(
    ...gateAdvice(record, slots.filter(isAtGate), { isStopped: stop !== undefined, isOpen }),
  );
  const named = failed ?? kept ?? slots.find((slot) => !isAtGate(slot));
  if (named !== undefined) advice.push(`see the host: rackwright host explain ${hostIdOf(named)}`);
  if (!isOpen) advice.push('wait for its window, or change its windows');
  if (contested.size > 0) advice.push(`see who has its hosts: rackwright pool hosts ${id}`);
  if (surveyedHosts.length === 0 && contested.size === 0) {
    advice.push('let its selector mean hosts that are available, or provisioned and unclaimed');
  }
  return advice;
}

function gateUrlOf({ pool }: wire.PoolRecord): string {
  return pool?.spec?.rollout?.gate?.webhookUrl ?? '';
}

function hostIdOf(named: { readonly name: HostName } | { readonly host: HostName }): HostId {
  return idOf('name' in named ? named.name : named.host);
}

/** A host's own explanation, with the part about its pool. */
export function withPool(
  explanation: Explanation,
  record: wire.PoolRecord,
  hosts: readonly SeenHost[],
  nowMs: number,
): Explanation {
  const surveyed = survey(record, new Map(hosts.map((host) => [host.uid, host])), nowMs);
  const surveyedHost = surveyed.surveyedHosts.find(({ name }) => name === explanation.subject);
  if (surveyedHost === undefined || surveyedHost.status === 'current') return explanation;
  const shown = clone(ExplanationSchema, explanation);
  const pool = record.pool?.name ?? '';
  const text = textOf(surveyedHost, new SlotCapacity(surveyed));
  shown.causes.push(causeOf({ text: `${pool}: ${text}`, since: surveyedHost.slot?.takeTime }));
  // The host's other blockers still apply.
  if (shown.blocker !== '') return shown;
  shown.blocker = `a free slot in ${pool}`;
  shown.unblock.push(`see what it waits for: rackwright pool explain ${idOf(pool)}`);
  return shown;
}

function textOf(surveyedHost: SurveyedHost, outage: SlotCapacity): string {
  const { status, why, wanted, slot } = surveyedHost;
  if (slot !== undefined) return `it has a slot for ${slot.image}${why === '' ? '' : `: ${why}`}`;
  if (status !== 'waiting') return why;
  const waits = outage.waitOf(surveyedHost)?.text ?? 'it goes next';
  return `it ${wanted === undefined ? '' : `shall run ${wanted.image}, and `}${waits}`;
}
