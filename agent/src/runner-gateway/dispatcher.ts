/**
 * Who works on what: connects operations with the runners of their boots. Synchronous inside; the
 * streams, the clock and the session are handed in.
 *
 * Invariants:
 * 1. An order goes to a runner under its operation id as often as needed; the runner runs an id
 *    once. A destructive one is sent, also again, only under a valid work lease (R11).
 * 2. Silence never ends an order: only the runner's report, proof that its boot is over, or the
 *    operation's own deadline (R5).
 * 3. A runner may forget a final report only after the journal has it.
 * 4. One live link per boot; a newer one replaces an older.
 * 5. The absence of a runner is always shown to people: after a while its work says since when.
 */
import { toBinary } from '@bufbuild/protobuf';
import {
  agent,
  burnInNetworkStep,
  type HostUid,
  type OperationId,
  type runner,
} from '@rackwright/messages';
import type { Cancel, Clock, Log } from '@rackwright/platform';
import {
  boundResult,
  type FailedAttempt,
  type FinalResult,
  resultFromWire,
} from '@rackwright/results';
import type { HandOff, OperationContext } from '../session/index.ts';
import { type BootClosure, closedBoot, rememberClosure } from './boot-closure.ts';
import { type EvidenceSigner, signEvidence } from './evidence.ts';
import { type HandOffSession, HandOffs } from './hand-offs.ts';
import type { BeginDecision, RunnerLink, RunnerOrder, RunnerOrders } from './link.ts';
import { LogBudget } from './log-budget.ts';
import { cancelOf, inItsTime, Outstanding } from './outstanding.ts';

export interface DispatcherLimits {
  /** How long an operation waits for its runner to be connected before it has begun. */
  readonly runnerWaitMs: number;
  /** How long a resumed operation waits for its runner after a restart of ours. */
  readonly resumeWaitMs: number;
  /** How long after the deadline the dispatcher waits for the runner's answer to Cancel. */
  readonly cancelGraceMs: number;
  /** How often a destructive order is offered again while there is no lease. */
  readonly leaseRetryMs: number;
  /** How long a hand-off that may act keeps its host from other work until its runner knows it. */
  readonly handOffWaitMs: number;
  /** How long a runner may be away before its work reports that. */
  readonly awayReportAfterMs: number;
  /** Final reports kept for operations that the session has not resumed yet. */
  readonly unclaimedReportsMax: number;
  /** Boots of which it is remembered that they are over. */
  readonly bootsOverMax: number;
}

export const defaultDispatcherLimits: DispatcherLimits = {
  runnerWaitMs: 60_000,
  resumeWaitMs: 180_000,
  cancelGraceMs: 30_000,
  leaseRetryMs: 2_000,
  handOffWaitMs: 30_000,
  awayReportAfterMs: 30_000,
  unclaimedReportsMax: 64,
  bootsOverMax: 1_024,
};

export interface RunnerDispatcherParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly signer: EvidenceSigner;
  readonly operationState: (id: OperationId) => 'unknown' | 'received' | 'begun' | 'ended';
  readonly handOffs: HandOffSession;
  /** Receives the output of programs while they run. */
  readonly reportLog?: (log: agent.StepLog) => void;
  readonly limits: DispatcherLimits;
}

/** Largest inventory or evidence that is taken from a runner: both become parts of records. */
const runnerPartBytesMax = 256 * 1024;

export class RunnerDispatcher implements RunnerOrders {
  readonly #parts: RunnerDispatcherParts;
  /** By boot operation id. */
  readonly #links = new Map<OperationId, RunnerLink>();
  /** By boot operation id: until the runner's absence is reported. */
  readonly #absences = new Map<OperationId, Cancel>();
  readonly #waiters = new Set<() => void>();
  /** By operation id. */
  readonly #outstanding = new Map<OperationId, Outstanding>();
  /** Final results that arrived before their operation was resumed. */
  readonly #unclaimed = new Map<OperationId, FinalResult>();
  /** By boot operation id, the oldest first: boots of which no runner will connect any more. */
  readonly #over = new Map<OperationId, BootClosure>();
  /** Boots whose runners' reports are rejected, in the same form. */
  readonly #disowned = new Map<OperationId, BootClosure>();
  /** Operation id → boot, from the runner's end until the journal has it. */
  readonly #ending = new Map<OperationId, OperationId>();

