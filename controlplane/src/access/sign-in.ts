/**
 * From a call to its caller: the "authorization" header, and whoever vouches for what it holds; of
 * a call without one, the session that its cookie names.
 *
 * Invariants:
 * 1. Nobody is let in for want of an answer: a store or an identity provider that is away refuses.
 * 2. Who was let in is known for this very call; nothing of it is kept for the next one.
 */
import { createHash } from 'node:crypto';
import type { CallContext, Guard } from '@rackwright/messages';
import { idOf } from '../records/index.ts';
import { type Principal, systemPrincipal } from './principal.ts';
import { tokenMissing, tokenUnknown } from './refusals.ts';
import type { Sessions } from './sessions.ts';
import { isSameHash } from './token.ts';
import { firstTokenId, type TokenBook } from './token-book.ts';

const scheme = /^bearer +/i;
const tokenCharsMax = 16_384;
const firstTokenShape = /^rwa1\./;
/** Three parts in base64url: what an identity provider signs. */
const signedShape = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*$/;

/** Checks what an identity provider has signed. */
export interface Voucher {
  /** Who holds this token. Throws why it is not let in. */
  principalOf(token: string): Promise<Principal>;
}

/** Whoever let somebody in tells it, once in an hour. */
export type SignInSink = (principal: Principal, context: CallContext) => void;

export interface SignInOptions {
  readonly tokens: TokenBook;
  readonly firstTokenSha256: string;
  readonly voucher: Voucher | undefined;
  readonly onSignIn: SignInSink;
  /** Of browsers; unset: no cookie lets anybody in. */
  readonly sessions?: Sessions;
}

/** Knows the callers of calls under way. */
export interface SignIn {
  /** Refuses whom nobody vouches for. */
  readonly guard: Guard;
  /** The caller of a call that the guard has let in. */
  principalOf(context: CallContext): Principal;
  /** Calls `end` when what the caller has shown holds no more. */
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
      // Not what was shown: one caller has many spellings of a token, and many tokens.
      return JSON.stringify([principal.issuer, principal.actor]);
    },
    principalOf: (context) => {
      const principal = callers.get(context);
      if (principal === undefined) throw tokenMissing();
      return principal;
    },
    onEnd: (principal, end) => {
      const ofToken = options.tokens.onEnd(principal, end);
      const { session } = principal;
      const ofSession = session === undefined ? undefined : options.sessions?.onEnd(session, end);
      return () => {
        ofToken();
        ofSession?.();
      };
    },
  };
}

/** For services in the same process, without a server: everybody is the process itself. */
export const trustedSignIn: SignIn = {
  guard: () => undefined,
  principalOf: () => systemPrincipal,
  onEnd: () => () => undefined,
};

async function identify(options: SignInOptions, context: CallContext): Promise<Principal> {
  const header = context.header('authorization');
  if (header === undefined) {
    const principal = await options.sessions?.principalOf(context);
    if (principal === undefined) throw tokenMissing();
    return principal;
  }
  const text = header.replace(scheme, '').trim();
  if (!scheme.test(header)) throw tokenUnknown();
  return principalOfToken(options, text);
}

/** Who shows this token. Throws why it is not let in. */
export async function principalOfToken(
  {
    tokens,
    firstTokenSha256,
    voucher,
  }: Pick<SignInOptions, 'tokens' | 'firstTokenSha256' | 'voucher'>,
  text: string,
): Promise<Principal> {
  if (text.length > tokenCharsMax) throw tokenUnknown();
  if (firstTokenShape.test(text)) {
    if (!isFirstToken(text, firstTokenSha256)) throw tokenUnknown();
    return tokens.firstPrincipal();
  }
  if (text.startsWith('rwo1.')) return tokens.principalOf(text);
  if (voucher !== undefined && signedShape.test(text)) return voucher.principalOf(text);
  throw tokenUnknown();
}

/** Who has the token of ours of this name and secret. Throws why it is not let in. */
export async function principalOfSecret(
  { tokens, firstTokenSha256 }: Pick<SignInOptions, 'tokens' | 'firstTokenSha256'>,
  name: string,
  secretSha256: Uint8Array,
): Promise<Principal> {
  const tokenId = idOf(name);
  if (tokenId !== firstTokenId) return tokens.principalOfSecret(tokenId, secretSha256);
  if (!isSameHash(secretSha256, Buffer.from(firstTokenSha256, 'hex'))) throw tokenUnknown();
  return tokens.firstPrincipal();
}

function isFirstToken(text: string, sha256: string): boolean {
  const shown = createHash('sha256').update(text).digest();
  return isSameHash(shown, Buffer.from(sha256, 'hex'));
}
