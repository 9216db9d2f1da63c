/** The text of a failure, and its exit code: also of calls, which take more to load. */
import { type ApiError, ApiFailure, counted, verbFor } from '@rackwright/messages';
import type { OciFailureKind } from '@rackwright/oci';
import { errorText } from '@rackwright/platform';
import {
  DeclinedError,
  exitCodes,
  GoalUnreachable,
  InterruptedError,
  NotAllDone,
  type NotProved,
  NotPushed,
  NotVerified,
  ServerUnreachable,
  SignInNeeded,
  UsageError,
  WaitedTooLong,
  WorkFailed,
} from './failure.ts';
import { clean } from './output/text.ts';

const statusCodes: Readonly<Record<NotProved, number>> = {
  invalid: exitCodes.notVerified,
  metadataOnly: exitCodes.metadataOnly,
  void: exitCodes.voidCertificate,
  superseded: exitCodes.superseded,
  revoked: exitCodes.revoked,
  revocationsUnknown: exitCodes.revocationsUnknown,
};

/** Exit codes of failures other than a refusal. */
const notPushedCodes: Partial<Record<OciFailureKind, number>> = {
  unauthorized: exitCodes.notAllowed,
  notFound: exitCodes.notFound,
  unreachable: exitCodes.unreachable,
  cancelled: exitCodes.unreachable,
  tooMany: exitCodes.unreachable,
};

/** The exit code for an error of a command. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError) return exitCodes.usage;
  if (error instanceof NotPushed) return notPushedCodes[error.kind] ?? exitCodes.refused;
  if (error instanceof NotVerified) return statusCodes[error.status];
  if (error instanceof NotAllDone) return error.code;
  if (error instanceof DeclinedError) return exitCodes.refused;
  if (error instanceof WorkFailed) return exitCodes.workFailed;
  if (error instanceof InterruptedError) return exitCodes.interrupted;
  if (error instanceof ServerUnreachable) return exitCodes.unreachable;
  if (error instanceof SignInNeeded) return exitCodes.notAllowed;
  if (error instanceof GoalUnreachable) return exitCodes.stuck;
  if (error instanceof WaitedTooLong) return exitCodes.timedOut;
  return error instanceof ApiFailure ? exitCodeOfApi(error.error) : exitCodes.internal;
}

/** The text on standard error, several lines without the last line break. */
export function describeFailure(error: unknown): string {
  if (error instanceof ApiFailure) return describeApi(error.error);
  // An error that a command throws on purpose is complete; for any other its causes add to it.
  const isOwn = error instanceof Error && exitCodeOf(error) !== exitCodes.internal;
  return `rackwright: ${clean(isOwn ? error.message : errorText(error))}`;
}

function exitCodeOfApi(error: ApiError): number {
  switch (error.kind) {
    case 'invalidArgument':
    case 'unimplemented':
      return exitCodes.usage;
    case 'notFound':
      return exitCodes.notFound;
    case 'alreadyExists':
    case 'aborted':
      return exitCodes.conflict;
    case 'unauthenticated':
    case 'permissionDenied':
      return exitCodes.notAllowed;
    case 'unavailable':
    case 'deadlineExceeded':
      return exitCodes.unreachable;
    // Nobody but the person at this command ends its calls.
    case 'cancelled':
      return exitCodes.interrupted;
    case 'failedPrecondition':
    case 'outOfRange':
    case 'resourceExhausted':
      return exitCodes.refused;
    case 'internal':
      return exitCodes.internal;
  }
}

function describeApi(error: ApiError): string {
  const violations = 'violations' in error ? error.violations : [];
  if (violations.length === 0) return `rackwright: ${clean(error.message)}`;
  const count = `${counted(violations.length, 'field')} ${verbFor(violations.length)} wrong`;
  const lines = violations.map(
    ({ field, description }) => `  ${clean(field)} ${clean(description)}`,
  );
  return [`rackwright: ${count}:`, ...lines].join('\n');
}
