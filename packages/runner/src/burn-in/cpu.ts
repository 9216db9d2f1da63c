/**
 * The step `burnin.cpu`: every processor calculates known results. Another thread than the
 * calculating one compares each result here.
 */
import { BurnInKind, burnInCpuStep, cleanSteps, counted } from '@rackwright/messages';
import { pause } from '@rackwright/platform';
import type { BurnInMachine } from '../machine/burn-in-machine.ts';
import type { Step, StepContext, StepResult } from '../steps/step.ts';
import { readNumbers } from './arguments.ts';
import { TemperatureMonitor } from './heat.ts';
import { knownResults, roundBytes } from './known-results.ts';
import { endOf, type Finding, failedResult, perSecond, stateText } from './result.ts';

/** Interval between reports of progress, milliseconds. */
const tellEveryMs = 1_000;
/** A thread that is silent for longer hangs, milliseconds; a round takes far less. */
const silentMsMax = 120_000;

export const burnInCpu: Step = {
  description: cleanSteps[burnInCpuStep],
  run: async (context) => {
    const { burnIn } = context.machine;
    if (burnIn === undefined) return failedResult('unsupported', 'this machine cannot calculate');
    const read = readNumbers(cleanSteps[burnInCpuStep], context.order.arguments);
    if (read.kind === 'bad') return failedResult('invalidArgument', read.problem);
    const { duration: seconds = 0, celsius_max: celsiusMax = 0 } = read.value;
    return await calculateAll(context, burnIn, seconds * 1_000, celsiusMax);
  },
};

/** The state of one thread. */
interface Thread {
  rounds: number;
  reportedMs: number;
  hasEnded: boolean;
}

/** The results of all threads. */
interface CalculationFindings {
  readonly threads: Thread[];
  errors: number;
  first: Finding | undefined;
}

async function calculateAll(
  context: StepContext,
  machine: BurnInMachine,
  durationMs: number,
  celsiusMax: number,
): Promise<StepResult> {
  const { clock, signal } = context;
  const startMs = clock.nowMs();
  const beganMs = clock.suspendAwareMs();
  const heat = new TemperatureMonitor(context, machine, celsiusMax);
  const found: CalculationFindings = { threads: [], errors: 0, first: undefined };
  const note = (text: string): void => {
    found.errors += 1;
    found.first ??= { text };
  };
  const running = Array.from({ length: machine.threads }, (_, index) => {
    const thread: Thread = { rounds: 0, reportedMs: beganMs, hasEnded: false };
    found.threads.push(thread);
    return machine.calculate(
      (results) => {
        thread.rounds += 1;
        thread.reportedMs = clock.suspendAwareMs();
        const wrong = wrongParts(results);
        if (wrong.length === 0) return;
        note(`thread ${index} came to another result: ${wrong.join(', ')}`);
      },
      (problem) => {
        thread.hasEnded = true;
        note(`thread ${index} ended by itself: ${problem}`);
      },
    );
  });
  const elapsed = (): number => clock.suspendAwareMs() - beganMs;
  try {
    while (!signal.aborted && !isOver(found, elapsed(), durationMs) && !(await heat.read())) {
      tell(context, found, heat, Math.floor((100 * elapsed()) / durationMs));
      await pause(clock, Math.min(tellEveryMs, Math.max(1, durationMs - elapsed())), signal);
    }
  } finally {
    await Promise.all(running.map((each) => each.stop()));
  }
  const tookMs = elapsed();
  for (const [index, { hasEnded, reportedMs }] of found.threads.entries()) {
    if (hasEnded || signal.aborted || clock.suspendAwareMs() - reportedMs < silentMsMax) continue;
    note(`thread ${index} has told nothing for ${silentMsMax / 1_000} s`);
  }
  const rounds = roundsOf(found);
  const part = {
    name: counted(machine.threads, 'thread'),
    bytes: BigInt(rounds * roundBytes),
    passes: BigInt(Math.min(...found.threads.map((each) => each.rounds))),
    errors: BigInt(found.errors),
    writtenPerSecond: perSecond(rounds * roundBytes, tookMs),
    finding: found.first?.text ?? '',
  };
  const problems =
    found.errors === 0 ? [] : [`${counted(found.errors, 'error')}: ${found.first?.text}`];
  return endOf(context, { kind: BurnInKind.CPU, startMs, parts: [part], heat, problems });
}

/** Every thread ends at least one round, unless one stands still. */
function isOver({ threads }: CalculationFindings, elapsedMs: number, durationMs: number): boolean {
  if (elapsedMs < durationMs) return false;
  const haveReported = threads.every(({ rounds, hasEnded }) => rounds > 0 || hasEnded);
  return haveReported || elapsedMs >= durationMs + silentMsMax;
}

/** The parts of a round that are wrong, as "SHA-256". */
function wrongParts(results: readonly string[]): string[] {
  const wrong = knownResults.filter(([, result], index) => results[index] !== result);
  return wrong.map(([part]) => part);
}

function roundsOf({ threads }: CalculationFindings): number {
  return threads.reduce((sum, { rounds }) => sum + rounds, 0);
}

function tell(
  context: StepContext,
  found: CalculationFindings,
  heat: TemperatureMonitor,
  percent: number,
): void {
  const threads = counted(found.threads.length, 'thread');
  const rounds = counted(roundsOf(found), 'round');
  const state = stateText(found.errors, heat);
  context.reportProgress(Math.min(99, percent), `${threads}, ${rounds}, ${state}`);
}
