/**
 * What moves a host from one stable state to another, and what that says of its disks: the end of
 * each run, and each sign beside runs. A missing cell does not compile (DESIGN §4).
 *
 * T1 Nothing else writes the host's `state`, `dirty` and `useEpoch`.
 * T2 A host leaves `available` by every cause after which its certificates prove nothing.
 */
import { HostState, type HostStatus, RunKind, RunOutcome } from '@rackwright/messages';

export type State = (typeof HostState)[Exclude<keyof typeof HostState, 'UNSPECIFIED'>];
export type Kind = (typeof RunKind)[Exclude<keyof typeof RunKind, 'UNSPECIFIED'>];
export type Outcome = (typeof RunOutcome)[Exclude<keyof typeof RunOutcome, 'UNSPECIFIED'>];

/** Where the end of a run leaves the host. */
export interface Landing {
  /**
   * `same`: where it was. `proved`: new becomes manageable. `goal`: where the goal ends. `adopted`:
   * what the adoption named.
   */
  readonly to: 'same' | 'proved' | 'goal' | 'adopted' | State;
  /** Unset: as it was. `clean`: no longer dirty if the run erased as the policy asks. */
  readonly disks?: 'clean' | 'dirty';
  /** Where it is instead, when nothing was written and every disk is certified as before. */
  readonly untouched?: State;
  /**
   * A fault of this type stands until the same kind of run succeeds. Not of a run that was stopped
   * before it had touched a disk.
   */
  readonly fault?: string;
}

type Landings = { readonly [O in Outcome]: Landing };

/** Success leads somewhere; every bad end leads to one place, a cancelled one without a fault. */
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

/** While it stands, the host is verified before anything else. */
export const verifyFailed = 'verifyFailed';
export const provisionFailed = 'provisionFailed';

/** Where the end of its deletion leaves a host; who asks afterwards is shown it so. */
export const removed = { to: HostState.GONE } as const satisfies Landing & Transition;

/** Run kind × outcome. */
export const landings: { readonly [K in Kind]: Landings } = {
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
  // Whoever ends it half-way leaves half an image.
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
  [RunKind.ADOPT]: landing({ to: 'adopted', disks: 'dirty' }, { to: 'same', fault: 'adoptFailed' }),
  [RunKind.DELETE]: landing(removed, { to: 'same' }),
};

/** What happens to a host beside the ends of its runs. */
export type Sign =
  /** Data may have come onto its disks, or may from here on: it was on, or is switched on. */
  | 'used'
  /** Another machine answers under its name. */
  | 'otherMachine'
  /** Reading again could not show that its disks keep their erasure. */
  | 'unproved'
  /** What is in it, or how it boots, is not what was inspected. */
  | 'changed'
  /** An image is about to be written. */
  | 'written'
  /** Its goal is no longer to be available. */
  | 'unwanted'
  /** A person removes it by force while a newer version's work on it is not understood here. */
  | 'notUnderstood';

/** What a cause does to a host. */
export interface Transition {
  /** Unset: it stays where it is. */
  readonly to?: State;
  /** Unset: as they were. */
  readonly disks?: 'clean' | 'dirty';
  /** Certificates of before say nothing of its disks from here on. */
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

/** It is not available any more; elsewhere only the effect remains. */
function notAvailable(effect: Transition): Row {
  return {
    ...everywhere(effect),
    [HostState.AVAILABLE]: { ...effect, to: HostState.MANAGEABLE },
  };
}

/** Sign × state. */
export const signs: { readonly [S in Sign]: Row } = {
  used: notAvailable({ disks: 'dirty', use: 'next' }),
  otherMachine: notAvailable({ disks: 'dirty', use: 'next' }),
  unproved: notAvailable({ disks: 'dirty', use: 'next' }),
  changed: notAvailable({ disks: 'dirty', use: 'next' }),
  // The end of the run counts the use: an attempt that wrote nothing leaves the host as it was.
  written: notAvailable({ disks: 'dirty' }),
  // What was erased stays erased.
  unwanted: {
    ...everywhere({}),
    [HostState.AVAILABLE]: { to: HostState.MANAGEABLE, use: 'next' },
  },
  // Nothing of it is switched.
  notUnderstood: everywhere({ to: HostState.EXTERNAL }),
};

/** Moves a host by a sign. */
export function move(status: HostStatus, sign: Sign): void {
  const row = signs[sign];
  // Of a state that only a newer version knows, all that is left is to give it up.
  transit(status, row[status.state as State] ?? row[HostState.EXTERNAL]);
}

/** Moves a host; for the end of a run, whose target depends on the host besides. */
export function transit(status: HostStatus, { to, disks, use }: Transition): void {
  if (to !== undefined) status.state = to;
  if (disks !== undefined) status.dirty = disks === 'dirty';
  if (use === 'next') status.useEpoch += 1n;
}
