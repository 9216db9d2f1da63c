import type { Cancel, Clock } from '@rackwright/platform';
import { type BmcResult, transient } from './driver.ts';
import { type BmcHealth, type GovernorLimits, GovernorState } from './governor-state.ts';

/**
 * A preemptible call only reads, and gives way to every act: it is refused while another feature's
 * call waits or is under way, and asked to stop when one arrives.
 */
export interface PreemptibleUse {
  /** Aborts the signal that its calls were made with. */
  preempt(): void;
}

/** The part of a governor that a driver uses. */
export interface GovernedCalls {
  run<T>(
    credential: string,
    act: () => Promise<BmcResult<T>>,
    rest: Rest,
    signal?: AbortSignal,
  ): Promise<BmcResult<T>>;
}

/** How long a driver leaves its BMC alone after each call, in milliseconds. */
export interface RestAfter {
  /** One that only reads. */
  readonly read: number;
  /** One that may have changed something: the BMC is at work. */
  readonly act: number;
}

/** After one call. */
export interface Rest {
  readonly restMs: number;
}

/**
 * The only path to a BMC: every feature's calls pass here in order of arrival. Decisions are
 * GovernorState's; this shell keeps the queue and the timer.
 */
export class Governor {
  readonly #clock: Clock;
  readonly #limits: GovernorLimits;
  readonly #state: GovernorState;
  readonly #onHealth: (health: BmcHealth) => void;
  readonly #queue: WaitingCall[] = [];
  #inFlight: WaitingCall | undefined;
  #cancelTimer: Cancel | undefined;
  #reported: BmcHealth['kind'] = 'answering';

  /** `onHealth` is called when the kind of health changes, never per call. */
  constructor(clock: Clock, limits: GovernorLimits, onHealth: (health: BmcHealth) => void) {
    this.#clock = clock;
    this.#limits = limits;
    this.#state = new GovernorState(limits);
    this.#onHealth = onHealth;
  }

  health(): BmcHealth {
    return this.#state.health();
  }

  /**
   * Runs one call when its slot is free. `credential` names credential and version, never the
   * secret. `act` must end within a bound of its own; when it throws, so does this.
   */
  run<T>(
    credential: string,
    act: () => Promise<BmcResult<T>>,
    { restMs }: Rest,
    signal?: AbortSignal,
    preemptible?: PreemptibleUse,
  ): Promise<BmcResult<T>> {
    if (signal?.aborted === true) return Promise.resolve(cancelled());
    if (preemptible === undefined) this.#preemptReads();
    else if (this.#hasWork()) {
      return Promise.resolve(transient('busy', 'an operation is at work on this BMC'));
    }
    if (this.#queue.length >= this.#limits.queueCallsMax) {
      const message = `${this.#queue.length} calls already wait for this BMC`;
      return Promise.resolve(transient('queueFull', message));
    }
    const { promise, resolve, reject } = Promise.withResolvers<BmcResult<T>>();
    const onAbort = (): void => {
      const at = this.#queue.indexOf(waiting);
      if (at >= 0) this.#queue.splice(at, 1);
      resolve(cancelled());
    };
    const waiting: WaitingCall = {
      credential,
      preemptible,
      restMs,
      refuse: (refusal) => {
        signal?.removeEventListener('abort', onAbort);
        resolve(refusal);
      },
      start: async () => {
        signal?.removeEventListener('abort', onAbort);
        let result: BmcResult<T> | undefined;
        try {
          result = await act();
          resolve(result);
        } catch (error) {
          reject(error);
        } finally {
          this.#ended(waiting, result);
        }
      },
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    this.#queue.push(waiting);
    this.#pump();
    return promise;
  }

  /** Credential versions name other passwords from here on: none of them was refused. */
  startOver(): void {
    this.#state.startOver();
    this.#reportHealth();
  }

  /** Whether anything but preemptible calls waits or is under way. */
  #hasWork(): boolean {
    const calls = this.#inFlight === undefined ? this.#queue : [this.#inFlight, ...this.#queue];
    return calls.some(({ preemptible }) => preemptible === undefined);
  }

  /** Every preemptible call, under way or waiting, breaks off. */
  #preemptReads(): void {
    for (const { preemptible } of [...this.#queue]) preemptible?.preempt();
    this.#inFlight?.preemptible?.preempt();
  }

  #ended(
    { credential, preemptible, restMs }: WaitingCall,
    result: BmcResult<unknown> | undefined,
  ): void {
    this.#inFlight = undefined;
    const call = { wasPreemptible: preemptible !== undefined, restMs };
    this.#state.ended(this.#clock.suspendAwareMs(), credential, result, call);
    this.#reportHealth();
    this.#pump();
  }

  #reportHealth(): void {
    const health = this.#state.health();
    if (health.kind === this.#reported) return;
    this.#reported = health.kind;
    this.#onHealth(health);
  }

  #pump(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    for (let first = this.#queue[0]; first !== undefined; first = this.#queue[0]) {
      const nowMs = this.#clock.suspendAwareMs();
      const isReadOnly = first.preemptible !== undefined;
      const admission = this.#state.admit(nowMs, first.credential, { isReadOnly });
      switch (admission.kind) {
        case 'refuse':
          this.#queue.shift();
          first.refuse(admission.result);
          continue;
        case 'start':
          this.#queue.shift();
          this.#state.started();
          this.#inFlight = first;
          void first.start();
          return;
        case 'wait':
          this.#cancelTimer = this.#clock.after(admission.untilMs - nowMs, () => this.#pump());
          return;
        case 'waitForEnd':
          return;
      }
    }
  }
}

/** One governor per BMC address, shared by everything that speaks to it. */
export class Governors {
  readonly #make: (address: string) => Governor;
  readonly #byAddress = new Map<string, Governor>();

  constructor(make: (address: string) => Governor) {
    this.#make = make;
  }

  /** `address` with its port, lower case: the same BMC must not be reached by two spellings. */
  at(address: string): Governor {
    const known = this.#byAddress.get(address);
    if (known !== undefined) return known;
    const governor = this.#make(address);
    this.#byAddress.set(address, governor);
    return governor;
  }

  /** Forgets everything about an address (Forget). Calls in flight end as they may. */
  forget(address: string): void {
    this.#byAddress.delete(address);
  }

  /** Credential versions name other passwords from here on, for every BMC. */
  startOver(): void {
    for (const governor of this.#byAddress.values()) governor.startOver();
  }
}

interface WaitingCall {
  readonly restMs: number;
  readonly credential: string;
  readonly preemptible: PreemptibleUse | undefined;
  readonly refuse: (refusal: BmcRefusal) => void;
  readonly start: () => Promise<void>;
}

type BmcRefusal = Extract<BmcResult<never>, { kind: 'failed' | 'transient' }>;

function cancelled(): BmcRefusal {
  return transient('cancelled', 'the call was given up before the BMC was asked');
}
