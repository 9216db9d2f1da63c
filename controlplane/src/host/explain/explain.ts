/**
 * Explains a host from the same record and context by which the state machine decides: what it
 * waits for, since when, what happens next, and what a person can do. Pure.
 *
 * Invariant: each line of `unblock` names a command or an action that makes the host progress.
 */
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  BootStepKind,
  CauseSchema,
  disksNamedBy,
  type Explanation,
  ExplanationSchema,
  FailureType,
  failureNameOf,
  failureWord,
  HostGoal,
  HostState,
  type HostStatus,
  hostWaitOf,
  isGivenUp,
  type Progress,
  type Run,
  RunPhase,
  type RunStep,
  type store,
} from '@rackwright/messages';
import { idOf } from '../../records/index.ts';
import { diskKnownElsewhere, disksElsewhere, isSameDisk } from '../erasure/elsewhere.ts';
import { noUsualTimes, type UsualTimes } from '../fleet/usual.ts';
import { hasNoAgent } from '../life/restored.ts';
import { operationParts } from '../operation/operation.ts';
import { displayOf } from '../pass/display.ts';
import { activeRun, currentStep, runName, waitsForOthers } from '../pass/pass.ts';
import type { HostSnapshot } from '../pass/types.ts';
import { adviceDuringRun, adviceFor } from './advice.ts';
import { explainRestored, explainReviewFirst, explainRunOfRestored } from './brakes.ts';
import {
  explainFence,
  explainForced,
  explainKeptDeletion,
  explainNewer,
  explainNotSwitched,
  explainReviewedDeletion,
  needsWork,
  withForce,
} from './deletion.ts';
import { explainDeployment } from './deployment.ts';
import type { ExplanationDraft } from './explanation-draft.ts';
import { abortCauses, pauseEnd, stayOf } from './person.ts';
import { explainBmcDuringRun, explainPower } from './power.ts';
import { faultsAround, rackFaultAdvice } from './rack-faults.ts';
import { nameOf } from './run.ts';
import { explainShutdown, shutdownCause } from './shutdown.ts';
import { explainHold, explainRest, explainUse } from './use.ts';
import { explainWaiting } from './waiting.ts';

/** Data besides the record and its context. */
interface ExplanationDetails {
  readonly usual?: UsualTimes;
  /** The progress of the present step, from its runner's last report. */
  readonly progress?: Progress | undefined;
}

/** An `undefined` field of the result does not apply. */
export function explainHost(
  record: store.HostRecord,
  snapshot: HostSnapshot,
  { usual = noUsualTimes, progress }: ExplanationDetails = {},
): Explanation {
  const seen = withRackFaults(record, snapshot, explainRecord(record, snapshot, progress));
  const draft = withDisksElsewhere(record, seen);
  const run = record.host?.status === undefined ? undefined : activeRun(record.host.status);
  const usualMs = run === undefined ? undefined : usual.runMs(run);
  return create(ExplanationSchema, {
    subject: record.host?.name ?? '',
    headline: draft.headline,
    causes: (draft.causes ?? []).map(({ text, since }) =>
      create(CauseSchema, since === undefined ? { text } : { text, since }),
    ),
    blocker: draft.blocker ?? '',
    ...(draft.since === undefined ? {} : { since: draft.since }),
    ...(draft.nextAttemptTime === undefined ? {} : { nextAttemptTime: draft.nextAttemptTime }),
    ...(draft.deadline === undefined ? {} : { deadline: draft.deadline }),
    unblock: [...(draft.unblock ?? [])],
    lastEvidence: lastEvidence(record, progress),
    ...(usualMs === undefined ? {} : { usualDuration: durationFromMs(usualMs) }),
    lastScreen: lastScreen(record, snapshot),
  });
}

/** What the host waits for, and its headline, in the explanation's words. */
export function waitOf(
  record: store.HostRecord,
  snapshot: HostSnapshot,
): Pick<Explanation, 'headline' | 'blocker'> {
  const { headline, blocker = '' } = explainRecord(record, snapshot, undefined);
  return { headline, blocker };
}

