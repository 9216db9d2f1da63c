/**
 * Fuzzes one target: a campaign in a worker, then each failure by itself in a worker of its own,
 * which confirms it, and made smaller.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { reduce } from './reduce.ts';
import { boundsOf, type Failure, isSameFailure, type Target } from './target.ts';
import type { CampaignAnswer, ReduceAnswer, ReplayAnswer, Task } from './task.ts';
import { runWorker, type WorkerEnd } from './watched-worker.ts';

export interface FuzzOptions {
  readonly seed: number;
  readonly seconds: number;
  /** Most inputs; the same number makes the same run. */
  readonly inputs: number;
  /** Different failures after which the target is given up. */
  readonly failuresMax: number;
  /** For the reduction of each failure. */
  readonly reduceSeconds: number;
  /** How many processes may be started for it. */
  readonly reduceProcesses: number;
}

export interface ReducedFailure {
  readonly failure: Failure;
  readonly input: Uint8Array;
  /** False: the input fails only after others. */
  readonly alone: boolean;
}

export interface FuzzEnd {
  readonly inputs: number;
  readonly seconds: number;
  readonly places: number;
  readonly reached: readonly Uint8Array[];
  readonly failures: readonly ReducedFailure[];
}

/** Failures that end or spoil their process: each try needs a new one. */
const isDeadly = ({ kind }: Failure): boolean =>
  ['hang', 'unsettled', 'memory', 'growth'].includes(kind);

/** A task without what is the same for each of a target. */
type OpenTask = OwnFields<Task>;
type OwnFields<Each> = Each extends Task ? Omit<Each, 'target' | 'notedPath'> : never;

export async function fuzzTarget(target: Target, options: FuzzOptions): Promise<FuzzEnd> {
  const folder = mkdtempSync(join(tmpdir(), 'rackwright-fuzz-'));
  const work = (task: OpenTask): Promise<WorkerEnd> => {
    const notedPath = join(folder, `noted-${Math.floor(performance.now() * 1_000)}`);
    const whole = { ...task, target: target.name, notedPath } as Task;
    return runWorker(whole, boundsOf(target).hangCpuMs);
  };
  const inputFile = (input: Uint8Array): string => {
    const path = join(folder, 'input');
    writeFileSync(path, input);
    return path;
  };
  const replay = async (input: Uint8Array, growth = false): Promise<Failure | undefined> => {
    const end = await work({ kind: 'replay', inputPath: inputFile(input), growth });
    return end.kind === 'failed' ? end.failure : (end.answer as ReplayAnswer).failure;
  };
  try {
    const { seed, seconds, inputs, failuresMax } = options;
    const end = await work({ kind: 'campaign', seed, seconds, inputs, failuresMax });
    const campaign = campaignOf(end);
    const failures: ReducedFailure[] = [];
    for (const { failure, input } of campaign.failures) {
      const confirmed = await replay(input, failure.kind === 'growth');
      if (confirmed === undefined) {
        // What only the others have made possible counts, but for a peak and a slow call.
        const mayBeChance = failure.signature === 'peak' || failure.kind === 'slow';
        if (!mayBeChance) failures.push({ failure, input, alone: false });
        continue;
      }
      const smaller = isDeadly(confirmed)
        ? await reduceInProcesses(input, confirmed, replay, options)
        : await reduceInWorker(input, confirmed);
      failures.push({ failure: confirmed, input: smaller, alone: true });
    }
    return { ...campaign, failures };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }

  async function reduceInWorker(input: Uint8Array, failure: Failure): Promise<Uint8Array> {
    const seconds = options.reduceSeconds;
    const end = await work({ kind: 'reduce', inputPath: inputFile(input), failure, seconds });
    if (end.kind === 'failed') return input;
    return bytesOf((end.answer as ReduceAnswer).input);
  }
}

async function reduceInProcesses(
  input: Uint8Array,
  failure: Failure,
  replay: (input: Uint8Array, growth: boolean) => Promise<Failure | undefined>,
  { reduceSeconds, reduceProcesses }: FuzzOptions,
): Promise<Uint8Array> {
  const endMs = performance.now() + reduceSeconds * 1_000;
  const fails = async (smaller: Uint8Array) =>
    isSameFailure(failure, await replay(smaller, failure.kind === 'growth'));
  return reduce(input, fails, { tries: reduceProcesses, goesOn: () => performance.now() < endMs });
}

function campaignOf(end: WorkerEnd): Omit<FuzzEnd, 'failures'> & {
  readonly failures: readonly { readonly failure: Failure; readonly input: Uint8Array }[];
} {
  if (end.kind === 'failed') {
    const { failure, input } = end;
    return { inputs: 0, seconds: 0, places: 0, reached: [], failures: [{ failure, input }] };
  }
  const answer = end.answer as CampaignAnswer;
  return {
    ...answer,
    reached: answer.reached.map(bytesOf),
    failures: answer.failures.map(({ failure, input }) => ({ failure, input: bytesOf(input) })),
  };
}

function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(Buffer.from(base64, 'base64'));
}
