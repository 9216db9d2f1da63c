/**
 * Why a sign-in at the identity provider failed, by the reason in the control plane's redirect.
 * Pure.
 *
 * Invariant: all words come from this module. The author of a link cannot put words into the page.
 */
import { Code } from '@connectrpc/connect';
import type { Failure } from './failure.ts';

interface Cause {
  readonly code: Code;
  readonly message: string;
}

const out = (message: string): Cause => ({ code: Code.Unauthenticated, message });
const denied = (message: string): Cause => ({ code: Code.PermissionDenied, message });
const away = (message: string): Cause => ({ code: Code.Unavailable, message });

const causes: Readonly<Record<string, Cause>> = {
  NO_ROLE: denied('The identity provider let you in, but none of your groups has a role here'),
  TOKEN_WITHOUT_NAME: denied(
    'The identity provider let you in, but says no name of yours that can be used here',
  ),
  SIGN_IN_REFUSED: out('The identity provider did not let you in'),
  SIGN_IN_NOT_BEGUN: out('This sign-in was not begun in this browser, or too long ago'),
  TOKEN_EXPIRED: out('What the identity provider has sent had expired already'),
  TOKEN_NOT_YET: out('What the identity provider has sent is not valid yet: its clock is ahead'),
  TOKEN_WRONG_AUDIENCE: out('What the identity provider has sent was made for another program'),
  TOKEN_WRONG: out('What the identity provider has sent is not accepted'),
  HOST_WRONG: out('The address of this page is none that the identity provider can lead back to'),
  ISSUER_WITHOUT_BROWSER: out('The identity provider offers no sign-in by a browser'),
  NOT_FOUND: out('No identity provider is configured for browsers'),
  ISSUER_UNAVAILABLE: away('The identity provider does not answer as it should'),
  SIGN_IN_BUSY: away('Too many sign-ins are being completed at once'),
  SECRETS_UNAVAILABLE: away('The control plane cannot use its secrets key now'),
  STORE_UNAVAILABLE: away('The control plane’s store does not answer now'),
};

const other = out('The sign-in at the identity provider did not work');

/** The failure of this reason; of an unknown reason, that the sign-in failed. */
export function signInFailure(reason: string): Failure {
  const isKnown = Object.hasOwn(causes, reason);
  return {
    ...((isKnown ? causes[reason] : undefined) ?? other),
    reason: isKnown ? `PROVIDER_${reason}` : '',
    metadata: {},
    violations: [],
    retryAfterMs: undefined,
    isUnreached: false,
  };
}

/** The reasons that have words of their own. */
export const signInReasons: readonly string[] = Object.keys(causes);
