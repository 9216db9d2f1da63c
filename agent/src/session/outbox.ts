/**
 * How attempts end, and how their reports reach the control plane.
 *
 * O1 A final report is written down before it is sent; one that cannot be written down is sent
 *    from memory and written down when the disk takes it again.
 * O2 Reports are sent in the order of their sequence, once for each session and once more for each
 *    time the operation comes again, until they have a verdict (R3, R7).
 * O3 The words of a BMC, a tool or a runner are cut before they are written down or sent.
 * O4 An operation is forgotten only when its report has a verdict and is settled, or when the
 *    control plane says so.
 */
import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { agent, type HostUid, type OperationId } from '@rackwright/messages';
import type { Clock, CrashPoint, Log } from '@rackwright/platform';
import { boundResult, type FinalResult, type Result, resultToWire } from '@rackwright/results';
import type { Journal, RecordInit } from '../journal/index.ts';
import type { Attempt } from './attempt.ts';
import type { AttemptBook } from './attempt-book.ts';
import { type HandOff, handOffOf } from './hand-off.ts';
import type { SessionLimits } from './limits.ts';
import { tooLarge } from './results.ts';

/** The receiver of messages. */
export interface Outlet {
  /** The number of welcomed sessions; 0 while there is none. */
  readonly session: number;
  /** Sends into the present session; does nothing while there is none. */
  send(message: agent.SessionRequest['message']): void;
}

export interface OutboxDependencies {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly log: Log;
  readonly crashPoint: CrashPoint;
  readonly limits: SessionLimits;
  readonly outlet: Outlet;
  /** Every operation that is kept. */
  readonly attempts: AttemptBook;
  /** The report of this operation is safe: here or at the control plane. */
  readonly onReportDurable: (operationId: OperationId) => void;
  /** The end of a hand-off was answered; `acts`: that it may act is durable (H2). */
  readonly onHandOff: (handOff: HandOff, acts: boolean) => void;
}

export class ReportOutbox {
  readonly #deps: OutboxDependencies;
  #lastSequence: bigint;
  /** By host uid: the hand-off whose permission to act is being recorded. */
  readonly #recording = new Map<HostUid, string>();
  /** Ended since the last flush, or to be sent again. */
  readonly #toSend = new Set<Attempt>();
  /** The session that has got all other reports; 0: none. */
  #flushedSession = 0;

  constructor(deps: OutboxDependencies) {
    this.#deps = deps;
    this.#lastSequence = deps.journal.state.lastSequence;
  }

  /** Final reports that have not been answered. */
  get unanswered(): number {
    let count = 0;
    for (const { answered, report } of this.#deps.attempts.ended) {
      if (!answered && report !== undefined) count += 1;
    }
    return count;
  }

  /** Ends an attempt with its result; without a report when it is dropped. The first end counts. */
  async end(attempt: Attempt, result: FinalResult): Promise<void> {
    if (!attempt.mayRun) return;
    attempt.phase = 'ending';
    if (!attempt.dropped) {
      attempt.report = this.#finalReport(attempt.operation, result);
      await this.#write(attempt);
    }
    this.#deps.attempts.end(attempt);
    this.#toSend.add(attempt);
    attempt.finish();
    this.flush();
  }

  /** Forgets an operation that is over without a word. False when the journal still knows it. */
  async drop(attempt: Attempt): Promise<boolean> {
    const { journal, log, attempts } = this.#deps;
    attempt.dropped = true;
    try {
      const { id: operationId } = attempt;
      if (attempt.journalled) {
        await journal.append({ case: 'forgotten', value: { operationId } });
      }
    } catch (error) {
      log.error({ operation: attempt.id }, 'cannot forget the operation yet', error);
      return false;
    }
    attempts.remove(attempt);
    return true;
  }

  /** Answers an operation without keeping either: when it arrives again, it is judged again. */
  refuse(operation: agent.Operation, result: FinalResult): void {
    const report = this.#finalReport(operation, result);
    this.#deps.outlet.send({ case: 'report', value: report });
  }

