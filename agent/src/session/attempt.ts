/** One operation in memory: its progress and its result. */
import { create } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { agent, type HostUid, type OperationId } from '@rackwright/messages';
import type { Clock, LogFields } from '@rackwright/platform';
import type { JournalledOperation } from '../journal/index.ts';
import type { Progress } from './executor.ts';
import type { OperationCheck } from './operation-check.ts';
import { idsOf } from './trace.ts';

/**
 * receiving: its record is being written. waiting: durable, not started. running: handed to the
 * executor. ending: over, the report is being written. ended: the report is there.
 */
export type AttemptPhase = 'receiving' | 'waiting' | 'running' | 'ending' | 'ended' | 'gone';

export class Attempt {
  readonly operation: agent.Operation;
  readonly check: OperationCheck;
  readonly #clock: Clock;
  /** On the clock that only grows, so that a step of the wall clock moves no deadline. */
  readonly #dueAtMs: number;
  readonly #abort = new AbortController();
  readonly #over = Promise.withResolvers<void>();
  phase: AttemptPhase = 'receiving';
  /** The journal knows the operation. */
  journalled = false;
  /** OperationBegun is durable: something outside may have been changed. */
  begun = false;
  /** The final report, from the phase `ending` on. */
  report: agent.Report | undefined;
  /** The journal knows the final report. */
  reportJournalled = false;
  answered = false;
  /** The control plane is done with it: when it is over, nothing is reported. */
  dropped = false;
  /** The session in which the report was sent last; 0 for none. */
  sentInSession = 0;
  progress: Progress | undefined;
  #ids: LogFields | undefined;

  /** The operation's times are of this machine's clock. */
  constructor(operation: agent.Operation, check: OperationCheck, clock: Clock) {
    const { deadline } = operation;
    this.operation = operation;
    this.check = check;
    this.#clock = clock;
    this.#dueAtMs =
      deadline === undefined
        ? Number.POSITIVE_INFINITY
        : clock.suspendAwareMs() + timestampMs(deadline) - clock.nowMs();
  }

  /** An operation from the previous start of the agent. */
  static fromJournal(known: JournalledOperation, check: OperationCheck, clock: Clock): Attempt {
    const attempt = new Attempt(known.operation, check, clock);
    attempt.phase = 'waiting';
    attempt.journalled = true;
    attempt.begun = known.phase === 'begun';
    if (known.phase === 'ended') {
      attempt.phase = 'ended';
      attempt.report = known.report;
      attempt.reportJournalled = true;
      attempt.answered = known.answered;
      attempt.finish();
    }
    return attempt;
  }

  get id(): OperationId {
    return this.operation.id;
  }

  get hostUid(): HostUid {
    return this.operation.hostUid;
  }

  /** Fields of every line about it; hashing makes them, so once. */
  get ids(): LogFields {
    this.#ids ??= idsOf(this.operation);
    return this.#ids;
  }

  /** Until its deadline; infinite where the check does not demand one, negative when it is over. */
  remainingMs(): number {
    return this.#dueAtMs - this.#clock.suspendAwareMs();
  }

  /** Aborted when it is to be stopped. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Resolves when nothing of it runs any more and its report, if any, is on its way. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  /** Whether something of it may run, now or later (R12). */
  get mayRun(): boolean {
    return this.phase === 'receiving' || this.phase === 'waiting' || this.phase === 'running';
  }

  abort(): void {
    this.#abort.abort();
  }

  finish(): void {
    this.#over.resolve();
  }

  /** For Hello (R10). */
  line(): agent.JournalledOperation {
    const { id: operationId, hostUid, answered } = this;
    return create(agent.JournalledOperationSchema, {
      operationId,
      hostUid,
      answered,
      state: this.#stateOnWire(),
    });
  }

  #stateOnWire(): agent.JournalledOperation_State {
    if (this.phase === 'ended') return agent.JournalledOperation_State.ENDED;
    return this.begun
      ? agent.JournalledOperation_State.BEGUN
      : agent.JournalledOperation_State.JOURNALLED;
  }
}
