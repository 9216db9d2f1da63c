/** rackwright host clean, resume, skip, clean-steps */
import { ArgumentType, type CleanStep, ListCleanStepsResponseSchema } from '@rackwright/messages';
import { buildCommand } from '@stricli/core';
import type { CliContext } from '../../command-io.ts';
import { resourceName, type SharedFlags } from '../../flags.ts';
import { enumName } from '../../output/enum-name.ts';
import { rulesText } from '../../output/own-step.ts';
import { isForPrograms, printAs, printTable } from '../../output/show.ts';
import type { TextColumn } from '../../output/table.ts';
import { ago } from '../../output/time.ts';
import { listedSteps, type StepListFlags, stepListFlags } from '../frame/step-list.ts';
import { hostAliases, hostArgument, hostFlags, withHosts } from './client.ts';
import { hostVerb } from './verb.ts';

export const cleanHost = hostVerb<StepListFlags>({
  word: 'clean',
  docs: {
    brief: 'Clean a host: automatically, or by the steps given',
    fullDescription:
      'Without steps, cleans by the plan that clean-steps shows. With steps, runs exactly these, ' +
      'in their order. Between them may be hold (waits for resume or skip), wait,seconds=N, ' +
      'powerOff, powerOn and reboot (of the runner).',
  },
  flags: stepListFlags,
  hasReason: true,
  waitsFor: 'run',
  prepare: async (io, flags) => {
    const steps = await listedSteps(io, flags);
    return {
      loss: { kind: 'clean', steps: steps.map(({ step }) => step) },
      ask: (hosts, call) => hosts.cleanHost({ ...call, steps }),
    };
  },
});

export const resumeRun = hostVerb({
  word: 'resume',
  docs: {
    brief: 'Continue a run at a hold, or a failed clean from the step that failed',
  },
  flags: {},
  hasReason: true,
  waitsFor: 'run',
  prepare: () => ({ ask: (hosts, call) => hosts.resumeRun(call) }),
});

export const skipStep = hostVerb({
  word: 'skip',
  docs: { brief: 'Go on without the step that waits for a person, or end a pause' },
  flags: {},
  hasReason: true,
  waitsFor: 'run',
  prepare: () => ({ ask: (hosts, call) => hosts.skipStep(call) }),
});

export const cleanSteps = buildCommand({
  docs: { brief: 'List the clean steps: what runs, in order, and what does not' },
  parameters: { flags: hostFlags, positional: hostArgument, aliases: hostAliases },
  async func(this: CliContext, flags: SharedFlags, id: string) {
    const name = resourceName('hosts', id);
    const answer = await withHosts(this.io, flags, (hosts) => hosts.listCleanSteps({ name }));
    if (isForPrograms(flags.output)) {
      printAs(this.io, flags.output, ListCleanStepsResponseSchema, answer);
      return;
    }
    printTable(this.io, flags.output, stepColumns, answer.steps);
    const { clock, err } = this.io;
    for (const warning of answer.warnings) err.write(`warning: ${warning}\n`);
    if (answer.collectedAt !== undefined) {
      err.write(`The runner reported its steps ${ago(clock, answer.collectedAt)}.\n`);
    }
  },
});

const stepColumns: TextColumn<CleanStep>[] = [
  { title: 'STEP', value: ({ name }) => name },
  {
    title: 'PRIORITY',
    value: ({ priority, priorityFrom }) =>
      ['', 'step'].includes(priorityFrom) ? String(priority) : `${priority} (${priorityFrom})`,
  },
  {
    title: 'RUNS',
    value: ({ enabled, disabledReason }) => (enabled ? 'yes' : `no: ${disabledReason}`),
    widthMin: 10,
  },
  { title: 'BY', value: ({ source }) => source, dropOrder: 4 },
  {
    title: 'AFTER A CRASH',
    value: ({ rerunClass }) => enumName('RerunClass', rerunClass),
    dropOrder: 2,
  },
  { title: 'DESTRUCTIVE', value: ({ destructive }) => (destructive ? 'yes' : 'no'), dropOrder: 1 },
  { title: 'ARGUMENTS', value: argumentsText, dropOrder: 5 },
  { title: 'ON FAILURE', value: ({ own }) => (own ? rulesText(own) : ''), dropOrder: 6 },
  { title: 'DESCRIPTION', value: ({ description }) => description, dropOrder: 3, widthMin: 20 },
];

/** "seconds=1–60 level=low|high" */
function argumentsText({ typedArguments }: CleanStep): string {
  return typedArguments
    .map(({ name, type, values, minimum, maximum, required }) => {
      const range = minimum === undefined || maximum === undefined ? '' : `${minimum}–${maximum}`;
      const kind = type === ArgumentType.CHOICE ? values.join('|') : range;
      return `${name}=${kind || enumName('ArgumentType', type)}${required ? '' : '?'}`;
    })
    .join(' ');
}
