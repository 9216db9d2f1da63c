/**
 * Accounts and sessions of the simulated BMC.
 *
 * 1. Sign-ins that fail in a row lock everybody out for a while, as most BMCs do; a right password
 *    is refused too until then.
 * 2. Sessions are few and end by themselves when they are not used.
 */
import type { Clock, Random } from '@rackwright/platform';
import type { RedfishFault, RedfishHabits } from './options.ts';

export interface RedfishSession {
  readonly id: string;
  readonly token: string;
  readonly user: string;
  usedAtMs: number;
}

export type CredentialCheck =
  | { readonly kind: 'admitted' }
  | { readonly kind: 'refused' }
  | { readonly kind: 'lockedOut'; readonly remainingMs: number };

export type RedfishSignIn =
  | { readonly kind: 'session'; readonly session: RedfishSession }
  | { readonly kind: 'full' }
  | Exclude<CredentialCheck, { readonly kind: 'admitted' }>;

const tokenBytes = 16;

export class Accounts {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #habits: RedfishHabits;
  readonly #user: string;
  #password: string;
  readonly #sessions = new Map<string, RedfishSession>();
  #nextId = 1;
  #failuresInRow = 0;
  #lockedUntilMs = 0;

  constructor(
    clock: Clock,
    random: Random,
    habits: RedfishHabits,
    account: { readonly user: string; readonly password: string },
  ) {
    this.#clock = clock;
    this.#random = random;
    this.#habits = habits;
    this.#user = account.user;
    this.#password = account.password;
  }

  setPassword(password: string): void {
    this.#password = password;
    this.#sessions.clear();
  }

  endSessions(): void {
    this.#sessions.clear();
  }

  lockOut(forMs: number): void {
    this.#lockedUntilMs = this.#clock.suspendAwareMs() + forMs;
    this.#sessions.clear();
  }

  unlock(): void {
    this.#lockedUntilMs = 0;
    this.#failuresInRow = 0;
  }

  /** Judges a user and a password. */
  check(user: string, password: string, fault: RedfishFault['kind']): CredentialCheck {
    const nowMs = this.#clock.suspendAwareMs();
    if (nowMs < this.#lockedUntilMs) {
      return { kind: 'lockedOut', remainingMs: this.#lockedUntilMs - nowMs };
    }
    if (fault !== 'wrongPassword' && user === this.#user && password === this.#password) {
      this.#failuresInRow = 0;
      return { kind: 'admitted' };
    }
    this.#failuresInRow += 1;
    const { failuresMax, forMs } = this.#habits.lockOut;
    if (this.#failuresInRow >= failuresMax) {
      this.#failuresInRow = 0;
      this.lockOut(forMs);
    }
    return { kind: 'refused' };
  }

  signIn(user: string, password: string, fault: RedfishFault['kind']): RedfishSignIn {
    const admission = this.check(user, password, fault);
    if (admission.kind !== 'admitted') return admission;
    this.#dropIdle();
    if (this.#sessions.size >= this.#habits.sessionsMax) return { kind: 'full' };
    const token = Buffer.from(this.#random.bytes(tokenBytes)).toString('hex');
    const id = String(this.#nextId++);
    const session = { id, token, user, usedAtMs: this.#clock.suspendAwareMs() };
    this.#sessions.set(id, session);
    return { kind: 'session', session };
  }

  signOut(id: string): boolean {
    return this.#sessions.delete(id);
  }

  hasSession(token: string): boolean {
    this.#dropIdle();
    const found = this.sessions().find((session) => session.token === token);
    if (found === undefined) return false;
    found.usedAtMs = this.#clock.suspendAwareMs();
    return true;
  }

  sessions(): readonly RedfishSession[] {
    return [...this.#sessions.values()];
  }

  #dropIdle(): void {
    const leastMs = this.#clock.suspendAwareMs() - this.#habits.sessionIdleMs;
    for (const session of this.sessions()) {
      if (session.usedAtMs < leastMs) this.#sessions.delete(session.id);
    }
  }
}
