/**
 * Explains a host from the record and the surroundings that the machine decides by: what it waits
 * for, since when, what comes next by itself, and what a person can do. Pure.
 *
 * Invariant: what stands under `unblock` names a command or an action that makes the host move.
 */
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  CauseSchema,
  type Explanation,
  ExplanationSchema,
  HostGoal,
  HostState,
  type Run,
  RunPhase,
  type store,
} from '@rackwright/api';
import { adviceFor } from './advice.ts';
import { displayOf } from './display.ts';
import { tellBrake, tellLookFirst, tellRestored, tellRunOfRestored } from './explain-brakes.ts';
import {
  needsWork,
  tellFence,
  tellForced,
  tellKeptDeletion,
  tellNewer,
  withForce,
} from './explain-deletion.ts';
import { abortCauses, pauseEnd, personAdvice, stayOf } from './explain-person.ts';
import { tellPower } from './explain-power.ts';
import { tellHold, tellRest, tellUse } from './explain-use.ts';
import type { Told } from './told.ts';
import { activeRun, currentStep, runName, waitsForOthers } from './turn.ts';
import type { HostContext } from './types.ts';
import { noUsualTimes, type UsualTimes } from './usual.ts';

/** `undefined` fields of the answer mean: does not apply. */
export function explainHost(
  record: store.HostRecord,
  context: HostContext,
  usual: UsualTimes = noUsualTimes,
): Explanation {
  const told = tell(record, context);
  const run = record.host?.status === undefined ? undefined : activeRun(record.host.status);
  const usualMs = run === undefined ? undefined : usual.runMs(run);
  return create(ExplanationSchema, {
    subject: record.host?.name ?? '',
    headline: told.headline,
    causes: (told.causes ?? []).map(({ text, since }) =>
      create(CauseSchema, since === undefined ? { text } : { text, since }),
    ),
    blocker: told.blocker ?? '',
    ...(told.since === undefined ? {} : { since: told.since }),
    ...(told.nextAttemptTime === undefined ? {} : { nextAttemptTime: told.nextAttemptTime }),
    ...(told.deadline === undefined ? {} : { deadline: told.deadline }),
    unblock: [...(told.unblock ?? [])],
    lastEvidence: lastEvidence(record),
    ...(usualMs === undefined ? {} : { usualDuration: durationFromMs(usualMs) }),
  });
}

function tell(record: store.HostRecord, context: HostContext): Told {
  const status = record.host?.status;
  if (status === undefined) return { headline: 'the record has no status' };
  const newer = tellNewer(record);
  if (newer !== undefined) return newer;
  const run = activeRun(status);
  if (run !== undefined) {
    const told = {
      ...tellRun(record, run, context),
      ...tellForced(record, run),
      ...tellRunOfRestored(record, context),
    };
    return run.waiting === undefined ? told : withForce(record, told);
  }
  if (status.deletion !== undefined) {
    const lack = needsWork(record, record.host?.spec) ? tellMissing(record, context) : undefined;
    return tellKeptDeletion(record) ?? withForce(record, lack ?? tellGoal(record, context));
  }
  const held = tellFence(record) ?? tellRestored(record, context) ?? tellHold(record);
  return held ?? tellMissing(record, context) ?? tellGoal(record, context);
}

function tellRun(record: store.HostRecord, run: Run, context: HostContext): Told {
  const { host } = record;
  const step = currentStep(run);
  const place = `${run.currentStep + 1} of ${run.steps.length}`;
  const at = `${runName(run)}, step ${step?.name ?? 'end'} (${place})`;
  const display = host?.status === undefined ? '' : displayOf(host.status);
  if (run.phase !== RunPhase.WAITING || run.waiting === undefined) {
    const told = {
      headline: `${display}: ${at}`,
      since: step?.startTime,
      deadline: step?.deadline,
    };
    const ofAbort = abortCauses(run, step);
    if (ofAbort.length > 0) return { ...told, causes: ofAbort, blocker: 'the step under way' };
    return { ...told, ...tellLastFailure(record) };
  }
  const { reason, message, since } = run.waiting;
  const brake = tellBrake(record, run, context);
  const againTime = record.operation?.notBefore ?? pauseEnd(step);
  return {
    headline: `${display}: ${at}`,
    causes: [{ text: message, since }],
    blocker: blockers[reason] ?? reason,
    since,
    // Behind a brake nothing is tried when the pause of an earlier attempt ends.
    nextAttemptTime: brake === undefined ? againTime : brake.nextAttemptTime,
    deadline: step?.deadline ?? (waitsForOthers(run) ? undefined : run.deadline),
    unblock: waitingAdvice(record, reason, context),
    ...brake,
  };
}

/** Commands that are refused while a run holds the host. */
const startsRun =
  /rackwright host (verify|inspect|clean|release|rescue|reimage|service|power|retry) /;

/** A run that tries again what failed: the failure still stands until it succeeds. */
function tellLastFailure(record: store.HostRecord): Partial<Told> {
  const { lastError } = record.host?.status ?? {};
  if (lastError?.failure === undefined) return {};
  const advice = adviceFor(lastError.failure.type, record);
  const possible = advice.filter((line) => !startsRun.test(line));
  return {
    causes: failureCauses(record),
    blocker: 'this attempt, after one that failed',
    unblock: possible.length > 0 ? possible : ['nothing: the step under way ends by itself'],
  };
}

