/**
 * A host as a pool looks at it: only what the rollout is decided by. Pure.
 *
 * Invariant: *healthy* and *in service* are two things. Healthy is who nothing is wrong with: that
 * proves an image. In service is who may be used by somebody, whatever is wrong with it: that is
 * what gate and windows protect. A fault takes a host out of service only where it says so itself;
 * so does a run, from its power off until the power is as it was.
 */
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import {
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
  type RackName,
  type Run,
  RunKind,
  RunOutcome,
  RunPhase,
  StepState,
  type store as wire,
} from '@rackwright/messages';
import {
  bmcFaults,
  bmcUnreachable,
  engineSteps,
  heldBy,
  isPerson,
  isStillIn,
  lookFirstReason,
  powerBack,
  switchesOn,
  wantsAvailable,
} from '../../host/index.ts';
import { idOf } from '../../records/index.ts';
import { digestOf } from '../policy/image-name.ts';

/**
 * What users have of a provisioned host. `unseen`: it may serve, and may be gone with its BMC, or
 * stand in the runner; so it is asked for like one that serves, and counts like one that is out.
 */
export type Service = 'in' | 'unseen' | 'out';

export interface SeenHost {
  /** "hosts/HOST" */
  readonly name: string;
  readonly uid: HostUid;
  readonly rack: RackName;
  readonly labels: Readonly<Record<string, string>>;
  readonly state: HostState;
  /** What its disk holds whole; empty: nothing that is known. */
  readonly image: string;
  /** Of that image; empty: it is not known by digest. */
  readonly digest: string;
  /** "user:NAME" or "pools/POOL"; undefined: nobody. */
  readonly claimedBy: string | undefined;
  /** Why it is not in good service; undefined: it is. Of a provisioned host only. */
  readonly illness: string | undefined;
  /** Of a provisioned host only. */
  readonly service: Service;
  /** A run of it has failed, and its power is not as it was before yet. */
  readonly isComingBack: boolean;
  /** What keeps it from being written now, whoever asks; undefined: nothing. */
  readonly keptBy: string | undefined;
  /** Why nothing is begun in its rack now; undefined: it may be. */
  readonly brake: string | undefined;
  /** A person saves what is on its disks, until that person says that it is over. */
  readonly isInRescue: boolean;
  /** A person has switched it off since its pool holds it, and it is off still. */
  readonly switchedOffBy: string | undefined;
  /** Undefined: it has none. */
  readonly spec: HostSpec | undefined;
  readonly runCount: bigint;
  /** Counts retries that people asked for. */
  readonly retries: bigint;
  readonly run: Run | undefined;
  /** Why its goal does not lead it to be available; undefined: it does. */
  readonly goalStopped: string | undefined;
  readonly isDeleting: boolean;
  /** Whether somebody uses it is not known here: a person looks first (`restored.ts`, G3). */
  readonly waitsForLook: boolean;
  /** A deployment is under way, and has not begun anything on the host: it is in, if it was. */
  readonly isStillIn: boolean;
}

/** The host as pools see it; undefined when the record has none. `brake`: what stops its rack. */
export function seenHost(record: wire.HostRecord, brake = ''): SeenHost | undefined {
  const { host, runCount, operation } = record;
  if (host?.status === undefined) return undefined;
  const { status } = host;
  const { run } = status;
  const waitsForLook = record.lookFirstSince !== undefined;
  return {
    name: host.name,
    uid: host.uid,
    rack: host.spec?.rack ?? '',
    labels: host.labels,
    state: status.state,
    image: status.image,
    digest: digestOf(status.image),
    claimedBy: status.claim?.by,
    illness: status.state === HostState.PROVISIONED ? illnessOf(record, host) : undefined,
    service: serviceOf(record, host),
    isComingBack: powerBack(record) === 'owed',
    keptBy: keptBy(host, brake) ?? comesFirst(record),
    brake: brake === '' ? undefined : brake,
    isInRescue: status.inRescue,
    switchedOffBy: switchedOffBy(status),
    spec: host.spec,
    runCount,
    retries: record.retries,
    run,
    goalStopped: goalStopped(host),
    isDeleting: status.deletion !== undefined,
    waitsForLook,
    isStillIn: run !== undefined && isStillIn(run, operation),
  };
}

function goalStopped({ name, spec, status }: Host): string | undefined {
  const host = idOf(name);
  if (!wantsAvailable(spec)) {
    const end = '--goal available --no-retired';
    return `its goal is less; change that: rackwright host update ${host} ${end}`;
  }
  const givenUp = status?.backoff?.givenUpReason ?? '';
  return givenUp === '' ? undefined : `${givenUp}; see to it: rackwright host explain ${host}`;
}

/** Whether it runs this image in good health. */
export function isHealthyOn(host: SeenHost, digest: string): boolean {
  const isHealthy = host.state === HostState.PROVISIONED && host.illness === undefined;
  return isHealthy && host.digest === digest;
}

/** Whether taking it out may be a loss. */
export function isServing({ state, service }: SeenHost): boolean {
  return state === HostState.PROVISIONED && service !== 'out';
}

/** Whether it surely serves nobody, and a slot may heal it. */
export function isBroken({ state, service }: SeenHost): boolean {
  return state === HostState.PROVISIONED && service === 'out';
}

/** Whether it counts as one that is out. */
export function isMissed({ state, service }: SeenHost): boolean {
  return state === HostState.PROVISIONED && service !== 'in';
}

/** Whether a selector means the host; an empty one means none. */
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

