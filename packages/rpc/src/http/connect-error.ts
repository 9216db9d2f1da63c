/** An `ApiFailure` in the form of Connect and gRPC-Web. */
import { Code, ConnectError } from '@connectrpc/connect';
import type { ApiErrorKind, ApiFailure } from '@rackwright/messages';
import { tellError } from '../wire/status.ts';

const codes: Readonly<Record<ApiErrorKind, Code>> = {
  invalidArgument: Code.InvalidArgument,
  notFound: Code.NotFound,
  alreadyExists: Code.AlreadyExists,
  failedPrecondition: Code.FailedPrecondition,
  aborted: Code.Aborted,
  outOfRange: Code.OutOfRange,
  unauthenticated: Code.Unauthenticated,
  permissionDenied: Code.PermissionDenied,
  resourceExhausted: Code.ResourceExhausted,
  unavailable: Code.Unavailable,
  deadlineExceeded: Code.DeadlineExceeded,
  cancelled: Code.Canceled,
  unimplemented: Code.Unimplemented,
  internal: Code.Internal,
};

/**
 * Its code, message and details as gRPC has them. Its hints about time and tokens are in headers as
 * well, for clients that know HTTP alone.
 */
export function connectError({ error }: ApiFailure): ConnectError {
  const { message, details } = tellError(error);
  const headers = new Headers();
  if (error.kind === 'unauthenticated') headers.set('www-authenticate', 'Bearer');
  if (error.kind === 'unavailable' && error.retryAfterMs !== undefined) {
    headers.set('retry-after', String(Math.ceil(error.retryAfterMs / 1_000)));
  }
  const own = details.map(({ desc, value }) => ({ desc, value: value as never }));
  return new ConnectError(message, codes[error.kind], headers, own);
}