/** The screen of the last boot, while the host cannot boot; a new boot has its own. */
function lastScreen({ host }: store.HostRecord, { facts }: HostSnapshot): string[] {
  const [last] = facts.boots;
  if (host?.status === undefined || last === undefined || !isKeptFromBoot(host.status)) return [];
  const run = activeRun(host.status);
  const isOfRun = operationParts(host.uid, last.operationId)?.runNumber === run?.number;
  if (hostWaitOf(run?.waiting) === 'runner' && !isOfRun) return [];
  return last.missing === BootStepKind.UNSPECIFIED ? [] : [...last.lastScreen];
}

/** A fault of the rack's network is named where it keeps the host from its boot. */
function withRackFaults(
  record: store.HostRecord,
  snapshot: HostSnapshot,
  draft: ExplanationDraft,
): ExplanationDraft {
  const { spec, status, name = '' } = record.host ?? {};
  const { rackFaults = [] } = snapshot;
  if (rackFaults.length === 0 || status === undefined || !isKeptFromBoot(status)) return draft;
  const around = faultsAround(rackFaults, name, spec?.bootMacs ?? []);
  const texts = around.map(({ message, since }) => ({ text: message, since }));
  const advice = around.flatMap((fault) => rackFaultAdvice(fault, spec?.rack ?? ''));
  return {
    ...draft,
    causes: [...(draft.causes ?? []), ...texts],
    unblock: [...new Set([...(draft.unblock ?? []), ...advice])],
  };
}

/** It waits for its runner, or its last boot stopped. */
function isKeptFromBoot(status: HostStatus): boolean {
  const isStalled = status.lastError?.failure?.details?.kind.case === 'bootStalled';
  return isStalled || hostWaitOf(activeRun(status)?.waiting) === 'runner';
}

/** A disk that another host has is always named, in addition to the rest. */
function withDisksElsewhere(record: store.HostRecord, draft: ExplanationDraft): ExplanationDraft {
  const named = (draft.causes ?? []).flatMap(({ disks = [] }) => disks);
  const problems = disksElsewhere(record).filter(
    ({ disk }) => !named.some((each) => isSameDisk(each, disk)),
  );
  if (problems.length === 0) return draft;
  const status = record.host?.status;
  const isFree = status === undefined || activeRun(status) === undefined;
  const adviceOf = isFree ? adviceFor : adviceDuringRun;
  const unblock = adviceOf(diskKnownElsewhere, record);
  return {
    ...draft,
    causes: [...(draft.causes ?? []), ...problems.map(({ text }) => ({ text }))],
    unblock: [...new Set([...(draft.unblock ?? []), ...unblock])],
  };
}

function explainRecord(
  record: store.HostRecord,
  snapshot: HostSnapshot,
  progress: Progress | undefined,
): ExplanationDraft {
  const status = record.host?.status;
  if (status === undefined) return { headline: 'the record has no status' };
  const newer = explainNewer(record);
  if (newer !== undefined) return newer;
  const run = activeRun(status);
  if (run !== undefined) {
    const draft = {
      ...explainRunUnderWay(record, run, snapshot, progress),
      ...explainForced(record, run),
      ...explainRunOfRestored(record, snapshot),
    };
    return run.waiting === undefined ? draft : withForce(record, draft);
  }
  if (status.deletion !== undefined) {
    const lack = needsWork(record, record.host?.spec)
      ? explainMissing(record, snapshot)
      : undefined;
    const kept =
      explainReviewedDeletion(record) ??
      explainKeptDeletion(record) ??
      explainNotSwitched(record, snapshot);
    return kept ?? withForce(record, lack ?? explainGoal(record, snapshot));
  }
  const held = explainFence(record) ?? explainRestored(record, snapshot) ?? explainHold(record);
  return held ?? explainMissing(record, snapshot) ?? explainGoal(record, snapshot);
}

/** "clean 3, step power.off (2 of 9)" */
function positionIn(run: Run, step: RunStep | undefined): string {
  const position = `${run.currentStep + 1} of ${run.steps.length}`;
  return `${runName(run)}, step ${step === undefined ? 'end' : nameOf(step)} (${position})`;
}

