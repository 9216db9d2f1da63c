/**
 * A host from a pool's view: only the data that the rollout depends on. Pure.
 *
 * Invariant: *healthy* and *in service* are different. A host is healthy when it has no problem:
 * that proves an image. It is in service when its user may be using it, despite any problem: gate
 * and windows protect that. A fault takes a host out of service only where it says so itself. A run
 * does so from its power off until the power is restored.
 */
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type Actor,
  type Fault,
  FaultSeverity,
  HoldScope,
  type Host,
  type HostName,
  type HostSelector,
  type HostSpec,
  HostState,
  type HostStatus,
  type HostUid,
  hasFault,
  isGivenUp,
  isPerson,
  type RackName,
  type Run,
  RunKind,
  RunOutcome,
  RunPhase,
  readActor,
  StepState,
  type store as wire,
} from '@rackwright/messages';
import {
  type Brake,
  bmcFaults,
  bmcUnreachable,
  engineSteps,
  isOfTemplate,
  isStillInService,
  occupiedText,
  powerBack,
  reviewReason,
  switchesOn,
  wantsAvailable,
} from '../../host/index.ts';
import { idOf } from '../../records/index.ts';
import { digestInImage } from '../policy/image-name.ts';

/**
 * The use of a provisioned host. `unseen`: it may serve; or it may be down like its BMC, or in the
 * runner. So it needs the gate like a serving host, and counts like one that is out.
 */
export type Service = 'in' | 'unseen' | 'out';

/** What keeps a host from being written, for any caller. */
export interface Keeper {
  readonly kind:
    | 'deletion'
    | 'hold'
    | 'run'
    | 'rescue'
    | 'switchedOff'
    | 'brake'
    | 'bmcFault'
    /** A person looks first. */
    | 'review'
    /** It is in the runner, and is switched back. */
    | 'powerBack';
  /** For people. */
  readonly text: string;
}

/** Why a provisioned host is not in good service. */
export interface ServiceProblem {
  readonly kind:
    | 'fault'
    | 'off'
    | 'rescue'
    /** A run has switched it off. */
    | 'run'
    /** It is in the runner, and is switched back. */
    | 'powerBack'
    /** It may be in the runner since its rescue. */
    | 'leftInRunner';
  /** For people. */
  readonly text: string;
}

/** Why the goal of a host does not lead it to available. */
export interface GoalStop {
  readonly kind: 'lesserGoal' | 'givenUp';
  /** For people. */
  readonly text: string;
}

export interface SeenHost {
  readonly name: HostName;
  readonly uid: HostUid;
  readonly rack: RackName;
  readonly labels: Readonly<Record<string, string>>;
  readonly state: HostState;
  /** The complete image on its disk; empty: none is known. */
  readonly image: string;
  /** The digest of that image; empty: unknown. */
  readonly digest: string;
  /** "user:NAME" or "pools/POOL"; undefined: unclaimed. */
  readonly claimedBy: Actor | undefined;
  /** Why it is not in good service; undefined: it is. Only for a provisioned host. */
  readonly illness: ServiceProblem | undefined;
  /** Only for a provisioned host. */
  readonly service: Service;
  /** A run of it has failed, and its power is not restored yet. */
  readonly isComingBack: boolean;
  /** Undefined: it can be written now. */
  readonly keptBy: Keeper | undefined;
  /** What keeps work in its rack from beginning; undefined: nothing. */
  readonly brake: Brake | undefined;
  /** A person saves the data on its disks, until that person says that it is over. */
  readonly isInRescue: boolean;
  /** The person who has switched it off since its pool holds it, while it is still off. */
  readonly switchedOffBy: string | undefined;
  /** Undefined: it has none. */
  readonly spec: HostSpec | undefined;
  readonly runCount: bigint;
  /** The number of retries that people requested. */
  readonly retries: bigint;
  readonly run: Run | undefined;
  /** Why its goal does not lead it to available; undefined: it does. */
  readonly goalStopped: GoalStop | undefined;
  readonly isDeleting: boolean;
  /** Whether it is in use is unknown here: a person checks first (`restored.ts`, G3). */
  readonly waitsForReview: boolean;
  /**
   * A deployment is in progress without any effect on the host yet: it is still in service, if it
   * was.
   */
  readonly isStillIn: boolean;
}

/**
 * The host from a pool's view; undefined when the record has none. `brake`: what stops its rack.
 */
