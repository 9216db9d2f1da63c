/** What is known of a pool and its hosts at one moment: the types of `survey.ts`. */
import type { RolloutSlot, RolloutTarget } from '@rackwright/messages';
import type { Opening } from '../policy/windows.ts';
import type { SeenHost } from './seen.ts';
import type { Wanted } from './target.ts';

export type Stand =
  /** Healthy on its image. */
  | 'current'
  /** Holds a slot. */
  | 'out'
  /** Could go, and waits for its turn. */
  | 'waiting'
  /** Something of its own keeps it. */
  | 'kept'
  | 'failed'
  /** Its claim is not the pool's yet. */
  | 'unclaimed';

export interface SurveyedHost {
  readonly name: string;
  readonly host: SeenHost;
  readonly stand: Stand;
  readonly wanted: Wanted | undefined;
  /** To an image of its own: it is no part of the rollout. */
  readonly isPinned: boolean;
  readonly slot: RolloutSlot | undefined;
  readonly wave: number;
  /** What keeps it, or why it failed; empty when its turn does. */
  readonly why: string;
  readonly untilMs: number | undefined;
  readonly order: string;
}

export interface Survey {
  readonly target: RolloutTarget | undefined;
  readonly standings: readonly SurveyedHost[];
  readonly slots: readonly RolloutSlot[];
  readonly unavailableMax: number;
  readonly perRackMax: number | undefined;
  readonly failedCount: number;
  readonly threshold: number;
  /** What stops all that are not pinned. */
  readonly held: Held | undefined;
  /** What stops those that are, too. */
  readonly heldByHand: Held | undefined;
  readonly opening: Opening;
  /** What is likely not meant so. */
  readonly warnings: readonly string[];
  /** Hosts of later waves wait. */
  readonly currentWave: number;
  /** For whom: "hosts/h1", with " of wave canary" where there are waves; empty: for nobody. */
  readonly waveWaitsFor: string;
  /** A host of the pool runs the target in good health, and has done so long enough. */
  readonly isProven: boolean;
  /** The pool goes back from what failed: who is not ready is not waited for. */
  readonly isBack: boolean;
}

/** Why a whole pool begins nothing. */
export type HeldReason = 'deleting' | 'paused' | 'stopped' | 'noTarget' | 'halted' | 'wavesEmpty';

/** What keeps the whole pool from beginning anything. */
export interface Held {
  readonly reason: HeldReason;
  readonly text: string;
}
