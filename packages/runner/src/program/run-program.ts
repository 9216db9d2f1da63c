/**
 * A program as the work of a step: its output is reported as it arrives and kept at its end, and
 * its exit becomes the step's result.
 */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import * as agent from '@rackwright/messages/agent';
import type { Complete, FailedAttempt } from '@rackwright/results';
import type { StepContext, StepResult } from '../steps/step.ts';
import { lastLine, lastLines, OutputTail } from './output-tail.ts';
import type { ProgramExit, ProgramRequest, Programs } from './program.ts';

/** Starts the program, follows it to its end and answers for it. */
export async function runProgram(
  context: StepContext,
  programs: Programs,
  request: ProgramRequest,
): Promise<StepResult> {
  if (context.signal.aborted) return { result: cancelled(undefined) };
  const tail = new OutputTail();
  const program = await programs.start(request, (piece) => {
    tail.push(piece);
    context.reportOutput(piece);
  });
  const stop = (): void => program.stop();
  context.crashPoint('runner.programStarted');
  context.signal.addEventListener('abort', stop);
  if (context.signal.aborted) stop();
  const end = await program.end;
  context.signal.removeEventListener('abort', stop);
  return { result: resultOf(end, outputOf(end, tail), context.signal.aborted) };
}

/** The report of a step that ran a program. */
function outputOf(end: ProgramExit, tail: OutputTail): agent.StepOutput {
  const bytes = tail.tail();
  const exit: MessageInitShape<typeof agent.StepOutputSchema>['exit'] = {
    outputBytes: BigInt(tail.totalBytes),
    lastOutput: lastLines(bytes),
    ...(end.kind === 'exited' ? { code: end.code } : {}),
    ...(end.kind === 'signalled' ? { signal: end.signal } : {}),
  };
  return create(agent.StepOutputSchema, { exit, tail: bytes });
}

function resultOf(
  end: ProgramExit,
  output: agent.StepOutput,
  aborted: boolean,
): Complete | FailedAttempt {
  // A program that ended well before it could be stopped has ended well.
  if (end.kind === 'exited' && end.code === 0) return { kind: 'complete', output };
  if (end.kind === 'stuck') {
    const message = `The program has ended, but ${end.message}: boot the host again.`;
    return { kind: 'failed', type: 'internal', message, output };
  }
  if (aborted) return cancelled(output);
  switch (end.kind) {
    case 'notStarted': {
      const message = `The program cannot be started: ${end.message}.`;
      return { kind: 'failed', type: 'invalidArgument', message };
    }
    case 'exited':
      return badExit(`exit code ${end.code}`, output);
    case 'signalled':
      return badExit(`ended by ${end.signal}`, output);
  }
}

function badExit(how: string, output: agent.StepOutput): FailedAttempt {
  const text = lastLine(output.tail);
  const message = text === '' ? `${how}, and it wrote nothing` : `${how}: ${text}`;
  return { kind: 'failed', type: 'exitCode', message, output };
}

function cancelled(output: agent.StepOutput | undefined): FailedAttempt {
  const message = 'It was cancelled, and all that it had started was ended.';
  const outputs = output === undefined ? {} : { output };
  return { kind: 'failed', type: 'cancelled', message, ...outputs };
}