export function seenHost(record: wire.HostRecord, brake?: Brake): SeenHost | undefined {
  const { host, runCount, operation } = record;
  if (host?.status === undefined) return undefined;
  const { status } = host;
  const { run } = status;
  const waitsForReview = record.lookFirstSince !== undefined;
  return {
    name: host.name,
    uid: host.uid,
    rack: host.spec?.rack ?? '',
    labels: host.labels,
    state: status.state,
    image: status.image,
    digest: digestInImage(status.image),
    claimedBy: status.claim && readActor(status.claim.by),
    illness: status.state === HostState.PROVISIONED ? illnessOf(record, host) : undefined,
    service: serviceOf(record, host),
    isComingBack: powerBack(record) === 'owed',
    keptBy: keptBy(host, brake) ?? comesFirst(record),
    brake,
    isInRescue: status.inRescue,
    switchedOffBy: switchedOffBy(status),
    spec: host.spec,
    runCount,
    retries: record.retries,
    run,
    goalStopped: goalStopped(host),
    isDeleting: status.deletion !== undefined,
    waitsForReview,
    isStillIn: run !== undefined && isStillInService(run, operation),
  };
}

function goalStopped({ name, spec, status }: Host): GoalStop | undefined {
  const host = idOf(name);
  if (!wantsAvailable(spec)) {
    const end = '--goal available --no-retired';
    const text = `its goal is less; change that: rackwright host update ${host} ${end}`;
    return { kind: 'lesserGoal', text };
  }
  const { backoff } = status ?? {};
  if (backoff === undefined || !isGivenUp(backoff)) return undefined;
  const text = `${backoff.givenUpReason}; see what helps: rackwright host explain ${host}`;
  return { kind: 'givenUp', text };
}

/** Whether it runs this image in good health. */
export function isHealthyOn(host: SeenHost, digest: string): boolean {
  const isHealthy = host.state === HostState.PROVISIONED && host.illness === undefined;
  return isHealthy && host.digest === digest;
}

/** Whether taking it out may interrupt a use. */
export function isServing({ state, service }: SeenHost): boolean {
  return state === HostState.PROVISIONED && service !== 'out';
}

/** Whether it certainly serves no use, and a slot may heal it. */
export function isBroken({ state, service }: SeenHost): boolean {
  return state === HostState.PROVISIONED && service === 'out';
}

/** Whether it counts as one that is out. */
export function isMissed({ state, service }: SeenHost): boolean {
  return state === HostState.PROVISIONED && service !== 'in';
}

/** Whether a selector matches the host; an empty one matches none. */
export function isSelected(
  selector: HostSelector | undefined,
  { name, rack, labels }: Pick<SeenHost, 'name' | 'rack' | 'labels'>,
): boolean {
  if (selector === undefined) return false;
  const wanted = Object.entries(selector.labels);
  if (selector.names.length === 0 && selector.rack === '' && wanted.length === 0) return false;
  return (
    (selector.names.length === 0 || selector.names.includes(name)) &&
    (selector.rack === '' || selector.rack === rack) &&
    wanted.every(([key, value]) => labels[key] === value)
  );
}

/** A run that has not ended. */
export function runUnderWay({ run }: Pick<SeenHost, 'run'>): Run | undefined {
  return run !== undefined && run.phase !== RunPhase.ENDED ? run : undefined;
}

/** Why it runs nothing for a user, whatever its power is; undefined: it may. */
function awayBecause(record: wire.HostRecord, { status }: Host): ServiceProblem | undefined {
  const run = runUnderWay({ run: status?.run });
  const isOff = run?.steps.some(({ name: step, attempt }) => {
    return step === engineSteps.off && attempt > 0;
  });
  if (run !== undefined && isOff === true && !isStillInService(run, record.operation)) {
    return { kind: 'run', text: occupiedText(run) };
  }
  return powerBack(record) === 'owed' ? switchedBack : undefined;
}

/**
 * A person has ended the rescue, and no later boot is known here: a reboot in the runner, or from
 * the BMC's own page, is no run. Undefined: it is no such host.
 */
function leftInRunner({ name, status }: Host): ServiceProblem | undefined {
  const last = status?.run;
  if (last?.kind !== RunKind.RESCUE || last.outcome !== RunOutcome.SUCCEEDED) return undefined;
  const reset = `rackwright host power reset ${idOf(name)}`;
  const text = `it may be in the runner since its rescue; boot it: ${reset}`;
  return { kind: 'leftInRunner', text };
}

const switchedBack = {
  kind: 'powerBack',
  text: 'it is in the runner, and is switched back',
} as const satisfies ServiceProblem & Keeper;

function illnessOf(record: wire.HostRecord, host: Host): ServiceProblem | undefined {
  const { status } = host;
  const fault = status?.faults.find(({ severity }) => severity !== FaultSeverity.WARNING);
  if (fault !== undefined) return { kind: 'fault', text: `${fault.type}: ${fault.message}` };
  if (status?.poweredOn === false) return { kind: 'off', text: 'it is off' };
  if (status?.inRescue === true) return { kind: 'rescue', text: 'it is in rescue' };
  return awayBecause(record, host) ?? leftInRunner(host);
}

