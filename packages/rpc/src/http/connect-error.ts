/** An `ApiFailure` as Connect and gRPC-Web tell it. */
import { ConnectError } from '@connectrpc/connect';
import type { ApiFailure } from '@rackwright/messages';
import { tellError } from '../wire/status.ts';

/**
 * Its code, message and details as gRPC has them. What it says of time and of tokens stands in
 * headers as well, where whoever knows HTTP alone looks for it.
 */
export function connectError({ error }: ApiFailure): ConnectError {
  const { code, message, details } = tellError(error);
  const headers = new Headers();
  if (error.kind === 'unauthenticated') headers.set('www-authenticate', 'Bearer');
  if (error.kind === 'unavailable' && error.retryAfterMs !== undefined) {
    headers.set('retry-after', String(Math.ceil(error.retryAfterMs / 1_000)));
  }
  const own = details.map(({ desc, value }) => ({ desc, value: value as never }));
  // Both protocols number their codes alike.
  return new ConnectError(message, code as number, headers, own);
}
