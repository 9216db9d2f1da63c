/**
 * Sign-ins that are kept: one file for each context, readable by its owner alone.
 *
 * Invariants:
 * 1. A token that is about to end is renewed before it is used, where the provider allows it.
 * 2. Two commands at once do no harm where each renewal gives a new refresh token: the later one
 *    takes the tokens that the other has received.
 */
import type { Clock } from '@rackwright/platform';
import type { CommandIo } from '../command-io.ts';
import { type ContextSettings, configFolder, type LoginSettings } from '../config-file.ts';
import { SignInNeeded, UsageError } from '../failure.ts';
import { endpointsOf, type Provider, refresh, type Tokens } from './provider.ts';

/** A token that ends within this time is renewed first, milliseconds. */
const renewBeforeMs = 60_000;

/** The stored part of a sign-in. */
export interface KeptSignIn {
  readonly issuer: string;
  readonly clientId: string;
  /** The token for the control plane. */
  readonly token: string;
  readonly refreshToken: string | undefined;
  /** Wall time; undefined: it does not end, or its end is unreported. */
  readonly expiresAtMs: number | undefined;
}

/** The path of the sign-in of a context. */
export function signInPath(io: CommandIo, context: string): string {
  return `${configFolder(io)}/sessions/${context}.json`;
}

/** The token for the control plane, renewed when that is needed. Throws `SignInNeeded`. */
export async function signedInToken(
  io: CommandIo,
  context: string,
  { login }: ContextSettings,
): Promise<string> {
  if (login === undefined) throw new UsageError(`the context "${context}" has no login`);
  const signIn = await readSignIn(io, context);
  if (signIn?.issuer !== login.issuer || signIn.clientId !== login.clientId) {
    throw needed(context, 'nobody is signed in');
  }
  if (!endsSoon(signIn, io.clock)) return signIn.token;
  return (await renewed(io, context, login, signIn)).token;
}

async function renewed(
  io: CommandIo,
  context: string,
  login: LoginSettings,
  signIn: KeptSignIn,
): Promise<KeptSignIn> {
  const { refreshToken } = signIn;
  if (refreshToken === undefined) throw needed(context, 'the sign-in has ended');
  const provider = await providerOf(io, login);
  const answer = await refresh(provider, await endpointsOf(provider), refreshToken);
  if (answer.kind === 'tokens') {
    return keep(io, context, login, answer.tokens, refreshToken);
  }
  // Invariant 2.
  const other = await readSignIn(io, context);
  if (other !== undefined && other.refreshToken !== refreshToken && !endsSoon(other, io.clock)) {
    return other;
  }
  throw needed(context, answer.kind === 'refused' ? answer.why : 'it is not renewed');
}

/** Keeps the result of a sign-in; a refresh token stays until there is a new one. */
export async function keep(
  io: CommandIo,
  context: string,
  { issuer, clientId, use }: LoginSettings,
  tokens: Tokens,
  refreshBefore?: string,
): Promise<KeptSignIn> {
  const token = use === 'id' ? tokens.idToken : tokens.accessToken;
  if (token === undefined) {
    throw new UsageError(
      `${issuer} gives no ID token; let it, or use its access token (login.use: access)`,
    );
  }
  const nowMs = io.clock.nowMs();
  const endsAfterMs = use === 'access' ? tokens.expiresInMs : undefined;
  const signIn: KeptSignIn = {
    ...{ issuer, clientId, token },
    refreshToken: tokens.refreshToken ?? refreshBefore,
    expiresAtMs: expiryOf(token) ?? (endsAfterMs === undefined ? undefined : nowMs + endsAfterMs),
  };
  const text = `${JSON.stringify(signIn, undefined, 2)}\n`;
  await io.writePrivateFile(signInPath(io, context), new TextEncoder().encode(text));
  return signIn;
}

/** The provider of a login. Throws `UsageError` when its authority cannot be read. */
export async function providerOf(io: CommandIo, settings: LoginSettings): Promise<Provider> {
  const { web, signal } = io;
  if (web === undefined) throw new UsageError('no identity provider can be reached from here');
  const { caFile } = settings;
  const bytes = caFile === undefined ? undefined : await io.readFile(caFile);
  if (caFile !== undefined && bytes === undefined) {
    throw new UsageError(`login.caFile names ${caFile}, which does not exist`);
  }
  const caPem = bytes === undefined ? undefined : new TextDecoder().decode(bytes);
  return { settings, web, caPem, signal };
}

/** The stored sign-in; undefined when there is none, or none that can be read. */
export async function readSignIn(io: CommandIo, context: string): Promise<KeptSignIn | undefined> {
  const bytes = await io.readFile(signInPath(io, context));
  if (bytes === undefined) return undefined;
  try {
    const value = JSON.parse(new TextDecoder().decode(bytes)) as Partial<KeptSignIn>;
    const { issuer, clientId, token, refreshToken, expiresAtMs } = value;
    if (typeof issuer !== 'string' || typeof clientId !== 'string') return undefined;
    if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token)) return undefined;
    return {
      ...{ issuer, clientId, token },
      refreshToken: typeof refreshToken === 'string' ? refreshToken : undefined,
      expiresAtMs: typeof expiresAtMs === 'number' ? expiresAtMs : undefined,
    };
  } catch {
    // The file holds no sign-in: the caller asks for a new sign-in.
    return undefined;
  }
}

function endsSoon({ expiresAtMs }: KeptSignIn, clock: Clock): boolean {
  return expiresAtMs !== undefined && clock.nowMs() > expiresAtMs - renewBeforeMs;
}

/** `exp` of a JWT (RFC 7519 §4.1.4); It only decides when to renew; the token is not verified. */
function expiryOf(token: string): number | undefined {
  try {
    const [, payload = ''] = token.split('.');
    const text = Buffer.from(payload, 'base64url').toString();
    const { exp } = JSON.parse(text) as { readonly exp?: unknown };
    return typeof exp === 'number' ? exp * 1_000 : undefined;
  } catch {
    // Some providers give no JWT. A token without an end is used until it is refused.
    return undefined;
  }
}

function needed(context: string, why: string): SignInNeeded {
  const flag = context === 'default' ? [] : ['--context', context];
  const command = ['rackwright', 'login', ...flag].join(' ');
  return new SignInNeeded(`${why}: sign in by \`${command}\``);
}