  readonly #handOffs: HandOffs;
  readonly #logs: LogBudget;

  constructor(parts: RunnerDispatcherParts) {
    this.#parts = parts;
    this.#logs = new LogBudget(parts.clock, (log) => parts.reportLog?.(log));
    this.#handOffs = new HandOffs({
      ...parts,
      session: parts.handOffs,
      leaseRetryMs: parts.limits.leaseRetryMs,
      runnerWaitMs: parts.limits.handOffWaitMs,
      linkOf: (bootOperationId) => this.#links.get(bootOperationId),
    });
  }

  stepsOf(bootOperationId: OperationId): readonly string[] | undefined {
    return this.#links.get(bootOperationId)?.steps;
  }

  architectureOf(bootOperationId: OperationId): string | undefined {
    return this.#links.get(bootOperationId)?.architecture || undefined;
  }

  async run(order: RunnerOrder, context: OperationContext): Promise<FinalResult> {
    const { runnerWaitMs } = this.#parts.limits;
    const { bootOperationId } = order;
    const closed = this.#disowned.get(bootOperationId) ?? this.#handOffs.closureOf(bootOperationId);
    if (closed !== undefined) return closedBoot(bootOperationId, closed);
    const waitMs = Math.max(0, Math.min(runnerWaitMs, context.remainingMs()));
    const linked = await this.#waitForLink(order, waitMs, context);
    if (linked === 'aborted') return failed('cancelled', 'cancelled before it was ordered');
    const over = this.#over.get(bootOperationId);
    if (linked === 'tooLate' && over !== undefined) return closedBoot(bootOperationId, over);
    if (linked === 'tooLate') {
      const message = `no runner of boot ${bootOperationId} is connected`;
      return { kind: 'transientError', cause: 'runnerAway', message };
    }
    const link = this.#links.get(bootOperationId);
    if (order.order.case === 'runStep' && link?.rescue === true) {
      return failed('unsupported', 'the host is booted into rescue: its runner takes no step');
    }
    if (isForAnother(order, link)) {
      return failed('interrupted', 'ordered of a runner that is gone: the host has booted again');
    }
    await context.begin();
    return this.#finish(order, context, { resumed: false });
  }

  async resume(
    order: RunnerOrder,
    context: OperationContext,
  ): Promise<FinalResult | 'interrupted'> {
    const { id } = order.operation;
    if (!this.#unclaimed.has(id)) {
      const { cancelGraceMs, resumeWaitMs } = this.#parts.limits;
      // The runner may have its end ready, also of a step whose time has passed meanwhile.
      const leftMs = Math.max(0, context.remainingMs()) + cancelGraceMs;
      const linked = await this.#waitForLink(order, Math.min(resumeWaitMs, leftMs), context);
      if (linked === 'aborted') return failed('cancelled', 'cancelled while its runner was away');
      if (linked === 'tooLate' && !this.#unclaimed.has(id)) return 'interrupted';
    }
    return this.#finish(order, context, { resumed: true });
  }

  noteReportDurable(operationId: OperationId): void {
    const bootOperationId = this.#ending.get(operationId);
    this.#ending.delete(operationId);
    if (bootOperationId === undefined) return;
    const link = this.#links.get(bootOperationId);
    if (link !== undefined) this.#handOffs.noteReportDurable(link, operationId);
  }

  handOffAnswered(handOff: HandOff, acts: boolean): void {
    this.#ending.delete(handOff.operationId);
    this.#handOffs.answered(handOff, acts);
  }

  handOffUnderWay(hostUid: HostUid): string | undefined {
    return this.#handOffs.underWay(hostUid);
  }

  forgetHost(hostUid: HostUid): void {
    for (const link of [...this.#links.values()]) {
      if (link.hostUid === hostUid) link.close();
    }
  }

  /** A runner has proved itself: it replaces an older link of the same boot (invariant 4). */
  attach(link: RunnerLink): void {
    const older = this.#links.get(link.bootOperationId);
    this.#links.set(link.bootOperationId, link);
    this.#endAbsence(link.bootOperationId);
    this.#over.delete(link.bootOperationId);
    older?.close();
    for (const outstanding of this.#outstanding.values()) {
      if (outstanding.order.bootOperationId === link.bootOperationId) outstanding.offer();
    }
    for (const wake of [...this.#waiters]) wake();
  }

  /** The stream is over. True when the boot has no link any more. */
  detach(link: RunnerLink): boolean {
    if (this.#links.get(link.bootOperationId) !== link) return false;
    this.#links.delete(link.bootOperationId);
    this.#watchAbsence(link.bootOperationId);
    return true;
  }

  /**
   * The host asked the boot services. When its runner is not connected, the machine has been
   * started anew, and its orders are interrupted.
   */
  noteNetboot(hostUid: HostUid): void {
    this.#endAwayBoots(hostUid, 'the host has netbooted while it was at work');
  }

  /**
   * The host's machine was found at `atMs` (wall time), booted from a card that is not the host's.
   * Orders whose runner went away before that are interrupted. One that went later may come back.
   */
  noteBootedElsewhere(hostUid: HostUid, atMs: number): void {
    const why = 'its machine has booted anew, from another network card';
    this.#endAwayBoots(hostUid, why, atMs);
  }

  /** The host's BMC says that it is off: when its runner is not connected, it has gone with it. */
  noteOff(hostUid: HostUid): void {
    this.#endAwayBoots(hostUid, 'the host was switched off while it was at work');
  }

  /** Whether work on the host is outstanding whose runner is not connected. */
  isAway(hostUid: HostUid): boolean {
    return this.#awayBoots(hostUid).length > 0;
  }

  #endAwayBoots(hostUid: HostUid, why: string, beforeMs?: number): void {
    for (const boot of this.#awayBoots(hostUid, beforeMs)) this.endBoot(boot, why);
  }

  /** `beforeMs`: only those whose runner is known to have gone before it (wall time). */
  #awayBoots(hostUid: HostUid, beforeMs?: number): OperationId[] {
    return [...this.#outstanding.values()]
      .filter(({ order }) => order.operation.hostUid === hostUid)
      .filter(({ goneMs = Infinity }) => beforeMs === undefined || goneMs < beforeMs)
      .map(({ order }) => order.bootOperationId)
      .filter((bootOperationId) => !this.#links.has(bootOperationId));
  }

  isLinked(bootOperationId: OperationId): boolean {
    return this.#links.has(bootOperationId);
  }

  /** The burn-in of the network that the connected runner of this boot is ordered to do. */
  networkBurnIn(bootOperationId: OperationId, operationId: OperationId): object | undefined {
    const outstanding = this.#outstanding.get(operationId);
    if (outstanding?.order.bootOperationId !== bootOperationId) return undefined;
    const { kind } = outstanding.order.operation;
    const isIt = kind.case === 'runStep' && kind.value.step === burnInNetworkStep;
    return isIt && this.#links.has(bootOperationId) ? outstanding : undefined;
  }

  /**
   * The boot is over (another key presents its token). Orders of that boot are interrupted, and so
   * is each later order at once.
   */
  endBoot(bootOperationId: OperationId, why: string): void {
    const { bootsOverMax } = this.#parts.limits;
    rememberClosure(this.#over, bootOperationId, { kind: 'over', text: why }, bootsOverMax);
    for (const wake of [...this.#waiters]) wake();
    for (const outstanding of [...this.#outstanding.values()]) {
      if (outstanding.order.bootOperationId !== bootOperationId) continue;
      outstanding.bootOver(why);
    }
  }

  /**
   * Two runners claim the host: the boot is over, also for the connected one, and neither may come
   * back.
   */
  disown(bootOperationId: OperationId, why: string): void {
    const { bootsOverMax } = this.#parts.limits;
    rememberClosure(this.#disowned, bootOperationId, { kind: 'disowned', text: why }, bootsOverMax);
    this.endBoot(bootOperationId, why);
    this.#links.get(bootOperationId)?.close();
  }

  /** Of a boot of whose runners no report is accepted any more. */
  disowned(bootOperationId: OperationId): BootClosure | undefined {
    return this.#disowned.get(bootOperationId);
  }

  /** A report of a runner; `evidence` arrived for the same operation just before. */
  report(link: RunnerLink, report: agent.Report, evidence: agent.StepEvidence | undefined): void {
    const { operationId } = report;
    const decoded = decodeReport(report);
    const outstanding = this.#outstanding.get(operationId);
    if (outstanding !== undefined && outstanding.order.bootOperationId !== link.bootOperationId) {
      this.#parts.log.warn({ operation: operationId }, 'a runner reports the work of another boot');
      return;
    }
    if (decoded.kind === 'continuing') {
      if (outstanding === undefined) this.#handOffs.acts(link.bootOperationId, operationId);
      else outstanding.receiveProgress(decoded);
      return;
    }
    if (decoded.kind === 'hostUpdated') return;
    const result =
      decoded.kind === 'unsupported'
        ? { ...failed('internal', "the runner's report is unusable"), detail: decoded.problem }
        : (oversize(decoded, evidence) ?? this.#withEvidence(decoded, link, evidence));
    link.unreceived.delete(operationId);
    if (outstanding === undefined) this.#receiveUnclaimed(link, operationId, result);
    else outstanding.end(result);
  }

  /** Answered at once, from the present state (R11). */
  answerBegin(link: RunnerLink, { operationId, sequence }: runner.AskToBegin): void {
    const may = this.#mayBegin(link, operationId);
    const value = { operationId, sequence, answer: answerOf(may) };
    const forMs = may.case === 'granted' ? may.forMs : undefined;
    const limit = forMs === undefined ? {} : { grantedForMs: BigInt(Math.floor(forMs)) };
    link.send({ case: 'beginAnswer', value: { ...value, ...limit } });
  }

  #mayBegin({ bootOperationId }: RunnerLink, operationId: OperationId): BeginDecision {
    const outstanding = this.#outstanding.get(operationId);
    if (outstanding?.order.bootOperationId === bootOperationId) return outstanding.mayBegin();
    const handOff = this.#handOffs.mayBegin(bootOperationId, operationId);
    if (handOff !== undefined) return handOff;
    // After a restart of ours the session takes its work up again in a moment.
    if (outstanding === undefined && this.#parts.operationState(operationId) === 'begun') {
      return { case: 'wait', value: 'waits for the agent' };
    }
    return { case: 'over', value: 'the agent waits for it no more' };
  }

  /** Output of a step's program: only of work that is ordered here. */
  log(link: RunnerLink, log: runner.StepLog): void {
    const outstanding = this.#outstanding.get(log.operationId);
    if (outstanding?.order.bootOperationId !== link.bootOperationId) return;
    this.#logs.pass(link.hostUid, log);
  }

  /** Invariant 5. One timer per boot that has work left. */
  #watchAbsence(bootOperationId: OperationId): void {
    const { clock, limits } = this.#parts;
    const sinceMs = clock.nowMs();
    const left = (): Outstanding[] =>
      [...this.#outstanding.values()].filter(
        ({ order }) => order.bootOperationId === bootOperationId,
      );
    this.#endAbsence(bootOperationId);
    if (left().length === 0) return;
    for (const outstanding of left()) outstanding.goneMs = sinceMs;
    const report = (): void => {
      this.#absences.delete(bootOperationId);
      for (const outstanding of left()) outstanding.runnerAway(sinceMs);
    };
    this.#absences.set(bootOperationId, clock.after(limits.awayReportAfterMs, report));
  }

  #endAbsence(bootOperationId: OperationId): void {
    this.#absences.get(bootOperationId)?.();
    this.#absences.delete(bootOperationId);
  }

  #withEvidence(
    result: FinalResult,
    link: RunnerLink,
    evidence: agent.StepEvidence | undefined,
  ): FinalResult {
    if (evidence === undefined || (result.kind !== 'complete' && result.kind !== 'failed')) {
      return result;
    }
    return { ...result, evidence: signEvidence(this.#parts.signer, evidence, link) };
  }

  /** A final report that no operation waits for here. */
  #receiveUnclaimed(link: RunnerLink, operationId: OperationId, result: FinalResult): void {
    if (this.#ending.has(operationId)) return;
    for (const outstanding of this.#outstanding.values()) {
      if (cancelOf(outstanding.order.operation.id) === operationId) outstanding.cancelOver();
    }
    if (this.#parts.operationState(operationId) !== 'begun') {
      this.#handOffs.noteReportDurable(link, operationId);
      return;
    }
    if (this.#unclaimed.size >= this.#parts.limits.unclaimedReportsMax) return;
    this.#unclaimed.set(operationId, result);
    this.#ending.set(operationId, link.bootOperationId);
    for (const wake of [...this.#waiters]) wake();
  }

  #finish(
    order: RunnerOrder,
    context: OperationContext,
    { resumed }: { readonly resumed: boolean },
  ): Promise<FinalResult> {
    const { id } = order.operation;
    const unclaimed = this.#unclaimed.get(id);
    if (unclaimed !== undefined) {
      this.#unclaimed.delete(id);
      return Promise.resolve(inItsTime(unclaimed, context));
    }
    const { clock, limits } = this.#parts;
    return new Promise((resolve) => {
      const outstanding = new Outstanding({
        order,
        context,
        clock,
        resumed,
        limits,
        link: () => this.#links.get(order.bootOperationId),
        onEnd: (result) => {
          this.#outstanding.delete(id);
          this.#ending.set(id, order.bootOperationId);
          resolve(result);
        },
      });
      this.#outstanding.set(id, outstanding);
      outstanding.start();
    });
  }

  /** Waits for the runner of the order's boot, or for its report. */
  #waitForLink(
    order: RunnerOrder,
    waitMs: number,
    { signal }: Pick<OperationContext, 'signal'>,
  ): Promise<'linked' | 'tooLate' | 'aborted'> {
    const isThere = (): boolean =>
      this.#links.has(order.bootOperationId) || this.#unclaimed.has(order.operation.id);
    if (signal.aborted) return Promise.resolve('aborted');
    const isOver = (): boolean => this.#over.has(order.bootOperationId);
    if (isThere()) return Promise.resolve('linked');
    if (isOver()) return Promise.resolve('tooLate');
    return new Promise((resolve) => {
      let cancelTimer: Cancel = () => {};
      const settle = (how: 'linked' | 'tooLate' | 'aborted'): void => {
        cancelTimer();
        this.#waiters.delete(check);
        signal.removeEventListener('abort', abort);
        resolve(how);
      };
      const check = (): void => {
        if (isThere()) settle('linked');
        else if (isOver()) settle('tooLate');
      };
      const abort = (): void => settle('aborted');
      this.#waiters.add(check);
      signal.addEventListener('abort', abort, { once: true });
      cancelTimer = this.#parts.clock.after(waitMs, () => settle('tooLate'));
    });
  }
}

/** A runner's texts are cut before they are kept, for every program that acts as a runner. */
function decodeReport(report: agent.Report): ReturnType<typeof resultFromWire> {
  const decoded = resultFromWire(report);
  return decoded.kind === 'unsupported' ? decoded : boundResult(decoded);
}

/** A failure in place of a result that is too large to store. */
function oversize(
  result: FinalResult,
  evidence: agent.StepEvidence | undefined,
): FailedAttempt | undefined {
  const { observations } = 'observations' in result ? result : { observations: undefined };
  const parts = {
    observations: observations && toBinary(agent.ObservationsSchema, observations),
    evidence: evidence && toBinary(agent.StepEvidenceSchema, evidence),
  };
  for (const [part, bytes] of Object.entries(parts)) {
    if (bytes === undefined || bytes.length <= runnerPartBytesMax) continue;
    const size = `${bytes.length} bytes; at most ${runnerPartBytesMax} can be kept`;
    return failed('unsupported', `the runner's ${part} has ${size}`);
  }
  return undefined;
}

/**
 * Whether another runner got the order and may have begun it. This agent does not know, because its
 * disk was restored; an operation that is known to have begun is never passed in here.
 */
function isForAnother({ order }: RunnerOrder, link: RunnerLink | undefined): boolean {
  if (order.case !== 'runStep' || link === undefined) return false;
  const { runnerSession } = order.value;
  return runnerSession !== '' && runnerSession !== link.runnerSession;
}

function failed(type: FailedAttempt['type'], message: string): FailedAttempt {
  return { kind: 'failed', type, message };
}

function answerOf(may: BeginDecision) {
  return may.case === 'granted'
    ? { case: may.case, value: may.value }
    : { case: may.case, value: may.value };
}
