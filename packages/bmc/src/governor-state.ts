import { type BmcFailed, type BmcResult, type BmcTransient, failed, transient } from './driver.ts';

/**
 * When a BMC may get a call: the deciding half of the governor, without sockets or timers.
 *
 * Invariants:
 * 1. One call in flight.
 * 2. After a call the BMC rests for as long as the calling driver says, or `spacingMs` where a site
 *    sets it for all.
 * 3. After `breakerAfterSilentCalls` calls in a row without an answer nothing is sent until the
 *    breaker's time is over. Then one call tries, and its silence doubles the time up to a cap. A
 *    BMC that reports busy, or failed, has answered.
 * 4. A credential version that was refused `authenticationFailuresMax` times is not presented
 *    again, because BMCs lock accounts; a newer version starts from zero. A read does not present
 *    one that was refused even once: the last try is left to an ordered call.
 * 5. Silent reads neither open the breaker nor lengthen it: they come at their own pace, and must
 *    not keep an operation waiting.
 *
 * It must not judge a call's answer beyond "answered, silent, refused the password".
 */
export interface GovernorLimits {
  /** Between the end of any call and the start of the next; undefined: as each driver says. */
  readonly spacingMs: number | undefined;
  /** Calls that may wait; one more is refused as `queueFull`. */
  readonly queueCallsMax: number;
  readonly breakerAfterSilentCalls: number;
  readonly breakerOpenMs: number;
  readonly breakerOpenMsMax: number;
  readonly authenticationFailuresMax: number;
  /** Credential versions remembered as refused; the oldest is forgotten first. */
  readonly refusedCredentialsMax: number;
}

export const defaultGovernorLimits: GovernorLimits = {
  spacingMs: undefined,
  queueCallsMax: 32,
  breakerAfterSilentCalls: 3,
  breakerOpenMs: 15_000,
  breakerOpenMsMax: 300_000,
  authenticationFailuresMax: 2,
  refusedCredentialsMax: 16,
};

export type CallAdmission =
  | { readonly kind: 'start' }
  /** Ask again at this time, or earlier when the call in flight ends. */
  | { readonly kind: 'wait'; readonly untilMs: number }
  /** Ask again when the call in flight ends. */
  | { readonly kind: 'waitForEnd' }
  | { readonly kind: 'refuse'; readonly result: BmcFailed | BmcTransient };

/** The state for observers: shown as the BMC's health. */
export type BmcHealth =
  | { readonly kind: 'answering' }
  | { readonly kind: 'silent'; readonly sinceMs: number; readonly reason: string }
  | { readonly kind: 'lockGuard'; readonly credential: string; readonly reason: string };

interface Silence {
  readonly sinceMs: number;
  readonly callsInRow: number;
  /** Set while the breaker is open. */
  readonly openUntilMs: number | undefined;
  readonly openMs: number;
  readonly text: string;
}

export class GovernorState {
  readonly #limits: GovernorLimits;
  #inFlight = false;
  /** The BMC rests until then. */
  #restsUntilMs = Number.NEGATIVE_INFINITY;
  #silence: Silence | undefined;
  /** Refusals per credential version, in order of first refusal. */
  readonly #refusals = new Map<string, number>();

  constructor(limits: GovernorLimits) {
    this.#limits = limits;
  }

