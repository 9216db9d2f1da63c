/**
 * The text of every refusal, each with what to do next.
 *
 * Must not: reveal to a scoped caller whether something out of its scope exists.
 */
import {
  ApiFailure,
  permissionDenied,
  type Role,
  unauthenticated,
  unavailable,
} from '@rackwright/messages';
import { type Principal, roleText, scopeText } from './principal.ts';

const grants =
  'An administrator makes another token: rackwright token create NAME --role ROLE --expires 90d.';

/** No credentials came with the call. */
export function tokenMissing(): ApiFailure {
  return unauthenticated(
    'TOKEN_MISSING',
    'No token was sent. Name its file with --token-file or RACKWRIGHT_TOKEN_FILE; programs send ' +
      '"authorization: Bearer TOKEN".',
  );
}

/** It has the form of neither our tokens nor those of an identity provider. */
export function tokenUnknown(): ApiFailure {
  return unauthenticated(
    'TOKEN_WRONG',
    'The token is not one of this control plane: it never was, or was cut short. Look whether ' +
      `the file is the right one, and of this control plane. ${grants}`,
  );
}

/** How long a caller with an unknown token waits before the next try. */
const busyRetryAfterMs = 1_000;

/** Too many unknown tokens are shown at present to check this one. */
export function signInBusy(kind: 'token' | 'sign-in'): ApiFailure {
  return unavailable(
    'SIGN_IN_BUSY',
    `The ${kind} is not known here yet, and too many unknown ones come to look at each: try again.`,
    busyRetryAfterMs,
  );
}

/** Sent only to a caller that has the secret. */
export function tokenExpired(name: string, expireTime: string): ApiFailure {
  return unauthenticated('TOKEN_EXPIRED', `${name} has expired at ${expireTime}. ${grants}`);
}

/** Sent only to a caller that has the secret. */
export function tokenRevoked(name: string, revokeTime: string): ApiFailure {
  return unauthenticated(
    'TOKEN_REVOKED',
    `${name} was revoked at ${revokeTime}. Who did it stands in the audit stream. ${grants}`,
  );
}

/** The role does not permit it. */
export function roleTooSmall(caller: Principal, action: string, least: Role): ApiFailure {
  const needed = roleText(least);
  return new ApiFailure({
    kind: 'permissionDenied',
    reason: 'ROLE_TOO_SMALL',
    message:
      `${action} needs the role ${needed}; ${caller.actor} has ${roleText(caller.role)}. ` +
      `Ask an administrator for a token with --role ${needed}, or for the claim that carries it.`,
    metadata: { needed, role: roleText(caller.role) },
  });
}

/** A caller that sees only a part may not change what applies to everything. */
export function scopeTooSmall(caller: Principal, action: string): ApiFailure {
  return permissionDenied(
    'SCOPE_TOO_SMALL',
    `${action} concerns more than ${scopeText(caller.scope)}, to which ${caller.actor} is ` +
      'limited. Ask an administrator whose scope is everything to do it.',
  );
}

/** The caller names a place out of its scope; only the caller's own words are repeated. */
export function outOfScope(caller: Principal, field: string, named: string): ApiFailure {
  return permissionDenied(
    'OUT_OF_SCOPE',
    `${field} names ${named}, which is not in the scope of ${caller.actor} ` +
      `(${scopeText(caller.scope)}). Name what is, or ask an administrator for a wider token.`,
  );
}

/** The same words whether it does not exist or is out of scope. */
export function notInScope(caller: Principal, name: string): ApiFailure {
  return new ApiFailure({
    kind: 'notFound',
    reason: 'NOT_FOUND_IN_SCOPE',
    message:
      `${name} does not exist in the scope of ${caller.actor} (${scopeText(caller.scope)}). ` +
      'Look at its name; if it belongs to another scope, ask an administrator.',
    metadata: { resource: name },
  });
}

/** The token of an open stream was revoked or has expired. */
export function tokenEnded(): ApiFailure {
  return unauthenticated(
    'TOKEN_ENDED',
    `The token has expired or was revoked while this stream was open. ${grants}`,
  );
}
