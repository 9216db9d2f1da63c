/**
 * People who have signed in by a browser: a cookie that names a session of this process.
 *
 * Invariants:
 * 1. A session never carries more than what opened it: one of a token is looked up by that token
 *    with every call, so that it ends with it; one of the identity provider has an end of its own.
 * 2. A cookie counts only together with the origin of this very server (`checkOrigin`): a page of
 *    another site that has a browser send it gets nothing carried out.
 * 3. Sessions are bounded, in all and of each caller: the oldest gives way.
 * 4. A name of a session is known to its browser alone: here stands its hash.
 */
import { createHash } from 'node:crypto';
import {
  type ApiFailure,
  type CallContext,
  permissionDenied,
  unauthenticated,
} from '@rackwright/messages';
import { atWallTime, type Clock, type Random } from '@rackwright/platform';
import type { Principal } from './principal.ts';

/** Its prefix binds a cookie to this host, all paths and TLS (RFC 6265bis §4.1.3.2). */
export const sessionCookie = '__Host-rackwright-session';

const sessionsMax = 1_000;
const sessionsPerCallerMax = 20;
const nameBytes = 32;
const nameShape = /^[A-Za-z0-9_-]{43}$/;

/** What has opened a session. */
export type Opener =
  | { readonly kind: 'token'; readonly text: string; readonly principal: Principal }
  | { readonly kind: 'provider'; readonly principal: Principal };

export interface SessionsOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** How long one lasts at most, from when it was opened. */
  readonly lifeMs: number;
  /** Who shows this token; throws why it is not let in. */
  readonly principalOfToken: (text: string) => Promise<Principal>;
}

/** A session that was just opened. */
export interface Opened {
  /** What the browser is to keep, as the value of `sessionCookie`. */
  readonly name: string;
  /** Wall time, milliseconds. */
  readonly expireMs: number;
}

interface Session {
  readonly opener: Opener;
  readonly caller: string;
  readonly expireMs: number;
  readonly ends: Set<() => void>;
}

/** See the header. */
export class Sessions {
  readonly #options: SessionsOptions;
  /** By the hash of its name; the oldest first. */
  readonly #sessions = new Map<string, Session>();

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#sessions.size;
  }

  /** Opens one. Bounded by invariant 3. */
  open(opener: Opener): Opened {
    const { clock, random, lifeMs } = this.#options;
    const { principal } = opener;
    const ownEndMs = opener.kind === 'token' ? (principal.expireMs ?? Infinity) : Infinity;
    const expireMs = Math.min(clock.nowMs() + lifeMs, ownEndMs);
    const caller = `${principal.issuer} ${principal.actor}`;
    this.#makeRoom(caller);
    const name = Buffer.from(random.bytes(nameBytes)).toString('base64url');
    this.#sessions.set(hashOf(name), { opener, caller, expireMs, ends: new Set() });
    return { name, expireMs };
  }

  /** Whose session a call names; undefined: its cookies name none. Throws why it does not count. */
  async principalOf(context: CallContext): Promise<Principal | undefined> {
    const name = cookieOf(context, sessionCookie);
    if (name === undefined) return undefined;
    checkOrigin(context);
    const hash = hashOf(name);
    const session = this.#sessions.get(hash);
    if (session === undefined || !nameShape.test(name)) throw sessionOver();
    if (session.expireMs <= this.#options.clock.nowMs()) {
      this.#end(hash);
      throw sessionOver();
    }
    const { opener, expireMs } = session;
    const principal =
      opener.kind === 'token'
        ? await this.#options.principalOfToken(opener.text)
        : opener.principal;
    return { ...principal, expireMs, session: hash };
  }

  /** Ends the session that a call names. False: there was none. */
  close(context: CallContext): boolean {
    const name = cookieOf(context, sessionCookie);
    return name !== undefined && this.#end(hashOf(name));
  }

  /** Calls `end` once the session of this hash is over, until the returned function is called. */
  onEnd(hash: string, end: () => void): () => void {
    const session = this.#sessions.get(hash);
    if (session === undefined) {
      end();
      return () => undefined;
    }
    session.ends.add(end);
    const cancel = atWallTime(this.#options.clock, session.expireMs, () => this.#end(hash));
    return () => {
      cancel();
      session.ends.delete(end);
    };
  }

  #makeRoom(caller: string): void {
    const nowMs = this.#options.clock.nowMs();
    const own: string[] = [];
    for (const [hash, session] of this.#sessions) {
      if (session.expireMs <= nowMs) this.#end(hash);
      else if (session.caller === caller) own.push(hash);
    }
    const [oldestOwn] = own;
    if (oldestOwn !== undefined && own.length >= sessionsPerCallerMax) this.#end(oldestOwn);
    const [oldest] = this.#sessions.keys();
    if (oldest !== undefined && this.#sessions.size >= sessionsMax) this.#end(oldest);
  }

  #end(hash: string): boolean {
    const session = this.#sessions.get(hash);
    this.#sessions.delete(hash);
    for (const end of [...(session?.ends ?? [])]) end();
    return session !== undefined;
  }
}

/** The first cookie of this name that came with a call (RFC 6265 §4.2). */
export function cookieOf(context: CallContext, name: string): string | undefined {
  for (const pair of (context.header('cookie') ?? '').split(';')) {
    const at = pair.indexOf('=');
    if (at > 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim();
  }
  return undefined;
}

/**
 * Throws unless a page of this very server sends the call: a browser names the page's origin with
 * every POST (Fetch Standard, "append a request `Origin` header"), and no page can change it.
 */
export function checkOrigin(context: CallContext): void {
  const host = context.header('host');
  if (host !== undefined && context.header('origin') === `https://${host}`) return;
  throw permissionDenied(
    'ORIGIN_WRONG',
    'A session is good for pages of this control plane alone, whose browser names their origin. ' +
      'Programs send "authorization: Bearer TOKEN".',
  );
}

/** Its session was never one of this process, has ended, or gave way to others. */
export function sessionOver(): ApiFailure {
  return unauthenticated('SESSION_OVER', 'The session has ended. Sign in again.');
}

function hashOf(name: string): string {
  return createHash('sha256').update(name).digest('hex');
}
