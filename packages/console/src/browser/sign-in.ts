/** Signing in and out: the control plane keeps the sign-in in a cookie that no script can read. */
import { Code } from '@connectrpc/connect';
import type { WhoAmIResponse } from '@rackwright/messages';
import type { Failure } from '../logic/failure.ts';
import { signInFailure } from '../logic/sign-in-failure.ts';
import { type ConsoleClients, failureOf } from './client.ts';

/** The ways to sign in here. */
export interface Options {
  /** The identity provider; undefined: none is configured. */
  readonly issuer: string | undefined;
}

export type SignedIn =
  | { readonly kind: 'in'; readonly me: WhoAmIResponse }
  | { readonly kind: 'out'; readonly failure: Failure }
  | { readonly kind: 'failed'; readonly failure: Failure };

/** The person of the sign-in's cookie. */
export async function whoAmI({ access }: ConsoleClients): Promise<SignedIn> {
  try {
    return { kind: 'in', me: await access.whoAmI({}) };
  } catch (error) {
    const failure = failureOf(error);
    return { kind: failure.code === Code.Unauthenticated ? 'out' : 'failed', failure };
  }
}

/** Trades a token for the cookie. Answers why not. */
export async function signIn(token: string): Promise<Failure | undefined> {
  try {
    const answer = await ask('/auth/token', 'POST', JSON.stringify({ token }));
    return answer.ok ? undefined : await refusalOf(answer);
  } catch (error) {
    return failureOf(error);
  }
}

/** Ends the sign-in. It is over for this page whether or not the control plane is reached. */
export async function signOut(): Promise<void> {
  // A person can do nothing more. The sign-in also ends by its time.
  await ask('/auth/sign-out', 'POST').catch(() => undefined);
}

export async function optionsOf(): Promise<Options> {
  try {
    const answer = await ask('/auth/options', 'GET');
    const { issuer } = (await answer.json()) as { issuer?: string | null };
    return { issuer: answer.ok ? (issuer ?? undefined) : undefined };
  } catch {
    // A sign-in by token stays possible, and reports its own error.
    return { issuer: undefined };
  }
}

/** The address of the sign-in at the identity provider, with the page that follows. */
export function providerAddress(returnTo: string): string {
  return `/auth/sign-in?${new URLSearchParams({ return: returnTo }).toString()}`;
}

/** Why signing in by the identity provider did not work: its reason, from the address. */
export function providerFailure(): Failure | undefined {
  const reason = new URLSearchParams(location.search).get('error');
  if (location.pathname !== '/sign-in' || reason === null) return undefined;
  return signInFailure(reason);
}

function ask(path: string, method: string, body?: string): Promise<Response> {
  const headers = body === undefined ? undefined : { 'content-type': 'application/json' };
  const init: RequestInit = { method, credentials: 'same-origin', redirect: 'error' };
  return fetch(path, {
    ...init,
    ...(headers !== undefined && { headers }),
    ...(body !== undefined && { body }),
  });
}

const codes: Readonly<Record<string, Code>> = {
  unauthenticated: Code.Unauthenticated,
  permission_denied: Code.PermissionDenied,
  invalid_argument: Code.InvalidArgument,
  resource_exhausted: Code.ResourceExhausted,
  unavailable: Code.Unavailable,
};

/** The refusal in Connect's form of an error: code, message, and details with the reason. */
async function refusalOf(answer: Response): Promise<Failure> {
  // A proxy may answer with a page: then only the status is known.
  const refusal = (await answer.json().catch(() => ({}))) as ConnectRefusal;
  const message = refusal.message ?? `The control plane answered with HTTP status ${answer.status}`;
  const reason = refusal.details?.map(({ debug }) => debug?.reason ?? '').find(Boolean) ?? '';
  return failureWith(codes[refusal.code ?? ''] ?? Code.Unknown, message, reason);
}

interface ConnectRefusal {
  readonly code?: string;
  readonly message?: string;
  readonly details?: readonly { readonly debug?: { readonly reason?: string } }[];
}

function failureWith(code: Code, message: string, reason: string): Failure {
  return {
    code,
    message,
    reason,
    metadata: {},
    violations: [],
    retryAfterMs: undefined,
    isUnreached: false,
  };
}
