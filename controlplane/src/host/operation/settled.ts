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
import { type agent, type Run, RunOutcome, type store } from '@rackwright/messages';
import type { Pass } from '../pass/pass.ts';
import type { AnswerVerdict } from '../pass/types.ts';
import { closeOpen } from './open-operations.ts';
import { operationParts } from './operation.ts';

/** The most settled operations of a host; the agent repeats a report until it is answered. */
const settledMax = 4;

/** Suffix of an applied report: its step may act until its run is over. */
const mayAct = ' handOff';

const lateReason = 'its attempt was over before';
const overReason = 'its run is over: it does not act any more';

/** The answers to reports that were not applied, by the suffix of their text. */
const notApplied: Readonly<Record<string, AnswerVerdict>> = {
  ' late': { kind: 'stale', reason: lateReason },
  ' stale': { kind: 'stale', reason: overReason },
  ' refused': { kind: 'refused', reason: 'unsupported' },
};

/** The answer to a report whose attempt ended without it. */
export const late: AnswerVerdict = { kind: 'stale', reason: lateReason };

/** The answer to the end of a hand-off that must not act. */
export const tooLateToAct: AnswerVerdict = { kind: 'stale', reason: overReason };

/** Stores a report with its answer; `isHandOff`: its step acts once it was applied. */
export function noteSettled(
  { record }: Pick<Pass, 'record'>,
  report: agent.Report,
  verdict: AnswerVerdict,
  { isHandOff }: { readonly isHandOff: boolean },
): void {
  const text = `${textOf(report)}${markOf(verdict, isHandOff)}`;
  record.settledOperations = [...record.settledOperations, text].slice(-settledMax);
  closeOpen({ record }, report.operationId);
}

function markOf(verdict: AnswerVerdict, isHandOff: boolean): string {
  switch (verdict.kind) {
    case 'applied':
    case 'duplicate':
      return isHandOff ? mayAct : '';
    case 'stale':
      return verdict.reason === lateReason ? ' late' : ' stale';
    case 'refused':
      return ' refused';
  }
}

/** Another result of the same operation is a different report. */
function textOf({ operationId, result }: agent.Report): string {
  return `${operationId} ${result.case ?? 'unsupported'}`;
}

/** The answer to a report that was settled before; undefined when it was not, or long ago. */
export function verdictBefore(
  { settledOperations }: store.HostRecord,
  report: agent.Report,
): AnswerVerdict | undefined {
  const text = textOf(report);
  for (const [mark, verdict] of Object.entries(notApplied)) {
    if (settledOperations.includes(`${text}${mark}`)) return verdict;
  }
  const counted = settledOperations.includes(text) || settledOperations.includes(text + mayAct);
  return counted ? { kind: 'duplicate' } : undefined;
}

/** Invariant 2; `reported` is the operation whose report this pass answers. */
export function withdrawHandOffs(pass: Pass, reported: string | undefined): void {
  const { record, status, displaced, host, effects } = pass;
  const runs = [status.run, ...displaced, ...record.finishedRuns];
  const over = new Set(
    runs.flatMap((run) => (run !== undefined && isOff(run) ? [run.number] : [])),
  );
  record.settledOperations = record.settledOperations.map((text) => {
    const [id = ''] = text.split(' ');
    const number = operationParts(host.uid, id)?.runNumber;
    if (!text.endsWith(mayAct) || number === undefined || !over.has(number)) return text;
    if (id === reported) answerTooLate(effects);
    return `${text.slice(0, -mayAct.length)} stale`;
  });
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
