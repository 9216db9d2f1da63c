/** The shared parts of every command on workflows. */
import {
  type Workflow,
  WorkflowBatchService,
  WorkflowSchema,
  WorkflowService,
} from '@rackwright/messages';
import type { Client } from '@rackwright/rpc';
import type { CommandIo } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import {
  connectionFlags,
  outputFlag,
  parsePair,
  resourceName,
  type SharedFlags,
} from '../../flags.ts';
import { isForPrograms, printAs, printFields, printTable } from '../../output/show.ts';
import { parseDuration } from '../../output/time.ts';
import { stepColumns, workflowFields } from '../../output/workflow.ts';
import { callsOf } from '../frame/calls.ts';

export const workflowFlags = { ...connectionFlags, ...outputFlag };
export const workflowAliases = { o: 'output' } as const;

/** HOST TEMPLATE */
export const workflowArguments = {
  kind: 'tuple',
  parameters: [
    { parse: String, brief: 'Id of the host', placeholder: 'host' },
    { parse: String, brief: 'Id of the template', placeholder: 'template' },
  ],
} as const;

export const varFlag = {
  var: {
    kind: 'parsed',
    parse: String,
    variadic: true,
    optional: true,
    brief: 'Value of a variable, NAME=VALUE',
    placeholder: 'name=value',
  },
} as const;

export type WorkflowClient = Client<typeof WorkflowService>;

/** Runs `work` with a client of WorkflowService. */
export const withWorkflows = callsOf(WorkflowService);

/** Runs `work` with a client of WorkflowBatchService. */
export const withBatches = callsOf(WorkflowBatchService);

/** "hosts/h1/workflows/t" of "h1" and "t". */
export function workflowNameOf(host: string, template: string): string {
  return `${resourceName('hosts', host)}/workflows/${template.replace(/^templates\//, '')}`;
}

/** Variables from "name=value" texts. Throws `UsageError`. */
export function parseVariables(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(texts.map((text) => parsePair('--var', text)));
}

/** Variables with some set and others removed. Throws `UsageError` for one that is both. */
export function changedVariables(
  before: Readonly<Record<string, string>>,
  set: Readonly<Record<string, string>>,
  unset: readonly string[],
): Record<string, string> {
  const gone = new Set(unset);
  const both = unset.find((name) => Object.hasOwn(set, name));
  if (both !== undefined) throw new UsageError(`--var and --unset-var both name ${both}`);
  const kept = Object.entries(before).filter(([name]) => !gone.has(name));
  return { ...Object.fromEntries(kept), ...set };
}

/** A duration as the API takes it; undefined when none is given. Throws `UsageError`. */
export function parsePendingTimeout(text: string | undefined) {
  if (text === undefined) return undefined;
  const durationMs = parseDuration(text);
  if (durationMs !== undefined) return { seconds: BigInt(Math.floor(durationMs / 1_000)) };
  throw new UsageError(`--pending-timeout is "${text}"; it must be like 90s, 30m, 2h or 3d`);
}

/** Prints one workflow, with the steps of its latest run. */
export function showWorkflow(io: CommandIo, { output }: SharedFlags, workflow: Workflow): void {
  if (isForPrograms(output)) {
    printAs(io, output, WorkflowSchema, workflow);
    return;
  }
  printFields(io, workflowFields(workflow, io.clock));
  const steps = workflow.status?.run?.run?.steps ?? [];
  if (steps.length > 0) printTable(io, output, stepColumns, steps);
}
