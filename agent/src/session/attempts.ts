/**
 * Every operation that this agent keeps, from receipt until it is settled.
 *
 * A1 A known id is never executed again: it is answered from the journal (R3).
 * A2 An operation is durable before anything of it starts.
 * A3 An operation that had begun when the agent last ended is never repeated: it is resumed with
 *    the runner that still has it, or ends interrupted (R4).
 * A4 An operation that was received and had not begun starts after a restart only when the control
 *    plane says so: it may have moved on meanwhile.
 * A5 While an exclusive operation may still run on a host, another is answered `locked` (R12).
 * A6 It knows the journal's operations from its construction on. Runners connect while the agent
 *    starts. An operation that looked unknown for a moment let a runner forget its final report,
 *    and the step ran a second time.
 */
import { agent, type HostUid, type OperationId } from '@rackwright/messages';
import type { FinalResult } from '@rackwright/results';
import type { RecordSpan } from '@rackwright/trace';
import { Attempt } from './attempt.ts';
import { AttemptBook } from './attempt-book.ts';
import { type ContextDependencies, makeContext } from './attempt-context.ts';
import { AttemptEnd, type Executor } from './executor.ts';
import { type HandOff, handOffOf } from './hand-off.ts';
import { checkOperation } from './operation-check.ts';
import { type Outlet, ReportOutbox } from './outbox.ts';
import { inOwnTime } from './own-time.ts';
import {
  afterBegin,
  beforeBegin,
  cancelled,
  handingOff,
  interrupted,
  locked,
  notDurable,
  stillRunning,
  thrown,
  tooManyOperations,
  unsupported,
} from './results.ts';
import { spanOf } from './trace.ts';

/** A Cancel without a deadline, or with a far one, is answered after this at the latest. */
const cancelWaitMsMax = 24 * 60 * 60_000;

export interface AttemptsDependencies extends Omit<ContextDependencies, 'sendProgress'> {
  readonly outlet: Outlet;
  readonly executor: Executor;
  /** Records the span of each operation that has run; unset: none is recorded. */
  readonly recordSpan?: RecordSpan;
}

export class Attempts {
  readonly outbox: ReportOutbox;
  readonly #deps: AttemptsDependencies;
  readonly #kept = new AttemptBook();
  readonly #forgetting = new Set<HostUid>();

  constructor(deps: AttemptsDependencies) {
    this.#deps = deps;
    const onSafe = (operationId: OperationId) => deps.executor.noteReportDurable(operationId);
    const onHandOff = (handOff: HandOff, acts: boolean) => {
      deps.executor.handOffAnswered?.(handOff, acts);
    };
    this.outbox = new ReportOutbox({
      ...deps,
      attempts: this.#kept,
      onReportDurable: onSafe,
      onHandOff,
    });
    this.#readJournal();
  }