  /** Sends what this session has not received, in order (O2). */
  flush(): void {
    const { outlet, crashPoint, attempts } = this.#deps;
    const { session } = outlet;
    if (session === 0) return;
    // A new session has none of them; in the present one only these few may be missing.
    const candidates = this.#flushedSession === session ? this.#toSend : attempts.ended;
    const unsent = [...candidates].filter((attempt) => {
      const { answered, dropped, sentInSession } = attempt;
      return !answered && !dropped && sentInSession !== session && attempts.ended.has(attempt);
    });
    this.#flushedSession = session;
    this.#toSend.clear();
    for (const attempt of unsent.sort(bySequence)) {
      if (attempt.report === undefined) continue;
      attempt.sentInSession = session;
      outlet.send({ case: 'report', value: attempt.report });
      crashPoint('agent.reported');
    }
  }

  /** Sends a final report once more: its operation has arrived again. */
  flushAgain(attempt: Attempt): void {
    attempt.sentInSession = 0;
    attempt.answered = false;
    this.#toSend.add(attempt);
    this.flush();
  }

  /** Sends an attempt's progress if a session is open. */
  sendProgress(attempt: Attempt): void {
    const { progress, operation } = attempt;
    if (progress === undefined || attempt.phase !== 'running') return;
    const value = this.#report(operation, 0n, { kind: 'continuing', ...progress });
    this.#deps.outlet.send({ case: 'report', value });
  }

  /** Sends facts if a session is open. */
  sendFacts(hostUid: HostUid, observations: agent.Observations): void {
    const value = this.#report({ id: '', hostUid }, 0n, { kind: 'hostUpdated', observations });
    this.#deps.outlet.send({ case: 'report', value });
  }

  /** Writes the reports that the disk refused before (O1). */
  retryUnwritten(): void {
    for (const attempt of this.#deps.attempts.ended) {
      if (!attempt.reportJournalled && attempt.report !== undefined) void this.#write(attempt);
    }
  }

  /** Takes the control plane's verdict on a final report (R7, O4). */
  async answered(answer: agent.ReportAnswer): Promise<void> {
    const { attempts } = this.#deps;
    const decided = this.#takeVerdict(answer);
    const settled = [...attempts.answered].filter((each) => isSettled(each, answer.settledUpTo));
    const records = recordsOfAnswer(decided, settled);
    for (const each of settled) attempts.remove(each);
    if (decided?.handOff === undefined) await this.#writeAnswer(records);
    else await this.#decideHandOff(decided, decided.handOff, records);
  }

  /** The hand-off of a host that is about to be allowed to act. */
  recordingHandOff(hostUid: HostUid): string | undefined {
    return this.#recording.get(hostUid);
  }

  /** That it may act is durable before it acts (H2). */
  async #decideHandOff(
    { attempt: { hostUid }, applied: acts }: DecidedReport,
    handOff: HandOff,
    records: readonly RecordInit[],
  ): Promise<void> {
    const { crashPoint, log, onHandOff } = this.#deps;
    const { operationId } = handOff;
    if (acts) this.#recording.set(hostUid, operationId);
    const isDurable = await this.#writeAnswer(records);
    this.#recording.delete(hostUid);
    if (!isDurable) return;
    if (acts) crashPoint('agent.handedOff');
    else log.warn({ operation: operationId }, 'a hand-off was not applied: it never acts');
    onHandOff(handOff, acts);
  }

  /** False when the journal could not take what an answer says. */
  async #writeAnswer(records: readonly RecordInit[]): Promise<boolean> {
    const { journal, log } = this.#deps;
    try {
      if (records.length > 0) await journal.append(...records);
      return true;
    } catch (error) {
      log.error({}, 'an answer could not be written down; it will come again', error);
      return false;
    }
  }

  /** Notes the first verdict on a report; undefined: the answer has none. */
  #takeVerdict(answer: agent.ReportAnswer): DecidedReport | undefined {
    const { attempts, log, onReportDurable: onSafe } = this.#deps;
    const { operationId, sequence, verdict, reason } = answer;
    if (!isVerdict(verdict)) {
      log.warn({ operation: operationId, verdict }, 'an answer says nothing');
      return undefined;
    }
    const attempt = attempts.get(operationId);
    if (attempt?.phase !== 'ended' || attempt.report?.sequence !== sequence) return undefined;
    if (attempt.answered) return undefined;
    const applied = isApplied(answer);
    if (!applied) log.warn({ operation: operationId, verdict, reason }, 'a report was not applied');
    const handOff = handOffOf(attempt.operation, attempt.report);
    attempts.answer(attempt);
    if (handOff === undefined && !attempt.reportJournalled) onSafe(attempt.id);
    return { attempt, applied, handOff };
  }

  async #write(attempt: Attempt): Promise<void> {
    const { journal, log, crashPoint, onReportDurable: onSafe } = this.#deps;
    try {
      await journal.append(...recordsOfEnd(attempt));
    } catch (error) {
      log.error({ operation: attempt.id }, 'a report is not on disk yet', error);
      return;
    }
    attempt.journalled = true;
    attempt.reportJournalled = true;
    crashPoint('agent.ended');
    onSafe(attempt.id);
  }

  #finalReport(operation: agent.Operation, result: FinalResult): agent.Report {
    const { reportBytesMax } = this.#deps.limits;
    this.#lastSequence += 1n;
    const report = this.#report(operation, this.#lastSequence, result);
    const { length } = toBinary(agent.ReportSchema, report);
    if (length <= reportBytesMax) return report;
    return this.#report(operation, report.sequence, tooLarge(length, reportBytesMax));
  }

  #report(
    of: Pick<agent.Operation, 'id' | 'hostUid'>,
    sequence: bigint,
    result: Result,
  ): agent.Report {
    return create(agent.ReportSchema, {
      sequence,
      operationId: of.id,
      hostUid: of.hostUid,
      time: timestampFromMs(this.#deps.clock.nowMs()),
      result: resultToWire(boundResult(result)),
    });
  }
}

