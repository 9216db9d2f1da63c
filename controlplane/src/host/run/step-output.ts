/**
 * The output of a step's program: its end in a record of its own, its last lines in the run, for
 * conditions and for people. Pure.
 *
 * Invariant: both are bounded, and so is their sum over a run: a host's record is one value.
 */
import { create } from '@bufbuild/protobuf';
import {
  commandStep,
  type OperationId,
  type Run,
  type RunStep,
  type StepExit,
  StepExitSchema,
  scriptStep,
  webhookStep,
} from '@rackwright/messages';
import type { Pass } from '../pass/pass.ts';
import { truncate } from '../pass/step-failure.ts';
import { isOfTemplate } from '../pass/step-names.ts';

/** The most output that is kept of one attempt. */
export const outputBytesMax = 64 * 1024;
/** The most last lines of one step in a run, and of all its steps, in bytes. */
const lastBytesMax = 2 * 1024;
const lastBytesOfRunMax = 64 * 1024;
const signalCharactersMax = 32;

/** Steps that have output. */
const writing: ReadonlySet<string> = new Set([scriptStep, commandStep, webhookStep]);

interface Output {
  readonly exit?: StepExit | undefined;
  readonly tail: Uint8Array;
}

/** Records the end of the present attempt of a step, and its output. */
export function takeOutput(
  pass: Pass,
  run: Run,
  step: RunStep,
  operationId: OperationId,
  output: Output | undefined,
): void {
  delete step.exit;
  if (output === undefined || !isOfTemplate(step)) return;
  const { exit } = output;
  const tail = lastOf(output.tail, outputBytesMax);
  const bytes = new TextEncoder().encode(exit?.lastOutput ?? '');
  const writers = run.steps.filter(({ name }) => writing.has(name)).length;
  const own = Math.floor(lastBytesOfRunMax / Math.max(1, writers));
  const last = lastOf(bytes.length > 0 ? bytes : tail, Math.min(lastBytesMax, own));
  step.exit = create(StepExitSchema, {
    ...(exit?.code === undefined ? {} : { code: exit.code }),
    signal: truncate(exit?.signal ?? '', signalCharactersMax),
    outputBytes: exit?.outputBytes ?? BigInt(output.tail.length),
    lastOutput: textOf(last),
  });
  pass.effects.push({ kind: 'stepOutput', operationId, exit: step.exit, tail });
}

function lastOf(bytes: Uint8Array, bytesMax: number): Uint8Array {
  return bytes.subarray(Math.max(0, bytes.length - bytesMax));
}

/** Without the rest of a character that was cut at the beginning. */
function textOf(bytes: Uint8Array): string {
  let from = 0;
  while (from < Math.min(3, bytes.length) && ((bytes[from] ?? 0) & 0xc0) === 0x80) from += 1;
  return new TextDecoder().decode(bytes.subarray(from));
}