  /** A6. */
  #readJournal(): void {
    const { journal, executor, clock } = this.#deps;
    for (const known of journal.state.operations.values()) {
      const check = checkOperation(known.operation, executor.operationKinds);
      this.#kept.add(Attempt.fromJournal(known, check, clock));
      this.#noteCredential(known.operation);
    }
  }

  /**
   * Resumes the operations of the previous start. Resolves once each interrupted one has its
   * report, so that the first Hello carries it.
   */
  async recover(): Promise<void> {
    const left = this.#kept.values().filter(({ phase }) => phase === 'waiting');
    await Promise.all(left.filter(({ begun }) => begun).map((attempt) => this.#resume(attempt)));
    // Stopping an operation never does harm, and must precede every start.
    for (const attempt of left) if (attempt.check.kind === 'cancel') this.#start(attempt);
  }

  /** Takes an operation from the control plane. */
  receive(sent: agent.Operation): void {
    const { log, limits, executor, clock } = this.#deps;
    const operation = inOwnTime(sent, clock.nowMs());
    const { id } = operation;
    if (id === '') {
      log.warn({ host: operation.hostUid }, 'an operation without an id cannot be answered');
      return;
    }
    const known = this.#kept.get(id);
    if (known !== undefined) return this.#redeliver(known);
    if (this.#kept.size >= limits.operationsMax) {
      return this.outbox.refuse(operation, tooManyOperations(limits.operationsMax));
    }
    const attempt = new Attempt(
      operation,
      checkOperation(operation, executor.operationKinds),
      clock,
    );
    const refusal = this.#refusal(attempt);
    this.#kept.add(attempt);
    this.#noteCredential(operation);
    void this.#journalAndStart(attempt, refusal);
  }

  /** The control plane's directives for the operations in Hello (R10). */
  direct(directives: readonly agent.Directive[]): void {
    for (const { operationId, action } of directives) {
      const attempt = this.#kept.get(operationId);
      if (attempt === undefined) continue;
      switch (action) {
        case agent.Directive_Action.CONTINUE:
          if (attempt.phase === 'waiting') this.#start(attempt);
          break;
        case agent.Directive_Action.CANCEL:
          this.#stop(attempt);
          break;
        case agent.Directive_Action.FORGET:
          void this.#discard(attempt);
          break;
        case agent.Directive_Action.UNSPECIFIED:
        default:
          this.#deps.log.warn({ operation: operationId, action }, 'a directive says nothing');
      }
    }
  }

  /** A session is open: sends it everything that is not yet answered. */
  sendUnanswered(): void {
    this.outbox.retryUnwritten();
    this.outbox.flush();
    for (const attempt of this.#kept.values()) this.outbox.sendProgress(attempt);
  }

  /** Ends and drops all operations of a host. False when the journal still knows one. */
  async forgetHost(hostUid: HostUid): Promise<boolean> {
    this.#forgetting.add(hostUid);
    try {
      const its = [...this.#kept.ofHost(hostUid)];
      const gone = await Promise.all(its.map((attempt) => this.#discard(attempt)));
      return gone.every(Boolean);
    } finally {
      this.#forgetting.delete(hostUid);
    }
  }

  /** Whether anything is under way, or its end not answered. */
  hasOpen(): boolean {
    return this.#kept.values().some(({ phase, answered }) => phase !== 'ended' || !answered);
  }

  stateOf(operationId: OperationId): 'unknown' | 'received' | 'begun' | 'ended' {
    const attempt = this.#kept.get(operationId);
    if (attempt === undefined) return 'unknown';
    if (attempt.phase === 'ended') return 'ended';
    return attempt.begun ? 'begun' : 'received';
  }

  /** Whether a hand-off waits for the control plane's answer (H1). */
  isHandOffPending(operationId: OperationId): boolean {
    const attempt = this.#kept.get(operationId);
    if (attempt === undefined || attempt.answered || attempt.dropped) return false;
    return handOffOf(attempt.operation, attempt.report) !== undefined;
  }

  /** Whether an exclusive operation may still run on the host (R12). */
  isBusy(hostUid: HostUid): boolean {
    return this.#exclusiveOn(hostUid) !== undefined;
  }

  /** For Hello: all that the journal knows (R10). */
  list(): readonly agent.JournalledOperation[] {
    const known = this.#kept.values().filter(({ journalled, phase }) => {
      return journalled || phase === 'ended';
    });
    return known.map((attempt) => attempt.line());
  }

  /** Why an operation must not run at all. */
  #refusal(attempt: Attempt): FinalResult | undefined {
    const { check, hostUid, id } = attempt;
    if (check.kind === 'unsupported') return unsupported(check.problem);
    if (this.#forgetting.has(hostUid)) return cancelled;
    if (check.kind === 'cancel') return undefined;
    if (this.#kept.isCancelled(id)) return cancelled;
    if (!check.exclusive) return undefined;
    const other = this.#exclusiveOn(hostUid);
    if (other !== undefined) return locked(other.id);
    const handOff = this.#handOffOn(hostUid);
    return handOff === undefined ? undefined : handingOff(handOff);
  }

  /** From its report on: the next operation may be sent even before the report is answered. */
  #handOffOn(hostUid: HostUid): string | undefined {
    for (const { id } of this.#kept.ofHost(hostUid)) {
      if (this.isHandOffPending(id)) return id;
    }
    return this.outbox.recordingHandOff(hostUid) ?? this.#deps.executor.handOffUnderWay?.(hostUid);
  }

  #exclusiveOn(hostUid: HostUid): Attempt | undefined {
    for (const attempt of this.#kept.ofHost(hostUid)) {
      const exclusive = attempt.check.kind === 'execute' && attempt.check.exclusive;
      if (exclusive && attempt.mayRun) return attempt;
    }
    return undefined;
  }

  /** The order of a known id arrived again (A1). */
  #redeliver(attempt: Attempt): void {
    if (attempt.phase === 'ended') return this.outbox.flushAgain(attempt);
    if (attempt.phase === 'waiting') this.#start(attempt);
  }

  async #journalAndStart(attempt: Attempt, refusal: FinalResult | undefined): Promise<void> {
    const { journal, crashPoint, log } = this.#deps;
    const refuse = (result: FinalResult) => this.outbox.end(attempt, beforeBegin(attempt, result));
    if (refusal !== undefined) return refuse(refusal);
    const { operation } = attempt;
    try {
      await journal.append({ case: 'received', value: { operation } });
    } catch (error) {
      log.error({ operation: attempt.id }, 'an operation is not durable', error);
      return refuse(notDurable());
    }
    attempt.journalled = true;
    attempt.phase = 'waiting';
    crashPoint('agent.journalled');
    log.info(attempt.ids, `received ${operation.kind.case}`);
    if (attempt.signal.aborted) return refuse(cancelled);
    this.#start(attempt);
  }

  #start(attempt: Attempt): void {
    const { check } = attempt;
    attempt.phase = 'running';
    switch (check.kind) {
      case 'unsupported':
        return void this.outbox.end(attempt, unsupported(check.problem));
      case 'cancel':
        return void this.#cancel(attempt, check.targetId);
      case 'execute': {
        const { executor } = this.#deps;
        const context = makeContext(attempt, this.#contextDependencies());
        return void this.#run(attempt, () => executor.execute(attempt.operation, context));
      }
    }
  }

  async #run(attempt: Attempt, execute: () => Promise<FinalResult>): Promise<void> {
    const startMs = this.#deps.clock.nowMs();
    const result = afterBegin(attempt, await this.#resultOf(attempt, execute));
    const { operation } = attempt;
    this.#deps.log.info({ ...attempt.ids, result: result.kind }, 'ended');
    this.#record(operation, result, startMs);
    await this.outbox.end(attempt, result);
  }

  #record(operation: agent.Operation, result: FinalResult, startMs: number): void {
    const { recordSpan, clock } = this.#deps;
    if (recordSpan === undefined) return;
    const span = spanOf(operation, result, { startMs, endMs: clock.nowMs() });
    if (span !== undefined) recordSpan(span);
  }

  async #resultOf(attempt: Attempt, execute: () => Promise<FinalResult>): Promise<FinalResult> {
    try {
      return await execute();
    } catch (error) {
      if (error instanceof AttemptEnd) return error.result;
      this.#deps.log.error(attempt.ids, 'an operation threw', error);
      return thrown(error);
    }
  }

  /**
   * Resumes or ends an operation that began in an earlier start (A3). Resolves when Hello may
   * report it.
   */
  async #resume(attempt: Attempt): Promise<void> {
    const { executor } = this.#deps;
    const { operation } = attempt;
    const ended = interrupted('begun; the agent has written down nothing later');
    attempt.phase = 'running';
    if (operation.kind.case !== 'runStep' && operation.kind.case !== 'inspect') {
      return this.outbox.end(attempt, ended);
    }
    const context = makeContext(attempt, this.#contextDependencies());
    const resumed = executor.resume(operation, context);
    if (resumed === 'interrupted') return this.outbox.end(attempt, ended);
    void this.#run(attempt, async () => {
      const result = await resumed;
      return result === 'interrupted' ? ended : result;
    });
  }

  /** Stops another operation; answers when that one is over. */
  async #cancel(attempt: Attempt, targetId: OperationId): Promise<void> {
    const target = this.#kept.get(targetId);
    if (target === undefined || target === attempt) {
      return this.outbox.end(attempt, { kind: 'complete' });
    }
    this.#stop(target);
    const over = await this.#waitUntilOver(target, attempt);
    await this.outbox.end(attempt, over ? { kind: 'complete' } : stillRunning(targetId));
  }

  /** Waits for the target until the Cancel's own deadline, or until that is stopped itself. */
  #waitUntilOver(target: Attempt, cancel: Attempt): Promise<boolean> {
    const { clock } = this.#deps;
    const { signal } = cancel;
    const waitMs = Math.min(Math.max(cancel.remainingMs(), 0), cancelWaitMsMax);
    return new Promise((resolve) => {
      const finish = (over: boolean) => {
        cancelTimer();
        signal.removeEventListener('abort', onAbort);
        resolve(over);
      };
      const onAbort = () => finish(false);
      const cancelTimer = clock.after(waitMs, () => finish(false));
      signal.addEventListener('abort', onAbort, { once: true });
      void target.over.then(() => finish(true));
      if (signal.aborted) finish(false);
    });
  }

  #stop(attempt: Attempt): void {
    attempt.abort();
    if (attempt.phase === 'waiting') void this.outbox.end(attempt, cancelled);
  }

  /** Stops it and drops it without a report. False when the journal still knows it. */
  async #discard(attempt: Attempt): Promise<boolean> {
    attempt.dropped = true;
    this.#stop(attempt);
    await attempt.over;
    return attempt.phase === 'gone' || this.outbox.drop(attempt);
  }

  #noteCredential({ kind, hostUid }: agent.Operation): void {
    const withBmc = kind.case === 'verifyAccess' || kind.case === 'setPower';
    if (!withBmc && kind.case !== 'runStep') return;
    const name = kind.value.bmc?.credential ?? '';
    if (name !== '') this.#deps.credentials.noteUse(name, hostUid);
    const ofImage = kind.case === 'runStep' ? (kind.value.image?.credential ?? '') : '';
    if (ofImage !== '') this.#deps.credentials.noteUse(ofImage, hostUid);
    if (kind.case !== 'runStep') return;
    const image = kind.value.deployment?.image;
    for (const { credential } of image === undefined ? [] : [image, ...image.mirrors]) {
      if (credential !== '') this.#deps.credentials.noteUse(credential, hostUid);
    }
    for (const { credential } of kind.value.secrets) {
      this.#deps.credentials.noteUse(credential, hostUid);
    }
  }

  #contextDependencies() {
    return {
      ...this.#deps,
      sendProgress: (attempt: Attempt) => this.outbox.sendProgress(attempt),
    };
  }
}
