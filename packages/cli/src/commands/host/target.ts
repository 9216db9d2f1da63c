/** The target of a wait for a host, and whether it is reached. Pure. */
import {
  failureWord,
  faultOfType,
  HoldScope,
  type Host,
  HostState,
  type HostWait,
  hostWaitOf,
  isGivenUp,
  isPoolClaim,
  type Run,
  RunKind,
  RunOutcome,
  RunPhase,
} from '@rackwright/messages';
import { enumName, enumValue } from '../../output/enum-name.ts';

/** Every state that a host can be in, and `deleted`, which is the same as gone. */
export const untilWords = [
  'new',
  'manageable',
  'available',
  'provisioned',
  'external',
  'gone',
  'deleted',
] as const;

export type UntilWord = (typeof untilWords)[number];

/** The end of one run, or a state. */
export type HostTarget =
  | { readonly kind: 'run'; readonly number: bigint; readonly name: string }
  | { readonly kind: 'state'; readonly until: UntilWord };

/** The progress of a host on its way to a target. */
export type TargetProgress =
  | { readonly kind: 'open' }
  | { readonly kind: 'reached' }
  /** The run has ended, and not well. */
  | { readonly kind: 'failed'; readonly why: string }
  /** It is not reached without help: a person has to act. */
  | { readonly kind: 'stuck'; readonly why: string }
  /** Another run has followed it; the history has its outcome. */
  | { readonly kind: 'passed' };

const open: TargetProgress = { kind: 'open' };
const reached: TargetProgress = { kind: 'reached' };

/**
 * The target of a command's work: its run, the state of the host's goal, or its end. Undefined: it
 * has started nothing, so there is nothing to wait for. `isRepeated`: the request may have been
 * made before, and its run may be over.
 */
export function targetAfter(
  host: Host,
  of: 'run' | 'goal' | 'deleted',
  isRepeated: boolean,
): HostTarget | undefined {
  const { run } = host.status ?? {};
  switch (of) {
    case 'run':
      return run === undefined || (run.phase === RunPhase.ENDED && !isRepeated)
        ? undefined
        : { kind: 'run', number: run.number, name: runName(run) };
    case 'goal':
      return { kind: 'state', until: goalOf(host) };
    case 'deleted':
      return { kind: 'state', until: 'deleted' };
  }
}

/** The end of the host's goal: a retired host ends in manageable. */
function goalOf({ spec }: Host): UntilWord {
  const goal = enumName('HostGoal', spec?.goal ?? 0);
  return spec?.retired === true || goal === 'manageable' ? 'manageable' : 'available';
}

/** "clean 3 of hosts/h1 to end", "hosts/h1 to be available" */
export function targetText(name: string, target: HostTarget): string {
  return target.kind === 'run'
    ? `${target.name} of ${name} to end`
    : `${name} to be ${target.until}`;
}

/** Progress of `host`; `isDeleted`: it is deleted, and `host` is its last known state. */
export function verdictOf(
  target: HostTarget,
  host: Host,
  { isDeleted }: { readonly isDeleted: boolean },
): TargetProgress {
  if (target.kind === 'state') {
    if (isReached(target.until, host, isDeleted)) return reached;
    if (isDeleted) return stuck('it was deleted');
    return beforeState(host, target.until);
  }
  if (isDeleted) return stuck('it was deleted');
  const { run } = host.status ?? {};
  if (run === undefined || run.number < target.number) return open;
  if (run.number > target.number) return { kind: 'passed' };
  if (run.phase === RunPhase.ENDED) return verdictOfEnded(run);
  return duringRun(run);
}

/** The outcome of a run that has ended. */
export function verdictOfEnded({ outcome, error }: Run): TargetProgress {
  if (outcome === RunOutcome.SUCCEEDED) return reached;
  const word = enumName('RunOutcome', outcome) || 'ended';
  const why = error === undefined ? word : `${word}: ${failureWord(error.type)}: ${error.message}`;
  return { kind: 'failed', why };
}

function isReached(until: UntilWord, { status }: Host, isDeleted: boolean): boolean {
  if (isGone(until)) return isDeleted || status?.state === HostState.GONE;
  return !isDeleted && status?.state === enumValue('HostState', until);
}

/** Whether that is no state of a host any more, but its end. */
export function isGone(until: UntilWord | undefined): boolean {
  return until === 'deleted' || until === 'gone';
}

/** Whether a command gives up at a wait, as one that only a person ends. */
const endsByPerson: { readonly [W in HostWait]: boolean } = {
  hold: true,
  restored: true,
  agent: false,
  runner: false,
  bmc: false,
  person: false,
  registry: false,
  image: false,
  conflict: false,
  retry: false,
  webhook: false,
  wait: false,
  freeze: false,
  wipeBudget: false,
  capacity: false,
};

/** The progress of a run that goes on. */
function duringRun({ phase, waiting }: Run): TargetProgress {
  const wait = phase === RunPhase.WAITING ? hostWaitOf(waiting) : undefined;
  const isForPerson = wait !== undefined && endsByPerson[wait];
  return isForPerson ? stuck(`it waits for a person: ${waiting?.message}`) : open;
}

/**
 * The progress of a host that has not reached the state. A host that is held for a time, frozen, or
 * away from its agent or BMC goes on by itself.
 */
function beforeState({ status }: Host, until: UntilWord): TargetProgress {
  if (status === undefined) return open;
  const { backoff, run, holds, faults, claim } = status;
  const active = run === undefined || run.phase === RunPhase.ENDED ? undefined : run;
  if (active !== undefined) return duringRun(active);
  const hold = holds.find((each) => each.scope === HoldScope.WORK && each.until === undefined);
  if (hold !== undefined) return stuck(`${hold.by} holds it: ${hold.reason}`);
  if (isGivenUp(backoff)) {
    return stuck(`Rackwright stopped trying: ${backoff?.givenUpReason}`);
  }
  if (status.inRescue && !isGone(until)) {
    return stuck('it is in rescue, and nothing is started there');
  }
  const unknown = faultOfType(faults, 'bootMacUnknown');
  if (unknown !== undefined && run?.kind === RunKind.INSPECT) return stuck(unknown.message);
  const failed = faultOfType(faults, 'provisionFailed');
  const isPools = claim !== undefined && isPoolClaim(claim);
  // A pool tries its hosts again by itself.
  if (until !== 'provisioned' || failed === undefined || isPools) {
    return open;
  }
  return stuck(failed.message);
}

function stuck(why: string): TargetProgress {
  return { kind: 'stuck', why };
}

/** "clean 3" */
export function runName({ kind, number }: Run): string {
  return `${enumName('RunKind', kind)} ${number}`;
}
