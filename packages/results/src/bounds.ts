/**
 * How much text a result may carry. Tools, devices and BMCs write any amount; records, journals and
 * people's screens take a bounded one. The receiver of a result cuts it here, so that all texts of
 * one report stay below 16 KiB together, and a program's output at 64 KiB.
 */
import { create } from '@bufbuild/protobuf';
import { StepExitSchema } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import type { FailedAttempt, Result } from './result.ts';

/** UTF-8 bytes. */
export const messageBytesMax = 1024;
export const detailBytesMax = 4 * 1024;
/** Programs read the progress: a longer one is dropped, because a cut one would be useless. */
export const lastProgressBytesMax = 8 * 1024;
export const progressTextBytesMax = 512;
/** The size of a program's output, besides those texts; its end is kept. */
export const outputTailBytesMax = 64 * 1024;
export const lastOutputBytesMax = 1024;
const signalBytesMax = 16;

const cutMark = ' … (cut)';

/** The text, well-formed, in at most `bytesMax` bytes; a cut text says so at its end. */
export function boundText(text: string, bytesMax: number): string {
  const whole = text.toWellFormed();
  const encoder = new TextEncoder();
  // A UTF-16 unit takes at most three bytes.
  if (whole.length * 3 <= bytesMax || encoder.encode(whole).length <= bytesMax) return whole;
  const room = new Uint8Array(bytesMax - encoder.encode(cutMark).length);
  const { read } = encoder.encodeInto(whole, room);
  return `${whole.slice(0, read)}${cutMark}`;
}

/** The result with its texts cut. The removed part of a failure's message is in its detail. */
export function boundResult<R extends Result>(result: R): R;
export function boundResult(result: Result): Result {
  switch (result.kind) {
    case 'complete':
      return { ...result, ...boundOutput(result) };
    case 'hostUpdated':
      return result;
    case 'continuing': {
      const { step, text } = result;
      return {
        ...result,
        step: boundText(step, progressTextBytesMax),
        text: boundText(text, progressTextBytesMax),
      };
    }
    case 'retryAfter':
    case 'transientError':
      return { ...result, message: boundText(result.message, messageBytesMax) };
    case 'failed':
      return boundFailed(result);
  }
}

function boundFailed({ message, detail, lastProgress, ...rest }: FailedAttempt): FailedAttempt {
  const cut = boundText(message, messageBytesMax);
  const text = detail ?? (cut === message.toWellFormed() ? undefined : message);
  const progressBytes = new TextEncoder().encode(lastProgress ?? '').length;
  const kept = progressBytes <= lastProgressBytesMax ? lastProgress : undefined;
  return {
    ...rest,
    ...boundOutput(rest),
    message: cut,
    ...(text === undefined ? {} : { detail: boundText(text, detailBytesMax) }),
    ...(kept === undefined ? {} : { lastProgress: kept.toWellFormed() }),
  };
}

function boundOutput({ output }: { readonly output?: agent.StepOutput }): {
  readonly output?: agent.StepOutput;
} {
  if (output === undefined) return {};
  const { exit } = output;
  const tail = output.tail.subarray(Math.max(0, output.tail.length - outputTailBytesMax));
  const bounded = exit && {
    ...(exit.code === undefined ? {} : { code: exit.code }),
    signal: boundText(exit.signal, signalBytesMax),
    outputBytes: exit.outputBytes,
    lastOutput: boundText(exit.lastOutput, lastOutputBytesMax),
  };
  return {
    output: create(agent.StepOutputSchema, {
      tail,
      ...(bounded === undefined ? {} : { exit: create(StepExitSchema, bounded) }),
    }),
  };
}
