/**
 * The most recently settled operations of a host: a repeated report, whose answer was lost, gets
 * the same answer as the first time (R7). Pure.
 *
 * Invariants:
 * 1. A report that was not applied is never answered as a duplicate: to an agent that would mean
 *    that it counts, and a hand-off would act.
 * 2. A hand-off of a run that is aborted, or that ended cancelled or timed out, is stale from then
 *    on, even if that happens in the same pass that handles its report.
 */
import { create } from '@bufbuild/protobuf';
import { type agent, type Run, RunOutcome, store } from '@rackwright/messages';
import type { Pass } from '../pass/pass.ts';
import type { ReportVerdict, StaleCause } from '../pass/types.ts';
import { closeOpen } from './open-operations.ts';
import { operationParts } from './operation.ts';

/** The most settled operations of a host; the agent repeats a report until it is answered. */
const settledMax = 4;

/** The answer to a report whose attempt ended without it. */
export const late: ReportVerdict = {
  kind: 'stale',
  cause: 'attemptOver',
  reason: 'its attempt was over before',
};

/** The answer to the end of a hand-off that must not act. */
export const tooLateToAct: ReportVerdict = {
  kind: 'stale',
  cause: 'runOver',
  reason: 'its run is over: it does not act any more',
};

/** The answer to a report whose own answer is not kept any more. */
export const settledBefore: ReportVerdict = {
  kind: 'stale',
  cause: 'settled',
  reason: 'the operation has been settled already',
};

/** The answer to a report whose result is not understood. */
export const unsupported: ReportVerdict = {
  kind: 'refused',
  cause: 'unsupported',
  reason: 'unsupported',
};

const results: Readonly<Record<NonNullable<agent.Report['result']['case']>, store.ReportResult>> = {
  complete: store.ReportResult.COMPLETE,
  continuing: store.ReportResult.CONTINUING,
  failed: store.ReportResult.FAILED,
  transientError: store.ReportResult.TRANSIENT_ERROR,
  retryAfter: store.ReportResult.RETRY_AFTER,
  hostUpdated: store.ReportResult.HOST_UPDATED,
};

const answersOfStale: Readonly<Record<StaleCause, store.SettledAnswer>> = {
  attemptOver: store.SettledAnswer.ATTEMPT_OVER,
  runOver: store.SettledAnswer.RUN_OVER,
  settled: store.SettledAnswer.UNSPECIFIED,
};

/** Stores a report with its answer; `isHandOff`: its step acts once it was applied. */
export function noteSettled(
  { record }: Pick<Pass, 'record'>,
  report: agent.Report,
  verdict: ReportVerdict,
  { isHandOff }: { readonly isHandOff: boolean },
): void {
  const settled = create(store.SettledReportSchema, {
    operationId: report.operationId,
    result: resultOf(report),
    answer: answerOf(verdict, isHandOff),
  });
  record.settledReports = [...record.settledReports, settled].slice(-settledMax);
  closeOpen({ record }, report.operationId);
}

function resultOf({ result }: agent.Report): store.ReportResult {
  return result.case === undefined ? store.ReportResult.UNSPECIFIED : results[result.case];
}

function answerOf(verdict: ReportVerdict, isHandOff: boolean): store.SettledAnswer {
  switch (verdict.kind) {
    case 'applied':
    case 'duplicate':
      return isHandOff ? store.SettledAnswer.MAY_ACT : store.SettledAnswer.APPLIED;
    case 'stale':
      return answersOfStale[verdict.cause];
    case 'refused':
      return store.SettledAnswer.UNSUPPORTED;
  }
}

/** The answer to a report that was settled before; undefined when it was not, or long ago. */
export function verdictBefore(
  { settledReports }: store.HostRecord,
  report: agent.Report,
): ReportVerdict | undefined {
  const verdicts = settledReports
    .filter((each) => each.operationId === report.operationId && each.result === resultOf(report))
    .map(({ answer }) => verdictAgain(answer));
  return verdicts.find(({ kind }) => kind !== 'duplicate') ?? verdicts[0];
}

/** Invariant 1: an answer that is missing, or that this version does not know, counts as stale. */
function verdictAgain(answer: store.SettledAnswer): ReportVerdict {
  switch (answer) {
    case store.SettledAnswer.APPLIED:
    case store.SettledAnswer.MAY_ACT:
      return { kind: 'duplicate' };
    case store.SettledAnswer.ATTEMPT_OVER:
      return late;
    case store.SettledAnswer.RUN_OVER:
      return tooLateToAct;
    case store.SettledAnswer.UNSUPPORTED:
      return unsupported;
    case store.SettledAnswer.UNSPECIFIED:
    default:
      return settledBefore;
  }
}

/** Invariant 2; `reported` is the operation whose report this pass answers. */
export function withdrawHandOffs(pass: Pass, reported: string | undefined): void {
  const { record, status, displaced, host, effects } = pass;
  if (!record.settledReports.some(mayAct)) return;
  const runs = [status.run, ...displaced, ...record.finishedRuns];
  const over = new Set(
    runs.flatMap((run) => (run !== undefined && isOff(run) ? [run.number] : [])),
  );
  record.settledReports = record.settledReports.map((settled) => {
    const number = operationParts(host.uid, settled.operationId)?.runNumber;
    if (!mayAct(settled) || number === undefined || !over.has(number)) return settled;
    if (settled.operationId === reported) answerTooLate(effects);
    return { ...settled, answer: store.SettledAnswer.RUN_OVER };
  });
}

function mayAct({ answer }: store.SettledReport): boolean {
  return answer === store.SettledAnswer.MAY_ACT;
}

function isOff({ abort, outcome }: Run): boolean {
  return (
    abort !== undefined || outcome === RunOutcome.CANCELLED || outcome === RunOutcome.TIMED_OUT
  );
}

function answerTooLate(effects: Pass['effects']): void {
  const at = effects.findIndex(({ kind }) => kind === 'answer');
  if (at !== -1) effects[at] = { kind: 'answer', verdict: tooLateToAct };
}
