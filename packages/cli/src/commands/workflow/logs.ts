/**
 * rackwright workflow logs: the output of a step's program, and with --follow its further output.
 *
 * Invariant: on a terminal no output of a program can move the cursor or change colours.
 */
import { ReadStepOutputResponseSchema, type StepExit } from '@rackwright/messages';
import { buildCommand } from '@stricli/core';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { parseWhole, type SharedFlags } from '../../flags.ts';
import { isForPrograms, printEvent } from '../../output/show.ts';
import {
  type WorkflowClient,
  withWorkflows,
  workflowAliases,
  workflowArguments,
  workflowFlags,
  workflowNameOf,
} from './client.ts';

interface LogFlags extends SharedFlags {
  readonly run?: number;
  readonly step?: string;
  readonly attempt?: number;
  readonly follow: boolean;
}

/** Control characters but line feed and tab. */
const harmful = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

export const workflowLogs = buildCommand({
  docs: {
    brief: 'Print what a step of a run wrote',
    fullDescription:
      'Without --step the one under way, or the last that ran; without --run the latest run. ' +
      'What the control plane did not keep is shown as a size.',
  },
  parameters: {
    flags: {
      ...workflowFlags,
      run: { kind: 'parsed', parse: parseWhole, optional: true, brief: 'Number of the run' },
      step: { kind: 'parsed', parse: String, optional: true, brief: 'Name of the step' },
      attempt: {
        kind: 'parsed',
        parse: parseWhole,
        optional: true,
        brief: 'Number of the attempt',
      },
      follow: { kind: 'boolean', default: false, brief: 'Go on until the step has ended' },
    },
    positional: workflowArguments,
    aliases: { ...workflowAliases, f: 'follow' },
  },
  async func(this: CliContext, flags: LogFlags, host: string, template: string) {
    const { io } = this;
    await withWorkflows(io, flags, async (workflows) => {
      const workflow = workflowNameOf(host, template);
      const number = flags.run ?? (await latestOf(workflows, workflow));
      await printOutput(io, flags, workflows, `${workflow}/runs/${number}`);
    });
  },
});

async function latestOf(workflows: WorkflowClient, name: string): Promise<bigint> {
  const { status } = await workflows.getWorkflow({ name });
  return status?.run?.number ?? status?.runCount ?? 1n;
}

async function printOutput(
  io: CommandIo,
  flags: LogFlags,
  workflows: WorkflowClient,
  name: string,
): Promise<void> {
  const { step = '', attempt = 0, follow } = flags;
  const decoder = new TextDecoder();
  let next: bigint | undefined;
  let exit: StepExit | undefined;
  let at = step;
  const call = { name, step, attempt, follow };
  for await (const answer of workflows.readStepOutput(call, { signal: io.signal })) {
    if (isForPrograms(flags.output)) {
      printEvent(io, flags.output, ReadStepOutputResponseSchema, answer);
      continue;
    }
    const { offset, content } = answer;
    if (content.byteLength > 0) {
      const missed = offset - (next ?? 0n);
      if (missed > 0n) io.err.write(`… ${missed} bytes were not kept …\n`);
      next = offset + BigInt(content.byteLength);
      io.out.write(shownText(io, decoder.decode(content, { stream: true })));
    }
    at = answer.step || at;
    exit = answer.exit ?? exit;
  }
  if (!isForPrograms(flags.output) && exit !== undefined)
    io.err.write(`${at}: ${exitText(exit)}\n`);
}

/** A file or a program gets the output unchanged. */
function shownText({ out }: CommandIo, text: string): string {
  return out.columns === undefined ? text : text.replaceAll(harmful, '�');
}

function exitText({ code, signal }: StepExit): string {
  if (signal !== '') return `ended by ${signal}`;
  return code === undefined ? 'could not be started' : `exit ${code}`;
}
