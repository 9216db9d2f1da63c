/** Verdicts on final reports (R7), and the sequence up to which every report has one. */
import { create } from '@bufbuild/protobuf';
import { agent } from '@rackwright/messages';
import type { PassResult, ReportVerdict } from '../../host/index.ts';
import type { VerdictWord } from '../base/acknowledgement.ts';

const { APPLIED, DUPLICATE, STALE, REFUSED } = agent.ReportAnswer_Verdict;

const verdictWords: Readonly<Record<agent.ReportAnswer_Verdict, VerdictWord>> = {
  [APPLIED]: 'applied',
  [DUPLICATE]: 'duplicate',
  [STALE]: 'stale',
  [REFUSED]: 'refused',
  [agent.ReportAnswer_Verdict.UNSPECIFIED]: 'refused',
};

/** As metrics name it. */
export function verdictWord(verdict: agent.ReportAnswer_Verdict): VerdictWord {
  return verdictWords[verdict] ?? 'refused';
}

/** Which reports of a session wait for their answer. They come in order of their sequence. */
export class Settlement {
  readonly #open = new Set<bigint>();
  #highest = 0n;

  received(sequence: bigint): void {
    this.#open.add(sequence);
    if (sequence > this.#highest) this.#highest = sequence;
  }

  /** Every report up to the returned sequence has been answered. */
  answered(sequence: bigint): bigint {
    this.#open.delete(sequence);
    let settled = this.#highest;
    for (const open of this.#open) if (open <= settled) settled = open - 1n;
    return settled;
  }
}

export function answerOf(
  report: agent.Report,
  result: PassResult,
  settledUpTo: bigint,
): agent.ReportAnswer {
  const { verdict, reason } = verdictOf(result);
  return create(agent.ReportAnswerSchema, {
    sequence: report.sequence,
    operationId: report.operationId,
    verdict,
    reason,
    settledUpTo,
  });
}

function verdictOf(result: PassResult): { verdict: agent.ReportAnswer_Verdict; reason: string } {
  switch (result.kind) {
    case 'notFound':
      return { verdict: STALE, reason: 'the host is not known (any more)' };
    case 'removed':
      return { verdict: APPLIED, reason: '' };
    case 'refused':
      return { verdict: REFUSED, reason: result.refusal.message };
    case 'kept':
      return wireVerdict(result.verdict ?? notFinal);
  }
}

const notFinal: ReportVerdict = {
  kind: 'refused',
  cause: 'notFinal',
  reason: 'no final report',
};

function wireVerdict(verdict: ReportVerdict) {
  switch (verdict.kind) {
    case 'applied':
      return { verdict: APPLIED, reason: '' };
    case 'duplicate':
      return { verdict: DUPLICATE, reason: '' };
    case 'stale':
      return { verdict: STALE, reason: verdict.reason };
    case 'refused':
      return { verdict: REFUSED, reason: verdict.reason };
  }
}
