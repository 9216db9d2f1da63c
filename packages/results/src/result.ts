/**
 * The six results of DESIGN §3 as one closed union. An attempt ends with exactly one of four; the
 * other two may come any number of times and are never acknowledged.
 */
import type { agent } from '@rackwright/api';

/** Why something is in the way. */
export const conflictReasons = ['locked', 'invalidState', 'duplicate', 'fault', 'frozen'] as const;
export type ConflictReason = (typeof conflictReasons)[number];

/** Every type that a failure may have; the list is closed (R8). */
export const failureTypes = [
  'authentication',
  /** What answers does not speak the protocol that was expected. */
  'protocol',
  /** Another certificate was shown than the pinned one. */
  'certificateMismatch',
  'identityMismatch',
  'identityUnproven',
  'notApplied',
  'interrupted',
  'unsupported',
  /** A program ended with another code than 0, or by a signal. */
  'exitCode',
  /** A command's image cannot be had, or is not what its digest names. */
  'imageUnusable',
  /** The image is not what its digest names. */
  'imageDigestMismatch',
  'imageTruncated',
  /** Nobody has the image under this name. */
  'imageNotFound',
  'registryUnreachable',
  'registryUnauthorized',
  /** The rack's cache has no room for it. */
  'noSpace',
  'wrongArchitecture',
  /** Larger than the disk. */
  'imageTooLarge',
  /** Broken, or of a kind that is not put onto disks. */
  'badImage',
  /** The firmware of the host finds nothing to boot on it. */
  'notBootable',
  /** The disk took something else than what was written, or nothing. */
  'writeError',
  /** The image would come onto a disk that is kept. */
  'keepDisk',
  'noRootDisk',
  /** The host was switched on and has not said that it runs its image. */
  'notProved',
  /** The turn that an order waited for did not come in the time that it was given. */
  'queueTimeout',
  'notErased',
  'unverified',
  'noDevices',
  /** Another device than the planned one stands in its place, or a planned one says otherwise. */
  'deviceChanged',
  /** A planned device was unplugged, or answers nothing any more. */
  'deviceVanished',
  /** The device hides capacity that the policy does not let it keep. */
  'hiddenArea',
  /** What was erased and verified has come back: after a delay or a power cycle. */
  'dataReturned',
  'ioError',
  'cancelled',
  'deadline',
  'invalidArgument',
  /** The control plane cannot open the credential that the operation needs. */
  'credentialUnusable',
  'internal',
] as const;
export type FailureType = (typeof failureTypes)[number];

/** Why it could not be told. */
export const transientCauses = [
  'unreachable',
  'runnerAway',
  'busy',
  'network',
  /** A registry of images does not answer, or the agent's cache is full of images in use. */
  'registry',
] as const;
export type TransientCause = (typeof transientCauses)[number];

/** Done. */
export interface Complete {
  readonly kind: 'complete';
  readonly observations?: agent.Observations;
  /** What a step did, signed by the agent. */
  readonly evidence?: agent.Evidence;
  /** What a step's program wrote, and how it ended. */
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
  /** It waits for its turn, and has not begun: 1 is next. */
  readonly queuePlace?: number;
  /** What has been seen of a host that is waited for, the last of each kind. */
  readonly signs?: readonly agent.HostSign[];
}

/** A conflict: nothing was done, it may be asked again after the delay. */
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
export interface Failed {
  readonly kind: 'failed';
  readonly type: FailureType;
  /** What is wrong and what would be right, for a person. */
  readonly message: string;
  /** The backend's own words. */
  readonly detail?: string;
  /** For `interrupted`: where it was. */
  readonly lastProgress?: string;
  readonly observations?: agent.Observations;
  /** What was done to devices before it failed, signed. */
  readonly evidence?: agent.Evidence;
  /** What a step's program wrote, and how it ended. */
  readonly output?: agent.StepOutput;
  /** Of an image that was to be written: this attempt has changed nothing on any disk. */
  readonly disksUntouched?: true;
}

/** Could not tell: the network, a silent BMC, a runner that is away. */
export interface TransientError {
  readonly kind: 'transientError';
  readonly cause: TransientCause;
  readonly message: string;
  /** How long whoever it is wants to be left alone, when it says so: milliseconds. */
  readonly delayMs?: number;
  /** As in `Failed`. */
  readonly disksUntouched?: true;
}

/** A result that ends its attempt: journalled, acknowledged, redelivered. */
export type FinalResult = Complete | RetryAfter | Failed | TransientError;

export type Result = FinalResult | Continuing | HostUpdated;
