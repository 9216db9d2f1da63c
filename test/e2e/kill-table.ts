/**
 * The golden kill table: at each boundary that an erase step passes, each process is ended by
 * SIGKILL, and this is how the clean ends. `formats` is how often the NVMe disk saw a format begin:
 * a format that was cut short is checked before anything else, and repeated only if the check
 * cannot prove it. Disks begin one after another: when the runner dies as the first of them is
 * erased, the check finds another that is not, and all of them are erased again.
 *
 * Boundaries in the order in which an operation passes them; `occurrence` is the erase step's
 * passing of it: verify, power off, boot and inspect pass most of them before.
 */
import type { Victim } from './crash.ts';

export const boundaries = [
  { name: 'cp.operationStored', occurrence: 5 },
  { name: 'cp.operationSent', occurrence: 5 },
  { name: 'agent.journalled', occurrence: 5 },
  { name: 'agent.begun', occurrence: 4 },
  { name: 'runner.received', occurrence: 2 },
  { name: 'runner.begun', occurrence: 1 },
  { name: 'runner.challenged', occurrence: 1 },
  { name: 'runner.erased', occurrence: 1 },
  { name: 'runner.verified', occurrence: 1 },
  { name: 'runner.reported', occurrence: 2 },
  { name: 'agent.ended', occurrence: 5 },
  { name: 'agent.reported', occurrence: 5 },
  { name: 'cp.certificatesStored', occurrence: 1 },
  { name: 'cp.reportStored', occurrence: 5 },
  { name: 'cp.reportAcknowledged', occurrence: 5 },
] as const;

export type Boundary = (typeof boundaries)[number]['name'];

export interface KillEnd {
  readonly end: 'clean' | 'failed: interrupted';
  /** Any of these. */
  readonly formats: readonly (1 | 2)[];
}

const undisturbed: KillEnd = { end: 'clean', formats: [1] };
/** How far the other disks had come is a matter of time. */
const perhapsAgain: KillEnd = { end: 'clean', formats: [1, 2] };

export const killTable: { readonly [B in Boundary]: { readonly [V in Victim]: KillEnd } } = {
  'cp.operationStored': everybody(undisturbed),
  'cp.operationSent': everybody(undisturbed),
  'agent.journalled': everybody(undisturbed),
  'agent.begun': everybody(undisturbed),
  'runner.received': everybody(undisturbed),
  'runner.begun': everybody(undisturbed),
  'runner.challenged': everybody(undisturbed),
  'runner.erased': { ...everybody(undisturbed), runner: perhapsAgain },
  'runner.verified': { ...everybody(undisturbed), runner: perhapsAgain },
  'runner.reported': everybody(undisturbed),
  'agent.ended': everybody(undisturbed),
  'agent.reported': everybody(undisturbed),
  // Certificates stand before the record that cites them: the turn after finds the same.
  'cp.certificatesStored': everybody(undisturbed),
  'cp.reportStored': everybody(undisturbed),
  'cp.reportAcknowledged': everybody(undisturbed),
};

function everybody(end: KillEnd): { readonly [V in Victim]: KillEnd } {
  return { controlplane: end, agent: end, runner: end };
}

/**
 * Boundaries of a clean that reads again at once, after a power cycle; the first ones of the
 * erasure's own are above. What each leads to: `formats` as there, and one document of each kind
 * for each that is due.
 */
export const proofBoundaries = [
  { name: 'cp.manifestStored', occurrence: 1 },
  { name: 'runner.rereadBegun', occurrence: 1 },
  { name: 'runner.reread', occurrence: 1 },
  // The first of two: one disk has its addendum, the other one not yet.
  { name: 'cp.addendumStored', occurrence: 1 },
] as const;

/** Of a clean that reads again at once, whoever is killed in it. */
export const proofEnd = { formats: 1, manifests: 1, addenda: 2, revocations: 0 } as const;

/**
 * The boundary of a runner's next boot that finds data again on a disk that was certified; what it
 * leads to, whoever is killed there. The other disk's addendum is due once both are read well.
 */
export const revocationBoundaries = [
  { name: 'runner.rereadBegun', occurrence: 1 },
  { name: 'runner.reread', occurrence: 1 },
  { name: 'cp.revocationStored', occurrence: 1 },
] as const;

export const revocationEnd = { formats: 1, manifests: 1, addenda: 0, revocations: 1 } as const;

/** Boundaries of a forced removal whose agent hangs, from the note to the lifted fence. */
export const removalBoundaries = [
  'cp.abandonedStored',
  'cp.tombstoneStored',
  'cp.hostRemoved',
  'agent.forgot',
  'cp.fenceLifted',
] as const;

export const removalVictims = ['controlplane', 'agent'] as const;

export interface RemovalEnd {
  /** Records of what was left behind: one for one removal, however often it began. */
  readonly notes: 1;
  /** Hosts that the agent has still to forget. */
  readonly tombstones: 0;
  /** The host enrolled with the same addresses. */
  readonly successor: 'verified';
}

type RemovalTable = {
  readonly [B in (typeof removalBoundaries)[number]]: {
    readonly [V in (typeof removalVictims)[number]]: RemovalEnd;
  };
};

const asUndisturbed: RemovalEnd = { notes: 1, tombstones: 0, successor: 'verified' };
const either = { controlplane: asUndisturbed, agent: asUndisturbed };

/** Each process, killed at each of them: what a forced removal comes to in the end. */
export const removalTable: RemovalTable = {
  'cp.abandonedStored': either,
  'cp.tombstoneStored': either,
  'cp.hostRemoved': either,
  'agent.forgot': either,
  'cp.fenceLifted': either,
};

/**
 * Boundaries of a step that hands its host off, in the order in which it passes them. Power off,
 * boot and the script before it pass some of them earlier: `occurrence` is the hand-off's.
 */
export const handOffBoundaries = [
  { name: 'runner.received', occurrence: 2 },
  { name: 'runner.reported', occurrence: 2 },
  { name: 'agent.ended', occurrence: 4 },
  { name: 'cp.reportStored', occurrence: 4 },
  { name: 'agent.handedOff', occurrence: 1 },
  { name: 'runner.handingOff', occurrence: 1 },
] as const;

export interface HandOffEnd {
  /** How often the script of the hand-off ran. */
  readonly acted: 0 | 1;
  readonly end: 'succeeded' | 'held';
}

type HandOffTable = {
  readonly [B in (typeof handOffBoundaries)[number]['name']]: {
    readonly [V in Victim]: HandOffEnd;
  };
};

const handedOff: HandOffEnd = { acted: 1, end: 'succeeded' };
const allHandedOff = { controlplane: handedOff, agent: handedOff, runner: handedOff };

/** Each process, killed at each of them: a hand-off acts at most once, and the run goes on. */
export const handOffTable: HandOffTable = {
  // Nobody knows how far a script had come that must not run twice: a person decides.
  'runner.received': { ...allHandedOff, runner: { acted: 0, end: 'held' } },
  'runner.reported': allHandedOff,
  'agent.ended': allHandedOff,
  'cp.reportStored': allHandedOff,
  'agent.handedOff': allHandedOff,
  // It had been told to act, and says no more: the run goes on without.
  'runner.handingOff': { ...allHandedOff, runner: { acted: 0, end: 'succeeded' } },
};
