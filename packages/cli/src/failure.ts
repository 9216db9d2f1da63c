/** The error text for a person when something goes wrong, and the exit code for a script. */

import type { CertificateStatus } from '@rackwright/erasure';
import type { OciError, OciFailureKind } from '@rackwright/oci';

export const exitCodes = {
  done: 0,
  refused: 1,
  usage: 2,
  notFound: 3,
  conflict: 4,
  notAllowed: 5,
  unreachable: 6,
  notVerified: 7,
  metadataOnly: 8,
  voidCertificate: 9,
  superseded: 10,
  revoked: 11,
  revocationsUnknown: 12,
  stuck: 13,
  timedOut: 14,
  workFailed: 15,
  partlyDone: 16,
  internal: 70,
  interrupted: 130,
} as const;

/** The meaning of each exit code; the command's help and README print this table. */
export const exitCodeTexts: Readonly<Record<keyof typeof exitCodes, string>> = {
  done: 'done',
  refused: 'refused, or not agreed to',
  usage: 'wrong arguments',
  notFound: 'not found',
  conflict: 'conflict: it exists already, or has changed meanwhile',
  notAllowed: 'not allowed',
  unreachable: 'the control plane cannot be reached',
  notVerified: 'a certificate does not verify',
  metadataOnly: 'a certificate says that only metadata was erased',
  voidCertificate: 'a certificate is void',
  superseded: 'a certificate is superseded by a later one',
  revoked: 'a certificate is revoked',
  revocationsUnknown: 'it is not known whether a certificate is revoked',
  stuck: 'what is waited for does not come by itself: a person has to act',
  timedOut: 'what is waited for has not come in time',
  workFailed: 'the work that is waited for has failed',
  partlyDone: 'of many hosts, some are done and some are not',
  internal: 'an internal error, of the control plane or of this command',
  interrupted: 'stopped by Ctrl-C; what was started goes on',
};

/** Wrong arguments or settings, found by the command itself. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Why certificates do not prove that a device is erased. */
export type NotProved = Exclude<CertificateStatus, 'valid'> | 'revocationsUnknown';

/** At least one certificate does not prove what it should; the problems have been printed. */
export class NotVerified extends Error {
  override readonly name = 'NotVerified';
  readonly status: NotProved;

  constructor(message: string, status: NotProved) {
    super(message);
    this.status = status;
  }
}

/** Not all of many hosts are done; the report has been printed. */
export class NotAllDone extends Error {
  override readonly name = 'NotAllDone';
  /**
   * The common exit code of the hosts that are not done; otherwise some are done, or it differs.
   */
  readonly code: number;

  constructor(message: string, code: number) {
    super(message);
    this.code = code;
  }
}

/** The work that was waited for has ended, and not well. */
export class WorkFailed extends Error {
  override readonly name = 'WorkFailed';
}

/** The person has left with Ctrl-C. */
export class InterruptedError extends Error {
  override readonly name = 'Interrupted';
}

/** The awaited state was not reached in the given time. */
export class WaitedTooLong extends Error {
  override readonly name = 'WaitedTooLong';
}

/** The awaited state is not reached without help any more. */
export class GoalUnreachable extends Error {
  override readonly name = 'GoalUnreachable';
}

/** A person was asked and did not agree; nothing was done. */
export class DeclinedError extends Error {
  override readonly name = 'Declined';
}

/** A registry did not take an image. */
export class NotPushed extends Error {
  override readonly name = 'NotPushed';
  readonly kind: OciFailureKind;

  constructor(cause: OciError) {
    super(`not pushed: ${cause.message}`, { cause });
    this.kind = cause.kind;
  }
}

/** The control plane, or the identity provider, could not be reached. */
export class ServerUnreachable extends Error {
  override readonly name = 'ServerUnreachable';
}

/** Nobody is signed in, or not any more. */
export class SignInNeeded extends Error {
  override readonly name = 'SignInNeeded';
}
