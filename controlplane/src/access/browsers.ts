/** Signing in and out by a browser: what opens a sign-in, and what the audit stream records. */
import { type CallContext, notFound } from '@rackwright/messages';
import type { AuditSink } from '../audit/index.ts';
import type { BrowserSignIn, SignInStart } from './browser-sign-in.ts';
import { type Principal, roleText, scopeText } from './principal.ts';
import { principalOfToken, type SignInOptions } from './sign-in.ts';
import { checkOrigin, type OpenedSignIn, type Opener, type SignIns } from './sign-ins.ts';

export interface BrowsersParts {
  readonly signIns: SignIns;
  /** Undefined: people can sign in only with a token. */
  readonly provider: BrowserSignIn | undefined;
  readonly shown: Pick<SignInOptions, 'tokens' | 'firstTokenSha256' | 'verifier'>;
  readonly audit: AuditSink;
}

/** What the sign-in pages need. Each method throws an `ApiFailure` that says why it refuses. */
export interface Browsers {
  /** The identity provider for sign-in by a browser; undefined: there is none. */
  readonly issuer: string | undefined;
  /** Opens a sign-in for the holder of this token. */
  byToken(context: CallContext, text: string): Promise<OpenedSignIn>;
  /** Redirects to the identity provider, and afterwards to a path of ours. */
  begin(context: CallContext, returnTo: string): Promise<SignInStart>;
  /** Opens a sign-in after the identity provider has redirected back. */
  end(
    context: CallContext,
    query: URLSearchParams,
  ): Promise<{ readonly opened: OpenedSignIn; readonly returnTo: string }>;
  /** Ends the sign-in of a call and its open streams, on every replica. */
  out(context: CallContext): Promise<void>;
}

export function createBrowsers({ signIns, provider, shown, audit }: BrowsersParts): Browsers {
  const open = async (opener: Opener, context: CallContext): Promise<OpenedSignIn> => {
    const opened = await signIns.open(opener);
    auditSignIn(audit, opener.principal, 'browser', context);
    // From now on its network has a share of the capacity for known networks.
    context.vouch?.();
    return opened;
  };
  const requireSignIn = (): BrowserSignIn => {
    if (provider === undefined) throw notFound('An identity provider for browsers');
    return provider;
  };
  return {
    issuer: provider?.issuer,
    byToken: async (context, text) => {
      checkOrigin(context);
      const principal = await principalOfToken(shown, text);
      return open({ kind: 'token', principal }, context);
    },
    begin: async (context, returnTo) => requireSignIn().begin(context, returnTo),
    end: async (context, query) => {
      const { principal, returnTo } = await requireSignIn().end(context, query);
      return { opened: await open({ kind: 'provider', principal }, context), returnTo };
    },
    out: async (context) => {
      checkOrigin(context);
      await signIns.close(context);
    },
  };
}

function auditSignIn(
  audit: AuditSink,
  { actor, role, scope, token }: Principal,
  by: string,
  { peerAddress }: CallContext,
): void {
  audit.note({
    ...{ kind: 'signIn', action: 'signIn', outcome: 'ok', actor, resource: token },
    message: `by ${by}: role ${roleText(role)}, scope ${scopeText(scope)}`,
    peer: peerAddress,
  });
}