/** A report that has got its verdict. */
interface DecidedReport {
  readonly attempt: Attempt;
  readonly applied: boolean;
  readonly handOff: HandOff | undefined;
}

/** What an answer makes durable: how a report was decided, and that the settled are forgotten. */
function recordsOfAnswer(
  decided: DecidedReport | undefined,
  settled: readonly Attempt[],
): RecordInit[] {
  const forgotten = settled.map(({ id }) => recordOf('forgotten', id));
  if (decided === undefined) return forgotten;
  const { attempt, applied, handOff } = decided;
  return [
    ...(attempt.reportJournalled ? [] : recordsOfEnd(attempt)),
    ...(handOff !== undefined && applied ? [handedOffRecord(handOff)] : []),
    // A forgotten operation needs no record that it was answered.
    ...(settled.includes(attempt) ? [] : [recordOf('answered', attempt.id)]),
    ...forgotten,
  ];
}

function recordOf(kind: 'answered' | 'forgotten', operationId: OperationId): RecordInit {
  return { case: kind, value: { operationId } };
}

/** The end, and the operation itself where that could not be written down either. */
function recordsOfEnd({ journalled, operation, report }: Attempt): RecordInit[] {
  const received: RecordInit = { case: 'received', value: { operation } };
  const ended: RecordInit = { case: 'ended', value: report === undefined ? {} : { report } };
  return journalled ? [ended] : [received, ended];
}

function isSettled({ answered, report }: Attempt, settledUpTo: bigint): boolean {
  return answered && report !== undefined && report.sequence <= settledUpTo;
}

/** It counts at the control plane, from now on or since an earlier delivery. */
function isApplied({ verdict }: agent.ReportAnswer): boolean {
  const { APPLIED, DUPLICATE } = agent.ReportAnswer_Verdict;
  return verdict === APPLIED || verdict === DUPLICATE;
}

function handedOffRecord({
  operationId,
  bootOperationId,
  destructive,
  deadlineMs,
}: HandOff): RecordInit {
  const value = {
    operationId: bootOperationId,
    handOffOperationId: operationId,
    destructive,
    ...(Number.isFinite(deadlineMs) ? { deadline: timestampFromMs(deadlineMs) } : {}),
  };
  return { case: 'grantHandedOff', value };
}

function isVerdict(verdict: agent.ReportAnswer_Verdict): boolean {
  switch (verdict) {
    case agent.ReportAnswer_Verdict.APPLIED:
    case agent.ReportAnswer_Verdict.DUPLICATE:
    case agent.ReportAnswer_Verdict.STALE:
    case agent.ReportAnswer_Verdict.REFUSED:
      return true;
    case agent.ReportAnswer_Verdict.UNSPECIFIED:
      return false;
    // A verdict that is not known here is none (R8).
    default:
      return false;
  }
}

function bySequence(a: Attempt, b: Attempt): number {
  const [first, second] = [a.report?.sequence ?? 0n, b.report?.sequence ?? 0n];
  return first < second ? -1 : first > second ? 1 : 0;
}
