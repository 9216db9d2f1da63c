/**
 * From a call to its caller. The "authorization" header names the caller, and a token or an
 * identity provider proves it. Without that header the sign-in cookie counts.
 *
 * Invariants:
 * 1. No caller is accepted because a check failed to respond: when the store or the identity
 *    provider is unavailable, the call is refused.
 * 2. The result is valid for this call only; nothing of it is kept for the next one.
 */
import { createHash } from 'node:crypto';
import { asTokenId, type CallContext, type Guard, isChosenId } from '@rackwright/messages';
import { idOf } from '../records/index.ts';
import { type Principal, systemPrincipal } from './principal.ts';
import { tokenMissing, tokenUnknown } from './refusals.ts';
import type { SignIns } from './sign-ins.ts';
import { isSameHash } from './token.ts';
import { firstTokenId, type TokenBook } from './token-book.ts';

const scheme = /^bearer +/i;
const tokenCharsMax = 16_384;
const firstTokenShape = /^rwa1\./;
/** Three parts in base64url: a token that an identity provider signed. */
const signedShape = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*$/;

/** Checks tokens that an identity provider signed. */
export interface TokenVerifier {
  /** The holder of this token. Throws why the token is refused. */
  principalOf(token: string): Promise<Principal>;
}

/** Called when a caller is accepted, once in an hour. */
export type SignInSink = (principal: Principal, context: CallContext) => void;

export interface SignInOptions {
  readonly tokens: TokenBook;
  readonly firstTokenSha256: string;
  readonly verifier: TokenVerifier | undefined;
  readonly onSignIn: SignInSink;
  /** Sign-ins of browsers; unset: cookies are not accepted. */
  readonly signIns?: SignIns;
}

/** Knows the callers of open calls. */
export interface SignIn {
  /** Refuses callers without a valid credential. */
  readonly guard: Guard;
  /** The caller of a call that the guard has accepted. */
  principalOf(context: CallContext): Principal;
  /** Calls `end` when the credential of the caller ends. */
  onEnd(principal: Principal, end: () => void): () => void;
}

/** Callers by their tokens. */
export function createSignIn(options: SignInOptions): SignIn {
  const callers = new WeakMap<CallContext, Principal>();
  return {
    guard: async (context) => {
      const principal = await identify(options, context);
      callers.set(context, principal);
      options.onSignIn(principal, context);
      // Not by the credential: one caller has many spellings of a token, and many tokens.
      return JSON.stringify([principal.issuer, principal.actor]);
    },
    principalOf: (context) => {
      const principal = callers.get(context);
      if (principal === undefined) throw tokenMissing();
      return principal;
    },
    onEnd: (principal, end) => {
      const ofToken = options.tokens.onEnd(principal, end);
      const { signInHash } = principal;
      const ofSignIn =
        signInHash === undefined ? undefined : options.signIns?.onEnd(signInHash, end);
      return () => {
        ofToken();
        ofSignIn?.();
      };
    },
  };
}

/** For services in the same process, without a server: every caller is the process itself. */
export const trustedSignIn: SignIn = {
  guard: () => undefined,
  principalOf: () => systemPrincipal,
  onEnd: () => () => undefined,
};

async function identify(options: SignInOptions, context: CallContext): Promise<Principal> {
  const header = context.header('authorization');
  if (header === undefined) {
    const principal = await options.signIns?.principalOf(context);
    if (principal === undefined) throw tokenMissing();
    return principal;
  }
  const text = header.replace(scheme, '').trim();
  if (!scheme.test(header)) throw tokenUnknown();
  return principalOfToken(options, text);
}

/** The holder of this token. Throws why the token is refused. */
export async function principalOfToken(
  {
    tokens,
    firstTokenSha256,
    verifier,
  }: Pick<SignInOptions, 'tokens' | 'firstTokenSha256' | 'verifier'>,
  text: string,
): Promise<Principal> {
  if (text.length > tokenCharsMax) throw tokenUnknown();
  if (firstTokenShape.test(text)) {
    if (!isFirstToken(text, firstTokenSha256)) throw tokenUnknown();
    return tokens.firstPrincipal();
  }
  if (text.startsWith('rwo1.')) return tokens.principalOf(text);
  if (verifier !== undefined && signedShape.test(text)) return verifier.principalOf(text);
  throw tokenUnknown();
}

/** The holder of our token with this name and secret. Throws why the token is refused. */
export async function principalOfSecret(
  { tokens, firstTokenSha256 }: Pick<SignInOptions, 'tokens' | 'firstTokenSha256'>,
  name: string,
  secretSha256: Uint8Array,
): Promise<Principal> {
  const id = idOf(name);
  if (!isChosenId(id)) throw tokenUnknown();
  const tokenId = asTokenId(id);
  if (tokenId !== firstTokenId) return tokens.principalOfSecret(tokenId, secretSha256);
  if (!isSameHash(secretSha256, Buffer.from(firstTokenSha256, 'hex'))) throw tokenUnknown();
  return tokens.firstPrincipal();
}

function isFirstToken(text: string, sha256: string): boolean {
  const shown = createHash('sha256').update(text).digest();
  return isSameHash(shown, Buffer.from(sha256, 'hex'));
}
