/**
 * The work lease (R11): the permission to begin something destructive.
 *
 * L1 It runs from the moment the answered heartbeat was sent, on a clock that counts suspended
 *    time, never from the moment the answer came.
 * L2 It belongs to one session: a Welcome ends the lease of the session before.
 * L3 A control plane whose store this agent refuses gives no lease.
 * L4 A lease permits nothing while its last renewal named a brake, such as a freeze of the rack or
 *    the fleet. So a freeze takes effect everywhere within one lease period.
 */
import type { Clock, Log } from '@rackwright/platform';
import type { SessionBrake } from './brake.ts';

/** Heartbeats that may be unanswered at once; older ones renew nothing any more. */
const heartbeatsKept = 64;

export type LeaseWait = 'valid' | 'timedOut' | 'aborted';

export class WorkLease {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #longestMs: number;
  readonly #waiting = new Set<() => void>();
  /** When each heartbeat that is not answered yet was sent. */
  #sentAtMs = new Map<bigint, number>();
  #renewedBy = 0n;
  #endMs = Number.NEGATIVE_INFINITY;
  #withheld = false;
  /** The brake in the last renewal. */
  #brake: SessionBrake | undefined = undefined;

  constructor(clock: Clock, log: Log, longestMs: number) {
    this.#clock = clock;
    this.#log = log;
    this.#longestMs = longestMs;
  }

  /** A session has begun; `withheld` when it may renew nothing (L3). */
  reset(withheld: boolean): void {
    this.#sentAtMs = new Map();
    this.#renewedBy = 0n;
    this.#endMs = Number.NEGATIVE_INFINITY;
    this.#withheld = withheld;
  }

  /** To be called directly before the heartbeat is handed over for sending (L1). */
  heartbeatSent(sequence: bigint): void {
    this.#sentAtMs.set(sequence, this.#clock.suspendAwareMs());
    const [oldest] = this.#sentAtMs.keys();
    if (oldest !== undefined && this.#sentAtMs.size > heartbeatsKept) this.#sentAtMs.delete(oldest);
  }

  /** The control plane has answered a heartbeat. A shorter lease than before is obeyed too. */
  renew(sequence: bigint, durationMs: number, brake?: SessionBrake): void {
    const sentAtMs = this.#sentAtMs.get(sequence);
    if (sentAtMs === undefined || sequence <= this.#renewedBy || this.#withheld) {
      this.#log.debug({ heartbeat: String(sequence) }, 'a renewal that renews nothing');
      return;
    }
    this.#renewedBy = sequence;
    for (const sent of this.#sentAtMs.keys()) if (sent <= sequence) this.#sentAtMs.delete(sent);
    this.#endMs = sentAtMs + Math.min(durationMs, this.#longestMs);
    this.#brake = brake;
    if (this.#isRunning()) for (const wake of [...this.#waiting]) wake();
  }

  /** Whether something destructive may begin now. */
  isValid(): boolean {
    return this.#brake === undefined && this.#isRunning();
  }

  /** How long it still permits, milliseconds; 0 when it permits nothing now. */
  leftMs(): number {
    return this.isValid() ? this.#endMs - this.#clock.suspendAwareMs() : 0;
  }

  /** The brake in force; undefined while there is none or the lease does not run. */
  brake(): SessionBrake | undefined {
    return this.#isRunning() ? this.#brake : undefined;
  }

  #isRunning(): boolean {
    return this.#clock.suspendAwareMs() < this.#endMs;
  }

  /** Waits until it is renewed, at most `waitMs`; 'valid' at once while it permits everything. */
  waitUntilValid(waitMs: number, signal: AbortSignal): Promise<LeaseWait> {
    if (signal.aborted) return Promise.resolve('aborted');
    if (this.isValid()) return Promise.resolve('valid');
    return new Promise((resolve) => {
      const finish = (outcome: LeaseWait) => {
        this.#waiting.delete(onValid);
        signal.removeEventListener('abort', onAbort);
        cancelTimer();
        resolve(outcome);
      };
      const onValid = () => finish('valid');
      const onAbort = () => finish('aborted');
      const cancelTimer = this.#clock.after(Math.max(waitMs, 0), () => finish('timedOut'));
      this.#waiting.add(onValid);
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }
}
