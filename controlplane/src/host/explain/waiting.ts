/**
 * Explains what a run waits for: one cell for each possible wait. Pure.
 *
 * Invariant: each line of `unblock` moves the run, or says that there is nothing to do.
 */
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { type HostWait, hostWaitOf, type Run, RunKind, type store } from '@rackwright/messages';
import { readImageName } from '../../images/index.ts';
import { idOf } from '../../records/index.ts';
import { protocolOf } from '../bmc/protocols.ts';
import { hasNoAgent } from '../life/restored.ts';
import { currentStep } from '../pass/pass.ts';
import { engineSteps, switchesOn } from '../pass/step-names.ts';
import type { HostSnapshot } from '../pass/types.ts';
import { adviceFor } from './advice.ts';
import { adviceToAccept, explainFreeze, explainQueue } from './brakes.ts';
import { hostId } from './explanation-draft.ts';
import { personAdvice } from './person.ts';

/** What a run waits for, and what would release it. */
export interface WaitText {
  readonly blocker: string;
  readonly unblock: readonly string[];
  /** Set where more is known than the run's own text. */
  readonly causes?: readonly { readonly text: string; readonly since?: Timestamp | undefined }[];
  /** While a brake holds it, the end of a retry pause starts nothing. */
  readonly braked?: { readonly nextAttemptTime?: Timestamp };
}

type Cell = (record: store.HostRecord, run: Run, snapshot: HostSnapshot) => WaitText;

/** All possible waits of a host's run. */
export const waitCells: { readonly [W in HostWait]: Cell } = {
  agent: (record, _run, snapshot) => ({
    blocker: 'the agent of the rack',
    unblock: agentAdvice(record, snapshot),
  }),
  runner: (record, run) => ({
    blocker: 'the runner on the host',
    unblock: [
      `look at the console of ${record.host?.name}: it should be booting from the network card ` +
        `${record.host?.spec?.bootMacs.join(', ')}`,
      ...ownBootOrder(record),
      ...adviceToEndRun(record, run),
    ],
  }),
  bmc: (record) => ({
    blocker: 'the BMC',
    unblock: [...adviceFor('unreachable', record), ...tryNow(record)],
  }),
  person: (record, run) => ({
    blocker: 'a person who switches the host',
    unblock: [...askPerson(record, run), ...adviceToEndRun(record, run)],
  }),
  registry: (record, run) => ({
    blocker: 'the registry of images',
    unblock: [
      `see that ${registryOf(run)} answers the agent of ${record.host?.spec?.rack}; ` +
        'it is tried again by itself',
      ...tryNow(record),
    ],
  }),
  image: (record, run) => ({
    blocker: `a free slot to get an image in ${record.host?.spec?.rack}`,
    unblock: ['nothing: it goes on by itself when it has a slot', ...adviceToEndRun(record, run)],
  }),
  conflict: (record, run) => ({
    blocker: 'a conflict on the host or its BMC',
    unblock: byItself(record, run),
  }),
  retry: (record, run) => ({
    blocker: 'the pause before the next attempt of its step',
    unblock: byItself(record, run),
  }),
  webhook: (record, run) => ({
    blocker: 'the webhook that it calls',
    unblock: [
      `see that ${webhookOf(run)} answers; it is called again by itself`,
      ...tryNow(record),
      ...adviceToEndRun(record, run),
    ],
  }),
  hold: (record) => ({ blocker: 'a person', unblock: personAdvice(record, 'hold') }),
  wait: (record) => ({
    blocker: 'the pause that its list of steps asks for',
    unblock: personAdvice(record, 'wait'),
  }),
  freeze: (_record, _run, snapshot) => explainFreeze(snapshot),
  capacity: (record, run, snapshot) => explainQueue(record, run, snapshot, 'the limit of runs'),
  wipeBudget: (record, run, snapshot) => explainQueue(record, run, snapshot, 'the wipe budget'),
  restored: (record, _run, snapshot) => ({
    blocker: 'the restored store',
    unblock: adviceToAccept(record.host?.spec?.rack ?? '', snapshot),
    braked: {},
  }),
};

/** What the run waits for; undefined when it does not wait. */
export function explainWaiting(
  record: store.HostRecord,
  run: Run,
  snapshot: HostSnapshot,
): WaitText | undefined {
  const { waiting } = run;
  if (waiting === undefined) return undefined;
  const wait = hostWaitOf(waiting);
  if (wait !== undefined) return waitCells[wait](record, run, snapshot);
  // An unknown wait, such as of another version: only its own text is shown.
  return { blocker: waiting.reason, unblock: ['nothing: it is tried again by itself'] };
}

/** A device that only switches power cannot choose the boot source. */
function ownBootOrder({ host }: store.HostRecord): string[] {
  if (protocolOf(host?.spec?.bmc?.protocol).setsBoot) return [];
  return ['see that its own boot order begins with the network: nothing chooses for it'];
}

/** A runner reports itself that it is up; everything else a person has to report. */
function askPerson(record: store.HostRecord, run: Run): string[] {
  const host = hostId(record);
  const { name = '' } = currentStep(run) ?? {};
  if (name === engineSteps.awaitRunner) {
    const macs = record.host?.spec?.bootMacs.join(', ') ?? '';
    const why = 'no BMC chooses for it, so its own boot order must begin with the network';
    return [
      `switch ${host} on, and let it boot from ${macs}: ${why}`,
      'the rest goes on by itself once the runner is up',
    ];
  }
  const state = switchesOn(name) ? 'on' : 'off';
  const command = `rackwright host power confirm-${state} ${host}`;
  return [`switch ${host} ${state}, and then say so: ${command}`];
}

function agentAdvice(record: store.HostRecord, snapshot: HostSnapshot): string[] {
  const rack = record.host?.spec?.rack ?? '';
  if (hasNoAgent(snapshot)) {
    return [`join an agent: rackwright rack join-token ${idOf(rack)}`];
  }
  if (snapshot.session !== undefined) {
    return [`update the agent of ${rack}: it is connected and does not know what is asked of it`];
  }
  return [
    `start the agent of ${rack} again: rackwright-agent run --config FILE`,
    'the work then goes on by itself',
  ];
}

function byItself(record: store.HostRecord, run: Run): string[] {
  const nothing = 'nothing: it is tried again by itself';
  return [nothing, ...tryNow(record), ...adviceToEndRun(record, run)];
}

/**
 * Not where a retry would mean something else: that a rescue is over, or that a person has checked.
 */
function tryNow(record: store.HostRecord): string[] {
  const saysMore = record.host?.status?.inRescue === true || record.lookFirstSince !== undefined;
  return saysMore ? [] : [`or at once: rackwright host retry ${hostId(record)}`];
}

/**
 * A removal that has begun cannot be stopped, and a run that is being stopped needs no second
 * request.
 */
export function adviceToEndRun(record: store.HostRecord, { kind, abort }: Run): string[] {
  if (kind === RunKind.DELETE || abort !== undefined) return [];
  return [`or end the run: rackwright host abort ${hostId(record)}`];
}

/** "registry.example.org", from "registry.example.org/tools/check@sha256:…" */
function registryOf(run: Run): string {
  const read = readImageName(currentStep(run)?.arguments['image'] ?? '');
  return read.kind === 'ok' ? read.name.registry : 'the registry';
}

/** Without path and query, which may be secret. */
function webhookOf(run: Run): string {
  return URL.parse(currentStep(run)?.arguments['url'] ?? '')?.origin ?? 'the receiver';
}