/** Why it runs nothing for anybody, whatever its power is; undefined: it may. */
function awayBecause(record: wire.HostRecord, { status }: Host): string | undefined {
  const run = runUnderWay({ run: status?.run });
  const isOff = run?.steps.some(({ name: step, attempt }) => {
    return step === engineSteps.off && attempt > 0;
  });
  if (run !== undefined && isOff === true && !isStillIn(run, record.operation)) return heldBy(run);
  return powerBack(record) === 'owed' ? switchedBack : undefined;
}

/**
 * A person has said that all is saved, and nothing has been booted since that is known here: a
 * reboot in the runner, or by the BMC's own page, is no run. Undefined: it is no such host.
 */
function leftInRunner({ name, status }: Host): string | undefined {
  const last = status?.run;
  if (last?.kind !== RunKind.RESCUE || last.outcome !== RunOutcome.SUCCEEDED) return undefined;
  const reset = `rackwright host power reset ${idOf(name)}`;
  return `it may be in the runner since its rescue; boot it: ${reset}`;
}

const switchedBack = 'it is in the runner, and is switched back';

function illnessOf(record: wire.HostRecord, host: Host): string | undefined {
  const { status } = host;
  const fault = status?.faults.find(({ severity }) => severity !== FaultSeverity.WARNING);
  if (fault !== undefined) return `${fault.type}: ${fault.message}`;
  if (status?.poweredOn === false) return 'it is off';
  if (status?.inRescue === true) return 'it is in rescue';
  return awayBecause(record, host) ?? leftInRunner(host);
}

/** Its image is lost, or has not proved that it runs. */
const imageLost = 'reimageFailed';

/** All other faults, and those to come, say nothing of what runs on the host. */
function serviceOf(record: wire.HostRecord, host: Host): Service {
  const { status } = host;
  if (status === undefined || status.poweredOn === false || status.inRescue) return 'out';
  if (awayBecause(record, host) !== undefined) return 'out';
  const faults = status.faults.filter(({ severity }) => severity !== FaultSeverity.WARNING);
  if (faults.some(({ type }) => type === imageLost)) return 'out';
  // Nobody knows what it was left in.
  if (powerBack(record) === 'failed' || leftInRunner(host) !== undefined) return 'unseen';
  return faults.some(({ type }) => type === bmcUnreachable) ? 'unseen' : 'in';
}

/**
 * What was asked for before the claim is nothing that was said to the pool. Who is available is off
 * in any case, and cannot be switched on.
 */
function switchedOffBy({ state, run, claim, poweredOn }: HostStatus): string | undefined {
  if (state !== HostState.PROVISIONED) return undefined;
  if (run === undefined || claim === undefined || poweredOn !== false) return undefined;
  if (run.phase !== RunPhase.ENDED || !isPerson(run.requestedBy)) return undefined;
  const ms = (time: Timestamp | undefined) => (time === undefined ? 0 : timestampMs(time));
  if (ms(run.startTime) < ms(claim.at)) return undefined;
  const last = run.steps.findLast(({ name, state }) => {
    return state === StepState.SUCCEEDED && (name === engineSteps.off || switchesOn(name));
  });
  return last?.name === engineSteps.off && !wasFoundOff(run) ? run.requestedBy : undefined;
}

/** Work in the runner ends by switching on a host that was on, and leaves off who was off. */
function wasFoundOff({ kind, steps }: Run): boolean {
  if (kind !== RunKind.SERVICE && kind !== RunKind.WORKFLOW) return false;
  // Those of a template have a title.
  const own = steps.filter(({ title }) => title === '').map(({ name }) => name);
  return own.includes(engineSteps.off) && !own.includes(engineSteps.on);
}

/** A person works on it, and says when that is over. */
export function isInHands({ isInRescue, switchedOffBy: by }: SeenHost): boolean {
  return isInRescue || by !== undefined;
}

/** A run of a pool switches the host and takes it over: a hold of either keeps it. */
const holdsOfPools: ReadonlyMap<HoldScope, string> = new Map([
  [HoldScope.WORK, 'work'],
  [HoldScope.POWER, 'power'],
]);

/** What the host itself is about to do, or waits for. */
function comesFirst(record: wire.HostRecord): string | undefined {
  if (record.lookFirstSince !== undefined) return lookFirstReason;
  return powerBack(record) === 'owed' ? switchedBack : undefined;
}

/** Nobody but a person writes over what a person saves. */
export function rescueText(host: HostName): string {
  return `it is in rescue; when all is saved: rackwright host retry ${idOf(host)}`;
}

function keptBy({ name, status }: Host, brake: string): string | undefined {
  if (status === undefined) return undefined;
  if (status.deletion !== undefined) return `${status.deletion.by} asked for its deletion`;
  const hold = status.holds.find(({ scope }) => holdsOfPools.has(scope));
  if (hold !== undefined) {
    return `its ${holdsOfPools.get(hold.scope)} is held by ${hold.by}: ${hold.reason}`;
  }
  const run = runUnderWay({ run: status.run });
  if (run !== undefined) return heldBy(run);
  if (status.inRescue) return rescueText(name);
  const by = switchedOffBy(status);
  if (by !== undefined) {
    return `${by} has switched it off; when that is over: rackwright host power on ${idOf(name)}`;
  }
  if (brake !== '') return brake;
  const isOfBmc = ({ type, severity }: Fault) =>
    bmcFaults.has(type) && severity !== FaultSeverity.WARNING;
  const fault = status.faults.find(isOfBmc);
  return fault === undefined ? undefined : `its BMC, ${fault.type}: ${fault.message}`;
}

const stateNames = new Map<number, string>(
  Object.entries(HostState).map(([name, value]) => [value, name.toLowerCase()]),
);

/** "manageable" */
export function stateName({ state }: Pick<SeenHost, 'state'>): string {
  return stateNames.get(state) ?? 'in a state that is not known';
}
