/**
 * The six results of DESIGN §3 as one closed union. An attempt ends with exactly one of four; the
 * other two may come any number of times and are never acknowledged.
 */
import type { FailureDetails, FailureName, TransientName } from '@rackwright/messages';
import type * as agent from '@rackwright/messages/agent';

/** Why something is in the way. */
export const conflictReasons = [
  'locked',
  'invalidState',
  'duplicate',
  'fault',
  'frozen',
  'notReady',
] as const;
export type ConflictReason = (typeof conflictReasons)[number];

/** Done. */
export interface Complete {
  readonly kind: 'complete';
  readonly observations?: agent.Observations;
  /** The acts of a step, signed by the agent. */
  readonly evidence?: agent.Evidence;
  /** The output of a step's program, and its exit. */
  readonly output?: agent.StepOutput;
}

/** Accepted and under way. */
export interface Continuing {
  readonly kind: 'continuing';
  readonly step: string;
  /** 0–100. */
  readonly percent?: number;
  readonly text: string;
  /** When to expect the next one, milliseconds from now. */
  readonly hintMs?: number;
  /** Something outside may have been changed already. */
  readonly begun?: true;
  /** It waits for a slot, and has not begun: 1 is next. */
  readonly queuePlace?: number;
  /** The signs of an awaited host, the last of each kind. */
  readonly signs?: readonly agent.HostSign[];
}

/** A conflict: nothing was done, and it may be retried after the delay. */
export interface RetryAfter {
  readonly kind: 'retryAfter';
  readonly reason: ConflictReason;
  readonly message: string;
  /** ≥ 0. */
  readonly delayMs: number;
}

/** Observed facts only. */
export interface HostUpdated {
  readonly kind: 'hostUpdated';
  readonly observations: agent.Observations;
}

/** This attempt failed. */
export interface FailedAttempt {
  readonly kind: 'failed';
  readonly type: FailureName;
  /** What is wrong and what would be right, for a person. */
  readonly message: string;
  /** The backend's own words. */
  readonly detail?: string;
  readonly details?: FailureDetails;
  /** For `interrupted`: where it was. */
  readonly lastProgress?: string;
  readonly observations?: agent.Observations;
  /** The acts on devices before it failed, signed. */
  readonly evidence?: agent.Evidence;
  /** The output of a step's program, and its exit. */
  readonly output?: agent.StepOutput;
  /** For an image that was to be written: this attempt has changed nothing on any disk. */
  readonly disksUntouched?: true;
}

/** Could not tell: the network, a silent BMC, a runner that is away. */
export interface TransientError {
  readonly kind: 'transientError';
  readonly cause: TransientName;
  readonly message: string;
  /** The pause that the other side asks for, when it does: milliseconds. */
  readonly delayMs?: number;
  /** As in {@link FailedAttempt}. */
  readonly disksUntouched?: true;
}

/** A result that ends its attempt: journalled, acknowledged, redelivered. */
export type FinalResult = Complete | RetryAfter | FailedAttempt | TransientError;

export type Result = FinalResult | Continuing | HostUpdated;