/** Its image is lost, or has not proved that it runs. */
const imageLost = 'reimageFailed';

/** All other faults, also future ones, do not affect the image in use. */
function serviceOf(record: wire.HostRecord, host: Host): Service {
  const { status } = host;
  if (status === undefined || status.poweredOn === false || status.inRescue) return 'out';
  if (awayBecause(record, host) !== undefined) return 'out';
  const faults = status.faults.filter(({ severity }) => severity !== FaultSeverity.WARNING);
  if (hasFault(faults, imageLost)) return 'out';
  // Its state after the run is unknown.
  if (powerBack(record) === 'failed' || leftInRunner(host) !== undefined) return 'unseen';
  return hasFault(faults, bmcUnreachable) ? 'unseen' : 'in';
}

/**
 * A power off before the claim does not concern the pool. An available host is off in any case, and
 * cannot be switched on.
 */
function switchedOffBy({ state, run, claim, poweredOn }: HostStatus): string | undefined {
  if (state !== HostState.PROVISIONED) return undefined;
  if (run === undefined || claim === undefined || poweredOn !== false) return undefined;
  if (run.phase !== RunPhase.ENDED || !isPerson(readActor(run.requestedBy))) return undefined;
  const ms = (time: Timestamp | undefined) => (time === undefined ? 0 : timestampMs(time));
  if (ms(run.startTime) < ms(claim.at)) return undefined;
  const last = run.steps.findLast(({ name, state }) => {
    return state === StepState.SUCCEEDED && (name === engineSteps.off || switchesOn(name));
  });
  return last?.name === engineSteps.off && !wasFoundOff(run) ? run.requestedBy : undefined;
}

/** Work in the runner ends with a power on for a host that was on, and leaves others off. */
function wasFoundOff({ kind, steps }: Run): boolean {
  if (kind !== RunKind.SERVICE && kind !== RunKind.WORKFLOW) return false;
  const own = steps.filter((step) => !isOfTemplate(step)).map(({ name }) => name);
  return own.includes(engineSteps.off) && !own.includes(engineSteps.on);
}

/** A person works on it, and says when that is over. */
export function isHandledByPerson({ isInRescue, switchedOffBy: by }: SeenHost): boolean {
  return isInRescue || by !== undefined;
}

/** A pool's run switches the host and takes it over: a hold of either scope prevents it. */
const holdsOfPools: ReadonlyMap<HoldScope, string> = new Map([
  [HoldScope.WORK, 'work'],
  [HoldScope.POWER, 'power'],
]);

/** What the host itself is about to do, or waits for. */
function comesFirst(record: wire.HostRecord): Keeper | undefined {
  if (record.lookFirstSince !== undefined) return { kind: 'review', text: reviewReason };
  return powerBack(record) === 'owed' ? switchedBack : undefined;
}

/** Only a person may permit that data in rescue is overwritten. */
export function rescueText(host: HostName): string {
  return `it is in rescue; when all is saved: rackwright host retry ${idOf(host)}`;
}

function keptBy({ name, status }: Host, brake: Brake | undefined): Keeper | undefined {
  if (status === undefined) return undefined;
  if (status.deletion !== undefined) {
    return { kind: 'deletion', text: `${status.deletion.by} asked for its deletion` };
  }
  const hold = status.holds.find(({ scope }) => holdsOfPools.has(scope));
  if (hold !== undefined) {
    const text = `its ${holdsOfPools.get(hold.scope)} is held by ${hold.by}: ${hold.reason}`;
    return { kind: 'hold', text };
  }
  const run = runUnderWay({ run: status.run });
  if (run !== undefined) return { kind: 'run', text: occupiedText(run) };
  if (status.inRescue) return { kind: 'rescue', text: rescueText(name) };
  const by = switchedOffBy(status);
  if (by !== undefined) {
    const command = `rackwright host power on ${idOf(name)}`;
    const text = `${by} has switched it off; when that is over: ${command}`;
    return { kind: 'switchedOff', text };
  }
  if (brake !== undefined) return { kind: 'brake', text: brake.text };
  const isOfBmc = ({ type, severity }: Fault) =>
    bmcFaults.has(type) && severity !== FaultSeverity.WARNING;
  const fault = status.faults.find(isOfBmc);
  if (fault === undefined) return undefined;
  return { kind: 'bmcFault', text: `its BMC, ${fault.type}: ${fault.message}` };
}

const stateNames = new Map<number, string>(
  Object.entries(HostState).map(([name, value]) => [value, name.toLowerCase()]),
);

/** "manageable" */
export function stateName({ state }: Pick<SeenHost, 'state'>): string {
  return stateNames.get(state) ?? 'in a state that is not known';
}