function explainRunUnderWay(
  record: store.HostRecord,
  run: Run,
  snapshot: HostSnapshot,
  progress: Progress | undefined,
): ExplanationDraft {
  const { host } = record;
  const step = currentStep(run);
  const display = host?.status === undefined ? '' : displayOf(host.status);
  const headline = `${display}: ${positionIn(run, step)}`;
  if (run.phase !== RunPhase.WAITING || run.waiting === undefined) {
    const { startTime: since, deadline } = step ?? {};
    return { headline, since, deadline, ...explainStepUnderWay(record, run, step, progress) };
  }
  const { message, since } = run.waiting;
  const waits = explainWaiting(record, run, snapshot);
  return {
    headline,
    causes: [
      ...(waits?.causes ?? [{ text: message, since }]),
      ...shutdownCause(record, step),
      ...positionLines(run, progress),
    ],
    blocker: waits?.blocker ?? '',
    since,
    nextAttemptTime:
      waits?.braked === undefined ? againTime(record, step) : waits.braked.nextAttemptTime,
    deadline: step?.deadline ?? (waitsForOthers(run) ? undefined : run.deadline),
    unblock: waits?.unblock ?? [],
  };
}

/** What delays a step that has been ordered. */
function explainStepUnderWay(
  record: store.HostRecord,
  run: Run,
  step: RunStep | undefined,
  progress: Progress | undefined,
): Partial<ExplanationDraft> {
  const ofAbort = abortCauses(run, step);
  if (ofAbort.length > 0) return { causes: ofAbort, blocker: 'the step under way' };
  const ofStep =
    explainShutdown(record, run, step) ?? explainDeployment(record, run, step, progress);
  return { ...(explainBmcDuringRun(record) ?? explainLastFailure(record)), ...ofStep };
}

/** The time of the next retry, if the run waits for one. */
function againTime({ operation, call }: store.HostRecord, step: RunStep | undefined) {
  return operation?.notBefore ?? call?.notBefore ?? pauseEnd(step);
}

/** Its position in the agent's queue, by the agent's last report. */
function positionLines(
  { waiting }: Run,
  progress: Progress | undefined,
): { readonly text: string }[] {
  if (hostWaitOf(waiting) !== 'image' || progress === undefined) return [];
  return [{ text: progress.text }];
}

/** A run that retries failed work: the failure stays until the run succeeds. */
function explainLastFailure(record: store.HostRecord): Partial<ExplanationDraft> {
  const { lastError } = record.host?.status ?? {};
  if (lastError?.failure === undefined) return {};
  const possible = adviceDuringRun(failureNameOf(lastError.failure.type), record);
  return {
    causes: failureCauses(record),
    blocker: 'this attempt, after one that failed',
    unblock: possible.length > 0 ? possible : ['nothing: the step under way ends by itself'],
  };
}

/** The last failure, its cause, and the backend's own words. */
function failureCauses(record: store.HostRecord): NonNullable<ExplanationDraft['causes']> {
  const { lastError } = record.host?.status ?? {};
  if (lastError === undefined) return [];
  const type = failureWord(lastError.failure?.type ?? FailureType.UNSPECIFIED);
  return [
    { text: `${lastError?.run ?? 'the last run'} failed: ${type}`, since: lastError?.time },
    {
      text: lastError?.failure?.message ?? 'no reason was recorded',
      disks: disksNamedBy(lastError?.failure?.details),
    },
    ...(lastError?.failure?.detail ? [{ text: lastError.failure.detail }] : []),
  ];
}

/** Why the control plane cannot order anything. */
function explainMissing(
  record: store.HostRecord,
  snapshot: HostSnapshot,
): ExplanationDraft | undefined {
  const { host } = record;
  const name = idOf(host?.name);
  if (!snapshot.hasReservations) {
    return {
      headline: 'nothing starts: another host holds one of its MAC or BMC addresses',
      blocker: 'an address that is not unique',
      unblock: [
        `correct its addresses: rackwright host update ${name} --mac MAC --bmc ADDRESS:PORT`,
        'or delete the other host that holds them',
      ],
    };
  }
  if (snapshot.credentialVersion === undefined) {
    const credential = idOf(host?.spec?.bmc?.credential) || 'CREDENTIAL';
    return {
      headline: 'nothing starts: its credential does not exist',
      blocker: `the credential ${credential}`,
      unblock: [`create it: rackwright credential create ${credential} --username USER`],
    };
  }
  return undefined;
}

