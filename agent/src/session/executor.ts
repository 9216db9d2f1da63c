/**
 * The interface between the session and the executor of operations. The session decides whether an
 * operation may run, records everything and delivers the result. The executor controls BMCs and
 * runners and returns the outcome.
 */
import type { agent, HostName, HostUid, OperationId } from '@rackwright/messages';
import type { FinalResult } from '@rackwright/results';
import type { SessionBrake } from './brake.ts';
import type { HandOff } from './hand-off.ts';

/** The kinds that an executor takes. `cancel` is the session's own. */
export type ExecutedKind = Exclude<agent.Operation['kind']['case'], 'cancel' | undefined>;

export interface Progress {
  /** "interface.step", or a word of the kind. */
  readonly step: string;
  /** 0–100. */
  readonly percent?: number;
  readonly text: string;
  /** When to expect the next word, milliseconds from now. */
  readonly hintMs?: number;
  /** The work is known to have begun. */
  readonly begun?: true;
  /** It waits for its slot: 1 is next. */
  readonly queuePlace?: number;
  /** The signs of an awaited host, the last of each kind. */
  readonly signs?: readonly agent.HostSign[];
}

/** A secret, in memory only. Never log it, never put it into an error. */
export interface Credential {
  readonly name: string;
  readonly version: bigint;
  readonly username: string;
  readonly password: string;
}

/** Permission to boot the runner, and the runner that has bound it (DESIGN §9). */
export interface BootGrantState {
  /** The SetPower operation that opened it. */
  readonly operationId: OperationId;
  readonly hostUid: HostUid;
  readonly hostName: HostName;
  readonly macs: readonly string[];
  /** 32 hex digits. */
  readonly bootToken: string;
  readonly openedAtMs: number;
  /** The same on the clock that only grows; only in the life of the agent that opened it. */
  readonly openedSuspendAwareMs?: number;
  /** After this no new runner may start with it; a runner that has bound it goes on. */
  readonly expiresAtMs: number;
  /** SPKI, DER: the first key that presented the token owns the boot. */
  readonly publicKey?: Uint8Array;
  /** The runner of this boot takes no step. */
  readonly rescue?: boolean;
  /** The machine is no host: its runner gives its inventory and takes no step. */
  readonly discovery?: boolean;
  /** A step takes the runner of this boot away: it takes no other order any more. */
  readonly handedOff?: HandOff;
}

/** One operation's view of the session. */
export interface OperationContext {
  /**
   * Aborted by Cancel, by the directives cancel and forget, and by Forget of the host. Stop
   * everything that can be stopped; return `failed: cancelled`, or the real outcome.
   */
  readonly signal: AbortSignal;
  /**
   * Makes the intent durable (R4). Await it directly before the first thing that changes anything
   * outside. For a step that destroys data it also waits for the work lease and checks it last
   * (R11). Idempotent. Rejects with `AttemptEnd`: then touch nothing and let it propagate.
   */
  begin(): Promise<void>;
  /** Reports progress: the latest wins, is sent now and then, and is never stored. */
  reportProgress(progress: Progress): void;
  /**
   * The secret by name, in this version or a newer one. Waits for it a bounded time, then rejects
   * with `AttemptEnd` (retryAfter).
   */
  credential(name: string, version: bigint): Promise<Credential>;
  /** Whether destructive work may begin at this moment (R11). */
  isLeaseValid(): boolean;
  /** How long it may begin, unless the lease is renewed, milliseconds; 0 when it may not now. */
  leaseLeftMs(): number;
  /** What keeps destructive work from beginning; undefined while nothing is known that does. */
  brake(): SessionBrake | undefined;
  /**
   * Until the operation's deadline, also when the wall clock is set; negative when it has passed.
   */
  remainingMs(): number;
  /**
   * Opens the boot grant of this operation, durably, with a random token; the host's earlier ones
   * are closed. Asked again, answers with the same one. Rejects with `AttemptEnd`.
   */
  openGrant(grant: {
    readonly macs: readonly string[];
    /** Wall time, milliseconds. */
    readonly expiresAtMs: number;
    /** The runner must take no step. */
    readonly rescue?: boolean;
  }): Promise<BootGrantState>;
  /** Closes every grant of this operation's host: it is being powered for something else. */
  closeGrants(): Promise<void>;
}

/** Carries out operations; one per agent. */
export interface Executor {
  /** What `execute` takes; anything else is answered `unsupported` (R8). */
  readonly operationKinds: readonly ExecutedKind[];
  /** Steps that it runs itself, out of band, as Hello lists them; absent: none. */
  readonly steps?: readonly agent.StepDescription[];
  /** Runs one attempt. Called at most once for an operation id, ever (R3). */
  execute(operation: agent.Operation, context: OperationContext): Promise<FinalResult>;
  /**
   * After a restart, for an in-band operation (inspect, runStep) that had begun and not ended: its
   * runner may still be at work. Answer with the runner's report once it is back (wait a bounded
   * time), or 'interrupted'. Never repeat anything (R4).
   */
  resume(
    operation: agent.Operation,
    context: OperationContext,
  ): 'interrupted' | Promise<FinalResult | 'interrupted'>;
  /** The final report of this operation is durable: the runner may learn that. */
  noteReportDurable(operationId: OperationId): void;
  /** The control plane has answered the end of a hand-off; `acts`: durably, it may act now. */
  handOffAnswered?(handOff: HandOff, acts: boolean): void;
  /** The hand-off of this host that may act and whose runner does not know it yet, if any. */
  handOffUnderWay?(hostUid: HostUid): string | undefined;
  /** Names and versions of credentials mean other passwords from here on: the store is another. */
  credentialsStartedOver?(): void;
  /** Drops everything that belongs to the host. None of its operations runs any more. */
  forgetHost(hostUid: HostUid): Promise<void>;
}

/** Polls power beside the operations; its input comes from the session. */
export interface PowerReadings {
  /** A session has opened: reports of the session before may be lost. */
  sessionOpened(): void;
  /** Replaces the earlier request. */
  replace(sync: agent.PowerSync): void;
  /** An operation begins or ends to work on the host: earlier observations no longer count. */
  noteDisturbance(hostUid: HostUid): void;
  forgetHost(hostUid: HostUid): void;
  stop(): void;
}

/** Thrown anywhere inside `execute` or `resume`: ends the attempt with `result`. */
export class AttemptEnd extends Error {
  override readonly name = 'AttemptEnd';
  readonly result: FinalResult;

  constructor(result: FinalResult) {
    super(result.kind === 'complete' ? 'complete' : `${result.kind}: ${result.message}`);
    this.result = result;
  }
}
