/** The known state of a pool and its hosts at one moment: the types of `survey.ts`. */
import type { RolloutSlot, RolloutTarget } from '@rackwright/messages';
import type { Opening } from '../policy/windows.ts';
import type { SeenHost } from './seen.ts';
import type { TargetImage } from './target.ts';

export type HostStatusInPool =
  /** Healthy on its image. */
  | 'current'
  /** Holds a slot. */
  | 'out'
  /** Could go, and waits in the queue. */
  | 'waiting'
  /** A reason of its own keeps it. */
  | 'kept'
  | 'failed'
  /** The pool has not claimed it yet. */
  | 'unclaimed';

export interface SurveyedHost {
  readonly name: string;
  readonly host: SeenHost;
  readonly status: HostStatusInPool;
  readonly wanted: TargetImage | undefined;
  /** Pinned to an image of its own: it is no part of the rollout. */
  readonly isPinned: boolean;
  readonly slot: RolloutSlot | undefined;
  readonly wave: number;
  /** What keeps it, or why it failed; empty while it only waits in the queue. */
  readonly why: string;
  readonly untilMs: number | undefined;
  readonly order: string;
}

export interface Survey {
  readonly target: RolloutTarget | undefined;
  readonly surveyedHosts: readonly SurveyedHost[];
  readonly slots: readonly RolloutSlot[];
  readonly unavailableMax: number;
  readonly perRackMax: number | undefined;
  readonly failedCount: number;
  readonly threshold: number;
  /** What stops all hosts that are not pinned. */
  readonly stop: PoolStop | undefined;
  /** What also stops the pinned ones. */
  readonly manualStop: PoolStop | undefined;
  readonly opening: Opening;
  /** What is probably a mistake. */
  readonly warnings: readonly string[];
  /** Hosts of later waves wait. */
  readonly currentWave: number;
  /** The awaited host: "hosts/h1", with " of wave canary" where there are waves; empty: none. */
  readonly waveWaitsFor: string;
  /** A host of the pool has run the target in good health for long enough. */
  readonly isProven: boolean;
  /** The pool goes back from a failed image: it does not wait for hosts that are not ready. */
  readonly isBack: boolean;
}

/** Why a host that could go has to wait. */
export interface PoolWait {
  readonly kind: /** Something holds the whole pool. */
    | 'poolStopped'
    /** An earlier wave is not done. */
    | 'wave'
    /** The first host of a target goes alone. */
    | 'first'
    /** As many hosts are out as may be. */
    | 'slot'
    /** The same in its rack. */
    | 'rackSlot'
    /** No window is open. */
    | 'window';
  /** For people. */
  readonly text: string;
}

/** Why a whole pool begins nothing. */
export type PoolStopReason =
  | 'deleting'
  | 'paused'
  | 'stopped'
  | 'noTarget'
  | 'halted'
  | 'wavesEmpty';

/** What keeps the whole pool from beginning anything. */
export interface PoolStop {
  readonly reason: PoolStopReason;
  readonly text: string;
}
