/**
 * What moves a host between stable states, and the effect on its disks: the end of each run, and
 * each cause outside runs. A missing cell does not compile (DESIGN §4).
 *
 * T1 Nothing else writes the host's `state`, `dirty` and `useEpoch`.
 * T2 A host leaves `available` for every cause after which its certificates prove nothing.
 */
import {
  HostState,
  type HostStatus,
  type RunFault,
  RunKind,
  RunOutcome,
} from '@rackwright/messages';

export type State = (typeof HostState)[Exclude<keyof typeof HostState, 'UNSPECIFIED'>];
export type KnownRunKind = (typeof RunKind)[Exclude<keyof typeof RunKind, 'UNSPECIFIED'>];
export type Outcome = (typeof RunOutcome)[Exclude<keyof typeof RunOutcome, 'UNSPECIFIED'>];

/** The state of the host after the end of a run. */
export interface Landing {
  /**
   * `same`: unchanged. `proved`: new becomes manageable. `goal`: the state of the goal. `adopted`:
   * the state named by the adoption.
   */
  readonly to: 'same' | 'proved' | 'goal' | 'adopted' | State;
  /** Unset: unchanged. `clean`: no longer dirty if the run erased as the policy demands. */
  readonly disks?: 'clean' | 'dirty';
  /** From here on earlier certificates do not apply to its disks. */
  readonly use?: 'next';
  /** The state instead, when nothing was written and every disk is certified as before. */
  readonly untouched?: State;
  /**
   * A fault of this type lasts until the same kind of run succeeds. Not for a run that was stopped
   * before it had touched a disk.
   */
  readonly fault?: RunFault;
}

type Landings = { readonly [O in Outcome]: Landing };

/**
 * Success leads to one state; every failure leads to another, and a cancelled run leaves no fault.
 */
function landing(succeeded: Landing, failed: Landing): Landings {
  const { fault: _, ...cancelled } = failed;
  return landingOf(succeeded, failed, cancelled);
}

function landingOf(succeeded: Landing, failed: Landing, cancelled = failed): Landings {
  return {
    [RunOutcome.SUCCEEDED]: succeeded,
    [RunOutcome.FAILED]: failed,
    [RunOutcome.TIMED_OUT]: failed,
    [RunOutcome.CANCELLED]: cancelled,
  };
}

/** While it lasts, the host is verified before anything else. */
export const verifyFailed = 'verifyFailed' satisfies RunFault;
export const provisionFailed = 'provisionFailed' satisfies RunFault;

/** The state after a deletion; later reads show the host in it. */
export const removed = { to: HostState.GONE } as const satisfies Landing & Transition;

/** Run kind × outcome. */
export const landings: { readonly [K in KnownRunKind]: Landings } = {
  [RunKind.VERIFY]: landing({ to: 'proved' }, { to: 'same', fault: verifyFailed }),
  [RunKind.INSPECT]: landing({ to: 'same' }, { to: 'same', fault: 'inspectFailed' }),
  [RunKind.CLEAN]: landing(
    { to: 'goal', disks: 'clean' },
    { to: HostState.MANAGEABLE, disks: 'dirty', fault: 'cleanFailed' },
  ),
  [RunKind.PROVISION]: landing(
    { to: HostState.PROVISIONED, disks: 'dirty' },
    {
      ...{ to: HostState.MANAGEABLE, disks: 'dirty', untouched: HostState.AVAILABLE },
      fault: provisionFailed,
    },
  ),
  // A reimage that ends half-way leaves half an image.
  [RunKind.REIMAGE]: landingOf(
    { to: HostState.PROVISIONED, disks: 'dirty' },
    { to: HostState.PROVISIONED, disks: 'dirty', fault: 'reimageFailed' },
  ),
  [RunKind.SERVICE]: landing({ to: 'same' }, { to: 'same', fault: 'serviceFailed' }),
  [RunKind.WORKFLOW]: landing({ to: 'same' }, { to: 'same', fault: 'workflowFailed' }),
  [RunKind.RELEASE]: landing(
    { to: HostState.MANAGEABLE, disks: 'dirty' },
    { to: HostState.PROVISIONED, fault: 'releaseFailed' },
  ),
  [RunKind.POWER]: landing({ to: 'same' }, { to: 'same', fault: 'powerFailed' }),
  [RunKind.RESCUE]: landing({ to: 'same' }, { to: 'same', fault: 'rescueFailed' }),
  // A person has put a system onto it, which no later run may take for data that has returned.
  [RunKind.ADOPT]: landing(
    { to: 'adopted', disks: 'dirty', use: 'next' },
    { to: 'same', fault: 'adoptFailed' },
  ),
  [RunKind.DELETE]: landing(removed, { to: 'same' }),
};

/** What moves a host outside the ends of its runs. */
export type TransitionCause =
  /** New data may be on its disks, or may come from here on: it was on, or is switched on. */
  | 'used'
  /** Another machine responds under its name. */
  | 'otherMachine'
  /** A second reading could not show that its disks are still erased. */
  | 'unproved'
  /** Its hardware, or its boot interface, differs from the inspected one. */
  | 'changed'
  /** An image is about to be written. */
  | 'written'
  /** Its goal is no longer to be available. */
  | 'unwanted'
  /** A person removes it by force during the work of a newer version, which is unknown here. */
  | 'notUnderstood';

/** The effect of a cause on a host. */
export interface Transition {
  /** Unset: the state stays. */
  readonly to?: State;
  /** Unset: unchanged. */
  readonly disks?: 'clean' | 'dirty';
  /** From here on earlier certificates do not apply to its disks. */
  readonly use?: 'next';
}

type Row = { readonly [S in State]: Transition };

function everywhere(transition: Transition): Row {
  return {
    [HostState.NEW]: transition,
    [HostState.MANAGEABLE]: transition,
    [HostState.AVAILABLE]: transition,
    [HostState.PROVISIONED]: transition,
    [HostState.EXTERNAL]: transition,
    [HostState.GONE]: transition,
  };
}

/** The host is no longer available; in other states only the effect remains. */
function notAvailable(effect: Transition): Row {
  return {
    ...everywhere(effect),
    [HostState.AVAILABLE]: { ...effect, to: HostState.MANAGEABLE },
  };
}

/** Cause × state. */
export const causes: { readonly [S in TransitionCause]: Row } = {
  used: notAvailable({ disks: 'dirty', use: 'next' }),
  otherMachine: notAvailable({ disks: 'dirty', use: 'next' }),
  unproved: notAvailable({ disks: 'dirty', use: 'next' }),
  changed: notAvailable({ disks: 'dirty', use: 'next' }),
  // The end of the run raises the use epoch: an attempt that wrote nothing leaves the host
  // unchanged.
  written: notAvailable({ disks: 'dirty' }),
  // Erased disks stay erased.
  unwanted: {
    ...everywhere({}),
    [HostState.AVAILABLE]: { to: HostState.MANAGEABLE, use: 'next' },
  },
  // Its power is not changed.
  notUnderstood: everywhere({ to: HostState.EXTERNAL }),
};

/** Applies a cause to a host. */
export function move(status: HostStatus, cause: TransitionCause): void {
  const row = causes[cause];
  // A host in a state that only a newer version knows can only be given up.
  transit(status, row[status.state as State] ?? row[HostState.EXTERNAL]);
}

/** Applies a transition; for the end of a run, whose target also depends on the host. */
export function transit(status: HostStatus, { to, disks, use }: Transition): void {
  if (to !== undefined) status.state = to;
  if (disks !== undefined) status.dirty = disks === 'dirty';
  if (use === 'next') status.useEpoch += 1n;
}