/** What failed last, why, and in the backend's own words. */
function failureCauses(record: store.HostRecord): NonNullable<Told['causes']> {
  const { lastError } = record.host?.status ?? {};
  const type = lastError?.failure?.type ?? 'unknown';
  return [
    { text: `${lastError?.run ?? 'the last run'} failed: ${type}`, since: lastError?.time },
    { text: lastError?.failure?.message ?? 'no reason was recorded' },
    ...(lastError?.failure?.detail ? [{ text: lastError.failure.detail }] : []),
  ];
}

const blockers: Readonly<Record<string, string>> = {
  agent: 'the agent of the rack',
  bmc: 'the BMC',
  runner: 'the runner on the host',
  registry: 'the registry of an image',
  conflict: 'a conflict on the host or its BMC',
  hold: 'a person',
  wait: 'the pause that its list of steps asks for',
};

function waitingAdvice(record: store.HostRecord, reason: string, context: HostContext): string[] {
  const rack = record.host?.spec?.rack ?? '';
  switch (reason) {
    case 'agent':
      return context.agentRegistered
        ? [
            `start the agent of ${rack} again: rackwright-agent run --config FILE`,
            'the work then goes on by itself',
          ]
        : [`join an agent: rackwright rack join-token ${rack.replace(/^racks\//, '')}`];
    case 'bmc':
      return adviceFor('unreachable', record);
    case 'runner':
      return [
        `look at the console of ${record.host?.name}: it should be booting from the network card ` +
          `${record.host?.spec?.bootMacs.join(', ')}`,
      ];
    case 'hold':
    case 'wait':
      return personAdvice(record, reason);
    default:
      return ['nothing: it is tried again by itself'];
  }
}

/** What keeps the control plane from ordering anything at all. */
function tellMissing(record: store.HostRecord, context: HostContext): Told | undefined {
  const { host } = record;
  const name = host?.name.replace(/^hosts\//, '') ?? '';
  if (!context.reservationsHeld) {
    return {
      headline: 'nothing starts: another host holds one of its MAC or BMC addresses',
      blocker: 'an address that is not unique',
      unblock: [
        `correct its addresses: rackwright host update ${name} --mac MAC --bmc ADDRESS:PORT`,
        'or delete the other host that holds them',
      ],
    };
  }
  if (context.credentialVersion === undefined) {
    const credential = host?.spec?.bmc?.credential.replace(/^credentials\//, '') || 'CREDENTIAL';
    return {
      headline: 'nothing starts: its credential does not exist',
      blocker: `the credential ${credential}`,
      unblock: [`create it: rackwright credential create ${credential} --username USER`],
    };
  }
  return undefined;
}

function tellGoal(record: store.HostRecord, context: HostContext): Told {
  const status = record.host?.status;
  const { backoff, lastError } = status ?? {};
  const goal = goalName(record);
  const used = status?.deletion === undefined ? tellUse(record) : undefined;
  if (used !== undefined) return used;
  const unseen = status?.deletion === undefined ? tellLookFirst(record) : undefined;
  if (unseen !== undefined) return unseen;
  if (status === undefined || backoff === undefined) {
    if (!context.agentRegistered) return tellNoAgent(record);
    const rest = tellPower(record) ?? tellRest(record);
    if (rest !== undefined) return rest;
    return { headline: `${displayed(record)}: it is where its goal (${goal}) wants it` };
  }
  const type = lastError?.failure?.type ?? '';
  const givenUp = backoff.givenUpReason !== '';
  const towards = record.adoptTo === HostState.UNSPECIFIED ? `the way to ${goal}` : 'its adoption';
  const stay = stayOf(record);
  const way = status.deletion === undefined ? towards : 'the deletion';
  return {
    headline: givenUp
      ? `${displayed(record)}: ${way} has been given up: ${backoff.givenUpReason}`
      : `${displayed(record)}: ${way} is tried again after a pause`,
    causes: [...failureCauses(record), ...stay.causes],
    blocker: givenUp ? 'a person' : 'the pause after a failure',
    since: lastError?.time,
    nextAttemptTime: backoff.nextAttemptTime,
    unblock: [...adviceFor(type, record), ...stay.unblock],
  };
}

function tellNoAgent(record: store.HostRecord): Told {
  const rack = record.host?.spec?.rack ?? '';
  return {
    headline: `${displayed(record)}: no agent has ever joined ${rack}`,
    blocker: 'the agent of the rack',
    unblock: [`join one: rackwright rack join-token ${rack.replace(/^racks\//, '')}`],
  };
}

function displayed(record: store.HostRecord): string {
  return record.host?.status === undefined ? 'unknown' : displayOf(record.host.status);
}

function goalName(record: store.HostRecord): string {
  const spec = record.host?.spec;
  return spec?.goal === HostGoal.MANAGEABLE || spec?.retired === true ? 'manageable' : 'available';
}

/** What was seen last: step, attempt and power; why it failed stands under the causes. */
function lastEvidence(record: store.HostRecord): string {
  const { change, host } = record;
  const power = host?.status?.poweredOn;
  const observed = power === undefined ? '' : `; power last seen ${power ? 'on' : 'off'}`;
  return `${(change?.cause ?? 'created').split('; ')[0]}${observed}`;
}