function explainNothingFailed(record: store.HostRecord, snapshot: HostSnapshot): ExplanationDraft {
  if (hasNoAgent(snapshot)) {
    return explainNoAgent(record, snapshot);
  }
  const rest = explainPower(record) ?? explainRest(record);
  return rest ?? { headline: `nothing to do: it is ${displayed(record)}, as asked` };
}

/** The host's goal, and the work for it. */
function goalTexts(record: store.HostRecord): { readonly way: string; readonly aim: string } {
  if (record.host?.status?.deletion !== undefined) {
    return { way: 'the deletion', aim: 'to delete it' };
  }
  if (record.adoptTo !== HostState.UNSPECIFIED) {
    return { way: 'its adoption', aim: 'to adopt it' };
  }
  const goal = goalName(record);
  return { way: `the way to ${goal}`, aim: `to make it ${goal}` };
}

function explainGoal(record: store.HostRecord, snapshot: HostSnapshot): ExplanationDraft {
  const status = record.host?.status;
  const { backoff, lastError } = status ?? {};
  const left =
    status?.deletion === undefined ? (explainReviewFirst(record) ?? explainUse(record)) : undefined;
  if (left !== undefined) return left;
  if (status === undefined || backoff === undefined) return explainNothingFailed(record, snapshot);
  const givenUp = isGivenUp(backoff);
  // A stopped inspection is no error, but the goal is still given up.
  const stopped = givenUp ? 'cancelled' : undefined;
  const key = lastError === undefined ? stopped : failureNameOf(lastError.failure?.type ?? 0);
  const stay = stayOf(record);
  const { way, aim } = goalTexts(record);
  return {
    headline: givenUp
      ? `${displayed(record)}: Rackwright has stopped trying ${aim}: ${backoff.givenUpReason}`
      : `${displayed(record)}: ${way} is tried again after a pause`,
    causes: [...failureCauses(record), ...stay.causes],
    blocker: givenUp ? 'a person' : 'the pause after a failure',
    since: lastError?.time,
    nextAttemptTime: backoff.nextAttemptTime,
    unblock: [...adviceFor(key, record), ...stay.unblock],
  };
}

function explainNoAgent(
  record: store.HostRecord,
  { agentRevoked }: HostSnapshot,
): ExplanationDraft {
  const rack = record.host?.spec?.rack ?? '';
  const lack =
    agentRevoked === true ? `the agent of ${rack} was revoked` : `no agent has ever joined ${rack}`;
  return {
    headline: `${displayed(record)}: ${lack}`,
    blocker: 'the agent of the rack',
    unblock: [`join one: rackwright rack join-token ${idOf(rack)}`],
  };
}

function displayed(record: store.HostRecord): string {
  return record.host?.status === undefined ? 'unknown' : displayOf(record.host.status);
}

function goalName(record: store.HostRecord): string {
  const spec = record.host?.spec;
  return spec?.goal === HostGoal.MANAGEABLE || spec?.retired === true ? 'manageable' : 'available';
}

/**
 * The last observation: progress or step, and power; the cause of a failure is among the causes.
 */
function lastEvidence(record: store.HostRecord, progress: Progress | undefined): string {
  const { change, host } = record;
  const power = host?.status?.poweredOn;
  const observed = power === undefined ? '' : `; power last seen ${power ? 'on' : 'off'}`;
  return `${progressText(progress) ?? (change?.cause ?? 'created').split('; ')[0]}${observed}`;
}

/** "writing zeroes to sda, 43 %" */
function progressText(progress: Progress | undefined): string | undefined {
  if (progress === undefined) return undefined;
  const { text, percent } = progress;
  const parts = [...(text === '' ? [] : [text]), ...(percent === 0 ? [] : [`${percent} %`])];
  return parts.length === 0 ? undefined : parts.join(', ');
}
