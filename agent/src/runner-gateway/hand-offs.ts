/**
 * Tells runners that a step may take them away (see `session/hand-off.ts` for H1 to H4). The
 * journal behind the session decides; this module remembers only which runners know it.
 */
import type { HostUid, OperationId, RunnerSessionId } from '@rackwright/messages';
import type { Clock, Log } from '@rackwright/platform';
import type { HandOff, HandOffState } from '../session/index.ts';
import type { BootClosure } from './boot-closure.ts';
import type { BeginDecision, RunnerLink } from './link.ts';

/** The session's part of hand-offs. */
export interface HandOffSession {
  stateOf(operationId: OperationId): HandOffState;
  /** The hand-off that ends the runner of this boot; undefined until it is decided. */
  ofBoot(bootOperationId: OperationId): HandOff | undefined;
  /** The same for the latest boot of the host. */
  ofHost(hostUid: HostUid): HandOff | undefined;
  /** Whether something destructive may begin at this moment (R11). */
  isLeaseValid(): boolean;
  /** How long the lease is valid unless it is renewed, milliseconds. */
  leaseLeftMs(): number;
  /** This runner is about to end: it accepts no more work. */
  noteLeaving(hostUid: HostUid, runnerSession: RunnerSessionId): void;
}

/** For programs without hand-offs. */
export const noHandOffs: HandOffSession = {
  stateOf: () => 'none',
  ofBoot: () => undefined,
  ofHost: () => undefined,
  isLeaseValid: () => false,
  leaseLeftMs: () => 0,
  noteLeaving: () => {},
};

/** Boots that are remembered as released. */
const releasedMax = 4_096;

export interface HandOffParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly session: HandOffSession;
  /** The interval between two checks of a destructive one while there is no lease. */
  readonly leaseRetryMs: number;
  /** How long other work on the host waits until the runner knows that it may act. */
  readonly runnerWaitMs: number;
  /** The live link of a boot. */
  readonly linkOf: (bootOperationId: OperationId) => RunnerLink | undefined;
}

export class HandOffs {
  readonly #parts: HandOffParts;
  /** Boots whose hand-off waits for the lease. */
  readonly #waiting = new Set<OperationId>();
  /**
   * By boot, when other work on its host first had to wait for this hand-off. Only boots whose
   * runner has not been released since the start of the agent.
   */
  readonly #unreleasedSinceMs = new Map<OperationId, number>();
  /** Boots whose runner was released since the start of the agent. */
  readonly #released = new Set<OperationId>();

  constructor(parts: HandOffParts) {
    this.#parts = parts;
  }

  /** Of a boot whose runner a step has taken away; undefined of any other boot. */
  closureOf(bootOperationId: OperationId): BootClosure | undefined {
    const handOff = this.#parts.session.ofBoot(bootOperationId);
    if (handOff === undefined) return undefined;
    return { kind: 'handedOff', text: `step ${handOff.operationId} has taken its runner away` };
  }

  /**
   * The operation after a hand-off would mostly boot the host again at once. A runner that is away
   * for a moment, or a restart of ours, must not let that cancel the hand-off.
   */
  underWay(hostUid: HostUid): string | undefined {
    const { clock, session, runnerWaitMs } = this.#parts;
    const handOff = session.ofHost(hostUid);
    if (handOff === undefined || this.#released.has(handOff.bootOperationId)) return undefined;
    const nowMs = clock.suspendAwareMs();
    const sinceMs = this.#unreleasedSinceMs.get(handOff.bootOperationId) ?? nowMs;
    this.#unreleasedSinceMs.set(handOff.bootOperationId, sinceMs);
    if (nowMs - sinceMs < runnerWaitMs) return handOff.operationId;
    this.#markReleased(handOff.bootOperationId);
    return undefined;
  }

  /**
   * Whether the step that takes this boot's runner away may destroy now; undefined: the operation
   * is no such step.
   */
  mayBegin(bootOperationId: OperationId, operationId: OperationId): BeginDecision | undefined {
    const { clock, session } = this.#parts;
    const handOff = session.ofBoot(bootOperationId);
    if (handOff?.operationId !== operationId) return undefined;
    if (clock.nowMs() >= handOff.deadlineMs) return { case: 'over', value: 'its time is over' };
    if (!handOff.destructive) return { case: 'granted', value: true };
    const forMs = session.leaseLeftMs();
    if (forMs > 0) return { case: 'granted', value: true, forMs };
    return { case: 'wait', value: 'waits for the work lease' };
  }

  /** The runner says that it acts now: it has its permission, and nothing need wait for it. */
  acts(bootOperationId: OperationId, operationId: OperationId): void {
    const handOff = this.#parts.session.ofBoot(bootOperationId);
    if (handOff?.operationId === operationId) this.#markReleased(bootOperationId);
  }

  /** Remembered of the last boots only: those before have been booted again long since. */
  #markReleased(bootOperationId: OperationId): void {
    this.#unreleasedSinceMs.delete(bootOperationId);
    this.#released.add(bootOperationId);
    const [oldest] = this.#released;
    if (this.#released.size > releasedMax && oldest !== undefined) this.#released.delete(oldest);
  }

  /**
   * The final report of this operation is durable here. Tells the runner that, or that it may act,
   * or waits.
   */
  noteReportDurable(link: RunnerLink, operationId: OperationId): void {
    switch (this.#parts.session.stateOf(operationId)) {
      case 'pending':
        // The control plane's answer comes first (H1).
        return;
      case 'released':
        return this.#release(link.bootOperationId);
      case 'none':
        link.send({ case: 'reportReceived', value: { operationId } });
    }
  }

  /** The control plane has answered. */
  answered({ operationId, bootOperationId }: HandOff, acts: boolean): void {
    if (acts) return this.#release(bootOperationId);
    const link = this.#parts.linkOf(bootOperationId);
    link?.send({ case: 'reportReceived', value: { operationId } });
  }

  /** A runner that is away gets its permission when it comes back: it still lists its report. */
  #release(bootOperationId: OperationId): void {
    const { clock, linkOf, log, session, leaseRetryMs } = this.#parts;
    const handOff = session.ofBoot(bootOperationId);
    const link = linkOf(bootOperationId);
    if (handOff === undefined || link === undefined) return;
    const { operationId, destructive, deadlineMs } = handOff;
    if (clock.nowMs() >= deadlineMs) return this.#neverActs(handOff, link);
    if (destructive && !session.isLeaseValid()) {
      if (this.#waiting.has(bootOperationId)) return;
      this.#waiting.add(bootOperationId);
      clock.after(leaseRetryMs, () => {
        this.#waiting.delete(bootOperationId);
        this.#release(bootOperationId);
      });
      return;
    }
    log.info({ operation: operationId, host: link.hostUid }, 'the runner hands its host off');
    link.send({ case: 'reportReceived', value: { operationId, handOff: true } });
    session.noteLeaving(link.hostUid, link.runnerSession);
  }

  /**
   * H4. Its boot is over all the same: the journal holds that, and nothing else may begin in it.
   */
  #neverActs({ operationId, bootOperationId }: HandOff, link: RunnerLink): void {
    const { log, session } = this.#parts;
    const fields = { operation: operationId, host: link.hostUid };
    log.warn(fields, 'the time of a hand-off was over before it could begin: it never acts');
    link.send({ case: 'reportReceived', value: { operationId } });
    this.#markReleased(bootOperationId);
    session.noteLeaving(link.hostUid, link.runnerSession);
  }
}
