/**
 * A process that calls one parser. It takes one task as JSON, notes each input before it is parsed,
 * and prints the answer as the last line.
 */
import { readFileSync, writeSync } from 'node:fs';
import { runCampaign } from './campaign.ts';
import { grows } from './growth.ts';
import { makeJudge } from './judge.ts';
import { NotedInput } from './noted-input.ts';
import { reduce } from './reduce.ts';
import { boundsOf, type Failure, isSameFailure, type Target } from './target.ts';
import { loadTarget } from './targets.ts';
import type { Task, TaskAnswer } from './task.ts';

const task: Task = JSON.parse(process.argv[2] ?? '{}');
const target = await loadTarget(task.target);
const noted = new NotedInput(task.notedPath, boundsOf(target).inputBytesMax);
const watched: Target = {
  ...target,
  parse: (input) => {
    noted.write(input);
    return target.parse(input);
  },
};
const answer = await carryOut();
writeSync(1, `${JSON.stringify(answer)}\n`);

async function carryOut(): Promise<TaskAnswer> {
  switch (task.kind) {
    case 'campaign': {
      const { seconds, ...limits } = task;
      const endMs = performance.now() + seconds * 1_000;
      const hasTime = () => performance.now() < endMs;
      const end = await runCampaign(watched, { ...limits, hasTime });
      return {
        ...end,
        seconds: (performance.now() - endMs) / 1_000 + seconds,
        reached: end.reached.map(textOfBytes),
        failures: end.failures.map(({ failure, input }) => ({
          failure,
          input: textOfBytes(input),
        })),
      };
    }
    case 'replay': {
      const failure = await failureOf(readInput(), task.growth);
      return failure === undefined ? {} : { failure };
    }
    case 'reduce': {
      const endMs = performance.now() + task.seconds * 1_000;
      const expected = task.failure;
      const fails = async (smaller: Uint8Array) =>
        isSameFailure(expected, await makeJudge(watched)(smaller));
      const goesOn = () => performance.now() < endMs;
      const smaller = await reduce(readInput(), fails, { tries: 20_000, goesOn });
      return { input: textOfBytes(smaller) };
    }
  }
}

function readInput(): Uint8Array {
  if (task.kind === 'campaign') throw new Error('a campaign makes its inputs');
  return Uint8Array.from(readFileSync(task.inputPath));
}

function textOfBytes(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}

async function failureOf(input: Uint8Array, growth: boolean): Promise<Failure | undefined> {
  if (!growth) return makeJudge(watched)(input);
  if (!(await grows(watched, [input]))) return undefined;
  return { kind: 'growth', signature: 'one input, again and again', text: 'the heap grows' };
}
