/**
 * One request for many hosts.
 *
 * Invariants:
 * 1. The loss is shown before any request is sent, and no request is sent before a person has
 *    agreed: by typing the number of hosts where data is lost.
 * 2. A host that refuses keeps none of the others waiting; each has its line in the report.
 * 3. After Ctrl-C no further request is sent, and work that has begun goes on.
 */
import { ApiFailure, counted, type Host } from '@rackwright/messages';
import { errorText } from '@rackwright/platform';
import type { CommandIo } from '../../command-io.ts';
import {
  exitCodes,
  GoalUnreachable,
  InterruptedError,
  NotAllDone,
  UsageError,
  WaitedTooLong,
  WorkFailed,
} from '../../failure.ts';
import { exitCodeOf } from '../../failure-text.ts';
import { inParallel } from '../../files/plan.ts';
import { stateText } from '../../output/host.ts';
import type { OutputKind } from '../../output/kinds.ts';
import { bulkLossLines, bulkQuestion, type Destruction } from '../../output/loss.ts';
import { isForPrograms, printLines, printTable, printValue } from '../../output/show.ts';
import { clean } from '../../output/text.ts';
import { agree, agreeToNumber } from '../frame/confirm.ts';
import { noView, progressView } from '../frame/progress.ts';

/** The request for each host. */
export interface BulkWork {
  /** "clean" */
  readonly word: string;
  /** Each host is waited for: that takes its time, and its progress is shown in a pipe, too. */
  readonly waits: boolean;
  /** The loss of data; unset: none. */
  readonly loss?: Destruction;
  /** Sends the request for one host, and waits for it where that is wanted. */
  ask(host: Host): Promise<Host>;
}

type Result = 'done' | 'refused' | 'failed' | 'stuck' | 'late' | 'not asked';

interface Outcome {
  readonly name: string;
  readonly result: Result;
  readonly text: string;
  readonly code: number;
}

/** Throws `UsageError` or `Declined` unless a person agrees (invariant 1). */
export async function agreeToMany(
  io: CommandIo,
  yes: boolean,
  { word, loss }: Pick<BulkWork, 'word' | 'loss'>,
  hosts: readonly Host[],
): Promise<void> {
  if (yes) return;
  for (const line of bulkLossLines(word, loss, hosts)) io.err.write(`${clean(line)}\n`);
  const question = bulkQuestion(word, loss, hosts);
  if (loss === undefined) await agree(io, question);
  else await agreeToNumber(io, question, hosts.length);
}

/** Asks them all, `parallel` at once, and reports. Rejects with `NotAllDone` or `Interrupted`. */
export async function askMany(
  io: CommandIo,
  { output, parallel }: { readonly output: OutputKind; readonly parallel: number },
  work: BulkWork,
  hosts: readonly Host[],
): Promise<void> {
  const view = work.waits || io.err.columns !== undefined ? progressView(io) : noView;
  const begunMs = io.clock.nowMs();
  let over = 0;
  const see = () => ({
    text: `${work.word} of ${counted(hosts.length, 'host')}${over === 0 ? '' : `, ${over} over`}`,
    percent: Math.floor((over / hosts.length) * 100),
    elapsedMs: io.clock.nowMs() - begunMs,
    leftMs: undefined,
  });
  let report: Outcome[];
  try {
    view.show(see);
    report = await inParallel(
      hosts,
      async (host) => {
        const outcome = io.signal.aborted ? notAsked(host) : await outcomeOf(work, host);
        over += 1;
        view.show(see);
        return outcome;
      },
      parallel,
    );
  } finally {
    view.end();
  }
  printReport(io, output, report);
  judge(io, report);
}

function notAsked({ name }: Host): Outcome {
  return { name, result: 'not asked', text: '', code: exitCodes.interrupted };
}

/** Invariant 2. */
async function outcomeOf(work: BulkWork, { name, ...host }: Host): Promise<Outcome> {
  try {
    const text = stateText(await work.ask({ name, ...host }));
    return { name, result: 'done', text, code: exitCodes.done };
  } catch (error) {
    const result = resultOf(error);
    if (result === undefined) throw error;
    const text = errorText(error);
    return { name, result, text, code: exitCodeOf(error) };
  }
}

/** Undefined: it is no matter of one host. */
function resultOf(error: unknown): Result | undefined {
  if (error instanceof WorkFailed) return 'failed';
  if (error instanceof GoalUnreachable) return 'stuck';
  if (error instanceof WaitedTooLong) return 'late';
  if (error instanceof InterruptedError) return 'not asked';
  if (error instanceof ApiFailure)
    return error.error.kind === 'cancelled' ? 'not asked' : 'refused';
  return undefined;
}

function printReport(io: CommandIo, output: OutputKind, report: readonly Outcome[]): void {
  if (output === 'name') {
    printLines(
      io,
      report.filter(({ result }) => result === 'done').map(({ name }) => name),
    );
  } else if (isForPrograms(output)) {
    printValue(
      io,
      output,
      report.map(({ name, result, text }) => ({ name, result, message: text })),
    );
  } else printTable(io, output, columns, report);
}

const columns = [
  { title: 'HOST', value: ({ name }: Outcome) => name },
  { title: 'OUTCOME', value: ({ result }: Outcome) => result },
  { title: 'WORDS', value: ({ text }: Outcome) => text, widthMin: 20 },
];

function judge(io: CommandIo, report: readonly Outcome[]): void {
  const others = report.filter(({ result }) => result !== 'done');
  const [first] = others;
  const text = `${others.length} of ${counted(report.length, 'host')} not done`;
  if (io.signal.aborted) {
    throw new InterruptedError(`${text}; what was begun goes on: \`rackwright host watch\``);
  }
  if (first === undefined) return;
  const isOneReason =
    others.length === report.length && others.every(({ code }) => code === first.code);
  throw new NotAllDone(text, isOneReason ? first.code : exitCodes.partlyDone);
}

/** One id cannot name many requests: each host has its own. */
export function checkRequestId(requestId: string): void {
  if (requestId !== '') throw new UsageError('--request-id names one request: it needs one host');
}
