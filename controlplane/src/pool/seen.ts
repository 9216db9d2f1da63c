/** A host as a pool looks at it: only what the rollout is decided by. Pure. */
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  FaultSeverity,
  HoldScope,
  type Host,
  HostGoal,
  type HostSelector,
  HostState,
  type Run,
  RunKind,
  RunOutcome,
  RunPhase,
  type store as wire,
} from '@rackwright/api';
import { heldBy } from '../host/index.ts';
import { digestOf } from './image-name.ts';

export interface SeenHost {
  /** "hosts/HOST" */
  readonly name: string;
  readonly uid: string;
  readonly rack: string;
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
  /** What keeps it from being written now, whoever asks; undefined: nothing. */
  readonly keptBy: string | undefined;
  readonly runCount: bigint;
  readonly run: Run | undefined;
  /** Data may be left on its disks, and no clean that failed was given up. */
  readonly wantsClean: boolean;
  /** A clean that failed is tried again then; undefined: there is none, or a person has looked. */
  readonly cleanAfterMs: number | undefined;
  readonly isDeleting: boolean;
}

/** The host as pools see it; undefined when the record has none. */
export function seenHost({ host, runCount }: wire.HostRecord): SeenHost | undefined {
  if (host?.status === undefined) return undefined;
  const { status } = host;
  const { run } = status;
  return {
    name: host.name,
    uid: host.uid,
    rack: host.spec?.rack ?? '',
    labels: host.labels,
    state: status.state,
    image: status.image,
    digest: digestOf(status.image),
    claimedBy: status.claim?.by,
    illness: status.state === HostState.PROVISIONED ? illnessOf(host) : undefined,
    keptBy: keptBy(host),
    runCount,
    run,
    wantsClean:
      status.state === HostState.MANAGEABLE &&
      status.dirty &&
      host.spec?.goal !== HostGoal.MANAGEABLE &&
      !(hasFailedToClean(run) && (status.backoff?.givenUpReason ?? '') !== ''),
    cleanAfterMs: hasFailedToClean(run) ? timeOf(status.backoff?.nextAttemptTime) : undefined,
    isDeleting: status.deletion !== undefined,
  };
}

function hasFailedToClean(run: Run | undefined): boolean {
  return run?.kind === RunKind.CLEAN && run.outcome !== RunOutcome.SUCCEEDED;
}

function timeOf(time: Timestamp | undefined): number | undefined {
  return time === undefined ? undefined : timestampMs(time);
}

/** Whether it runs this image in good health. */
export function isHealthyOn(host: SeenHost, digest: string): boolean {
  return isServing(host) && host.digest === digest;
}

/** Whether taking it out would be a loss. */
export function isServing({ state, illness }: SeenHost): boolean {
  return state === HostState.PROVISIONED && illness === undefined;
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

function illnessOf({ status }: Host): string | undefined {
  const fault = status?.faults.find(({ severity }) => severity !== FaultSeverity.WARNING);
  if (fault !== undefined) return `${fault.type}: ${fault.message}`;
  if (status?.poweredOn === false) return 'it is off';
  return status?.inRescue === true ? 'it is in rescue' : undefined;
}

function keptBy({ status }: Host): string | undefined {
  if (status === undefined) return undefined;
  if (status.deletion !== undefined) return `${status.deletion.by} asked for its deletion`;
  const hold = status.holds.find(({ scope }) => scope === HoldScope.WORK);
  if (hold !== undefined) return `its work is held by ${hold.by}: ${hold.reason}`;
  const run = runUnderWay({ run: status.run });
  return run === undefined ? undefined : heldBy(run);
}

const stateNames = new Map<number, string>(
  Object.entries(HostState).map(([name, value]) => [value, name.toLowerCase()]),
);

/** "manageable" */
export function stateName({ state }: Pick<SeenHost, 'state'>): string {
  return stateNames.get(state) ?? 'in a state that is not known';
}