  /** May a call with this credential version start at `nowMs`? Changes nothing. */
  admit(
    nowMs: number,
    credential: string,
    { isReadOnly = false }: { readonly isReadOnly?: boolean } = {},
  ): CallAdmission {
    const refusals = this.#refusals.get(credential) ?? 0;
    const { authenticationFailuresMax } = this.#limits;
    if (refusals >= (isReadOnly ? 1 : authenticationFailuresMax)) {
      return { kind: 'refuse', result: lockGuardRefusal(credential, refusals) };
    }
    if (this.#inFlight) return { kind: 'waitForEnd' };
    const openUntilMs = this.#silence?.openUntilMs;
    if (openUntilMs !== undefined && nowMs < openUntilMs) {
      return { kind: 'refuse', result: breakerRefusal(this.#silence, openUntilMs - nowMs) };
    }
    if (nowMs < this.#restsUntilMs) return { kind: 'wait', untilMs: this.#restsUntilMs };
    return { kind: 'start' };
  }

  /** The call that was admitted has been sent. */
  started(): void {
    if (this.#inFlight) throw new Error('a call to this BMC is already in flight');
    this.#inFlight = true;
  }

  /**
   * The call in flight is over; `undefined` when it broke off without any result. `restMs`: of its
   * driver.
   */
  ended(
    nowMs: number,
    credential: string,
    result: BmcResult<unknown> | undefined,
    {
      wasPreemptible = false,
      restMs = 0,
    }: { readonly wasPreemptible?: boolean; readonly restMs?: number } = {},
  ): void {
    this.#inFlight = false;
    this.#restsUntilMs = nowMs + (this.#limits.spacingMs ?? restMs);
    if (result === undefined) return;
    if (result.kind === 'transient') {
      if (result.reason === 'busy' || result.reason === 'trouble') this.#silence = undefined;
      const silent = result.reason === 'unreachable' && !wasPreemptible;
      if (silent) this.#fellSilent(nowMs, result.backendText);
      return;
    }
    const answered = result.kind === 'ok' || saysBmcAnswered[result.type];
    if (answered) this.#silence = undefined;
    if (result.kind === 'ok') this.#refusals.delete(credential);
    if (result.kind === 'failed' && isRefusal(result)) this.#refused(credential);
  }

  /** Another store counts credential versions anew: what was refused says nothing of its own. */
  startOver(): void {
    this.#refusals.clear();
  }

  health(): BmcHealth {
    for (const [credential, refusals] of this.#refusals) {
      if (refusals >= this.#limits.authenticationFailuresMax) {
        const { message } = lockGuardRefusal(credential, refusals);
        return { kind: 'lockGuard', credential, reason: message };
      }
    }
    if (this.#silence?.openUntilMs === undefined) return { kind: 'answering' };
    const { sinceMs, callsInRow, text } = this.#silence;
    return { kind: 'silent', sinceMs, reason: silenceText(callsInRow, text) };
  }

  #fellSilent(nowMs: number, text: string): void {
    const before = this.#silence;
    const callsInRow = (before?.callsInRow ?? 0) + 1;
    const sinceMs = before?.sinceMs ?? nowMs;
    if (callsInRow < this.#limits.breakerAfterSilentCalls) {
      const openMs = this.#limits.breakerOpenMs;
      this.#silence = { sinceMs, callsInRow, openUntilMs: undefined, openMs, text };
      return;
    }
    const wasOpen = before?.openUntilMs !== undefined;
    const openMs = wasOpen
      ? Math.min(before.openMs * 2, this.#limits.breakerOpenMsMax)
      : this.#limits.breakerOpenMs;
    this.#silence = { sinceMs, callsInRow, openUntilMs: nowMs + openMs, openMs, text };
  }

  #refused(credential: string): void {
    this.#refusals.set(credential, (this.#refusals.get(credential) ?? 0) + 1);
    while (this.#refusals.size > this.#limits.refusedCredentialsMax) {
      const oldest = this.#refusals.keys().next().value;
      if (oldest === undefined) return;
      this.#refusals.delete(oldest);
    }
  }
}

/** The credential was presented and not accepted. */
function isRefusal({ type }: BmcFailed): boolean {
  return type === 'authentication' || type === 'lockedOut';
}

/** Failures that only an answering BMC can cause; the others are found before or without it. */
const saysBmcAnswered: Readonly<Record<BmcFailed['type'], boolean>> = {
  address: false,
  invalidCredential: false,
  toolMissing: false,
  notAllowed: false,
  certificate: false,
  protocol: false,
  authentication: true,
  lockedOut: true,
  privilege: true,
  cipherSuite: true,
  notApplied: true,
  unsupported: true,
  rejected: true,
  malformed: true,
  ambiguous: true,
  mediaRefused: true,
  mediaMissing: true,
  settingRefused: true,
  settingUnknown: true,
  stillPending: true,
  updateFailed: true,
  volumesRefused: true,
};

function lockGuardRefusal(credential: string, refusals: number): BmcFailed {
  const message =
    `the BMC refused credential ${credential} ${refusals === 1 ? 'once' : `${refusals} times`}; ` +
    'it is not presented again, ' +
    'so that the BMC does not lock the account: store a corrected credential';
  return failed('authentication', message);
}

function breakerRefusal(silence: Silence | undefined, remainingMs: number): BmcTransient {
  const why = silenceText(silence?.callsInRow ?? 0, silence?.text ?? '');
  const next = `next try in ${Math.ceil(remainingMs / 1_000)} s`;
  return transient('breakerOpen', `${why}; ${next}`, silence?.text ?? '');
}

function silenceText(callsInRow: number, text: string): string {
  const last = text === '' ? '' : ` (last: ${text})`;
  return `the BMC did not answer ${callsInRow} calls in a row${last}`;
}
