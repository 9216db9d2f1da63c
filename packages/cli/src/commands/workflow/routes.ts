/** rackwright workflow … */
import { create } from '@bufbuild/protobuf';
import {
  ListWorkflowRunsResponseSchema,
  ListWorkflowsResponseSchema,
  WorkflowRunSchema,
} from '@rackwright/messages';
import { buildCommand, buildRouteMap } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import type { CliContext } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import {
  parseWhole,
  requestFlag,
  resourceName,
  type SearchFlags,
  type SharedFlags,
  searchFlags,
  searchOf,
} from '../../flags.ts';
import { isForPrograms, printAs, printFields, printLines, printTable } from '../../output/show.ts';
import { runColumns, runFields, stepColumns, workflowColumns } from '../../output/workflow.ts';
import { allPages } from '../frame/calls.ts';
import { showExplanation } from '../frame/explain.ts';
import { checkWait, type WaitFlags, waitFlags } from '../frame/wait.ts';
import { reasonFlag } from '../host/client.ts';
import { batchRoutes } from './batch.ts';
import {
  workflowAliases as aliases,
  changedVariables,
  parsePendingTimeout,
  parseVariables,
  showWorkflow,
  varFlag,
  withWorkflows,
  workflowArguments,
  workflowFlags,
  workflowNameOf,
} from './client.ts';
import { workflowLogs } from './logs.ts';
import { workflowDone } from './wait.ts';

const pendingTimeoutFlag = {
  pendingTimeout: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'How long a run may wait for its start, such as 2h; unset means 1h',
    placeholder: 'duration',
  },
} as const;

interface SpecFlags extends SharedFlags {
  readonly var?: readonly string[];
  readonly pendingTimeout?: string;
  readonly requestId: string;
}

const createWorkflow = buildCommand({
  docs: { brief: 'Bind a template to a host, and run it' },
  parameters: {
    flags: {
      ...workflowFlags,
      ...varFlag,
      ...pendingTimeoutFlag,
      disabled: { kind: 'boolean', default: false, brief: 'Do not run it yet' },
      ...waitFlags,
      ...requestFlag,
    },
    positional: workflowArguments,
    aliases,
  },
  async func(
    this: CliContext,
    flags: SpecFlags & WaitFlags & { disabled: boolean },
    host: string,
    template: string,
  ) {
    const pendingTimeout = parsePendingTimeout(flags.pendingTimeout);
    const spec = {
      variables: parseVariables(flags.var ?? []),
      disabled: flags.disabled,
      ...(pendingTimeout === undefined ? {} : { pendingTimeout }),
    };
    checkWait(flags);
    const made = await withWorkflows(this.io, flags, async (workflows) => {
      const answered = await workflows.createWorkflow({
        parent: resourceName('hosts', host),
        workflowId: template.replace(/^templates\//, ''),
        workflow: { spec },
        requestId: flags.requestId,
      });
      return workflowDone(this.io, workflows, flags, answered);
    });
    showWorkflow(this.io, flags, made);
  },
});

const updateWorkflow = buildCommand({
  docs: {
    brief: 'Change what the next run is started with',
    fullDescription: 'Variables that are not named stay as they are.',
  },
  parameters: {
    flags: {
      ...workflowFlags,
      ...varFlag,
      unsetVar: {
        kind: 'parsed',
        parse: String,
        variadic: true,
        optional: true,
        brief: 'Remove the value of this variable',
        placeholder: 'name',
      },
      ...pendingTimeoutFlag,
      ...requestFlag,
    },
    positional: workflowArguments,
    aliases,
  },
  async func(
    this: CliContext,
    flags: SpecFlags & { unsetVar?: readonly string[] },
    host: string,
    template: string,
  ) {
    const { requestId, unsetVar = [] } = flags;
    const pendingTimeout = parsePendingTimeout(flags.pendingTimeout);
    const set = parseVariables(flags.var ?? []);
    const changesVariables = flags.var !== undefined || unsetVar.length > 0;
    const paths = [
      ...(changesVariables ? ['spec.variables'] : []),
      ...(pendingTimeout === undefined ? [] : ['spec.pending_timeout']),
    ];
    if (paths.length === 0) {
      throw new UsageError('nothing to change: give --var, --unset-var or --pending-timeout');
    }
    const name = workflowNameOf(host, template);
    const changed = await withWorkflows(this.io, flags, async (workflows) => {
      // The API replaces all variables at once, so the changes are merged into the present ones.
      const { etag, spec: before } = changesVariables
        ? await workflows.getWorkflow({ name })
        : { etag: '' };
      const variables = changedVariables(before?.variables ?? {}, set, unsetVar);
      const spec = { variables, ...(pendingTimeout === undefined ? {} : { pendingTimeout }) };
      const workflow = { name, etag, spec };
      return workflows.updateWorkflow({ workflow, updateMask: { paths }, requestId });
    });
    showWorkflow(this.io, flags, changed);
  },
});

/** `enable` and `disable`. */
function switchCommand(brief: string, { disabled }: { readonly disabled: boolean }) {
  return buildCommand({
    docs: { brief },
    parameters: { flags: workflowFlags, positional: workflowArguments, aliases },
    async func(this: CliContext, flags: SharedFlags, host: string, template: string) {
      const workflow = { name: workflowNameOf(host, template), spec: { disabled } };
      const updateMask = { paths: ['spec.disabled'] };
      const changed = await withWorkflows(this.io, flags, (workflows) =>
        workflows.updateWorkflow({ workflow, updateMask }),
      );
      showWorkflow(this.io, flags, changed);
    },
  });
}

const runWorkflow = buildCommand({
  docs: { brief: 'Run a workflow again' },
  parameters: {
    flags: {
      ...workflowFlags,
      plan: {
        kind: 'parsed',
        parse: String,
        default: '',
        brief: 'Only as this plan says, by its whole hash',
        placeholder: 'hash',
      },
      ...waitFlags,
      ...requestFlag,
    },
    positional: workflowArguments,
    aliases,
  },
  async func(
    this: CliContext,
    flags: SharedFlags & WaitFlags & { plan: string; requestId: string },
    host: string,
    template: string,
  ) {
    const { plan: planHash, requestId } = flags;
    const name = workflowNameOf(host, template);
    checkWait(flags);
    const workflow = await withWorkflows(this.io, flags, async (workflows) => {
      const answered = await workflows.runWorkflow({ name, planHash, requestId });
      return workflowDone(this.io, workflows, flags, answered);
    });
    showWorkflow(this.io, flags, workflow);
  },
});

const cancelWorkflow = buildCommand({
  docs: { brief: 'End the run that is pending or running' },
  parameters: {
    flags: { ...workflowFlags, ...reasonFlag, ...requestFlag },
    positional: workflowArguments,
    aliases,
  },
  async func(
    this: CliContext,
    flags: SharedFlags & { reason: string; requestId: string },
    host: string,
    template: string,
  ) {
    const { reason, requestId } = flags;
    const name = workflowNameOf(host, template);
    const workflow = await withWorkflows(this.io, flags, (workflows) =>
      workflows.cancelWorkflow({ name, reason, requestId }),
    );
    showWorkflow(this.io, flags, workflow);
  },
});

const getWorkflow = buildCommand({
  docs: { brief: 'Show a workflow and its latest run, or one of its runs' },
  parameters: {
    flags: {
      ...workflowFlags,
      run: { kind: 'parsed', parse: parseWhole, optional: true, brief: 'Number of the run' },
    },
    positional: workflowArguments,
    aliases,
  },
  async func(
    this: CliContext,
    flags: SharedFlags & { run?: number },
    host: string,
    template: string,
  ) {
    const name = workflowNameOf(host, template);
    const { io } = this;
    await withWorkflows(io, flags, async (workflows) => {
      if (flags.run === undefined) {
        showWorkflow(io, flags, await workflows.getWorkflow({ name }));
        return;
      }
      const run = await workflows.getWorkflowRun({ name: `${name}/runs/${flags.run}` });
      if (isForPrograms(flags.output)) printAs(io, flags.output, WorkflowRunSchema, run);
      else {
        printFields(io, runFields(run, io.clock));
        printTable(io, flags.output, stepColumns, run.run?.steps ?? []);
      }
    });
  },
});

const listWorkflows = buildCommand({
  docs: { brief: 'List workflows' },
  parameters: {
    flags: {
      ...workflowFlags,
      host: { kind: 'parsed', parse: String, optional: true, brief: 'Only of this host' },
      template: { kind: 'parsed', parse: String, optional: true, brief: 'Only of this template' },
      ...searchFlags,
    },
    aliases,
  },
  async func(
    this: CliContext,
    flags: SharedFlags & SearchFlags & { host?: string; template?: string },
  ) {
    const search = searchOf(flags);
    const parent = resourceName('hosts', flags.host ?? '-');
    const template = flags.template === undefined ? '' : resourceName('templates', flags.template);
    const workflows = await withWorkflows(this.io, flags, (client) =>
      allPages(
        (pageToken) => client.listWorkflows({ ...search, parent, template, pageToken }),
        (page) => page.workflows,
      ),
    );
    if (isForPrograms(flags.output)) {
      const schema = ListWorkflowsResponseSchema;
      printAs(this.io, flags.output, schema, create(schema, { workflows }));
    } else printTable(this.io, flags.output, workflowColumns(this.io.clock), workflows);
  },
});

const listRuns = buildCommand({
  docs: { brief: 'List the runs of a workflow that are kept, newest first' },
  parameters: {
    flags: { ...workflowFlags, ...searchFlags },
    positional: workflowArguments,
    aliases,
  },
  async func(this: CliContext, flags: SharedFlags & SearchFlags, host: string, template: string) {
    const parent = workflowNameOf(host, template);
    const search = searchOf(flags);
    const runs = await withWorkflows(this.io, flags, (client) =>
      allPages(
        (pageToken) => client.listWorkflowRuns({ ...search, parent, pageToken }),
        (page) => page.runs,
      ),
    );
    if (isForPrograms(flags.output)) {
      const schema = ListWorkflowRunsResponseSchema;
      printAs(this.io, flags.output, schema, create(schema, { runs }));
    } else printTable(this.io, flags.output, runColumns(this.io.clock), runs);
  },
});

const deleteWorkflow = buildCommand({
  docs: { brief: 'Remove a workflow and what is kept of its runs' },
  parameters: {
    flags: { ...workflowFlags, ...requestFlag },
    positional: workflowArguments,
    aliases,
  },
  async func(
    this: CliContext,
    flags: SharedFlags & { requestId: string },
    host: string,
    template: string,
  ) {
    const name = workflowNameOf(host, template);
    const { requestId } = flags;
    const gone = await withWorkflows(this.io, flags, (workflows) =>
      workflows.deleteWorkflow({ name, requestId }),
    );
    if (isForPrograms(flags.output)) showWorkflow(this.io, flags, gone);
    else printLines(this.io, [`${name} deleted`]);
  },
});

const explainWorkflow = buildCommand({
  docs: { brief: 'Say what the latest run waits for, or how it ended' },
  parameters: { flags: workflowFlags, positional: workflowArguments, aliases },
  async func(this: CliContext, flags: SharedFlags, host: string, template: string) {
    const name = workflowNameOf(host, template);
    const answer = await withWorkflows(this.io, flags, (workflows) =>
      workflows.explainWorkflow({ name }),
    );
    showExplanation(this.io, flags, answer);
  },
});

/** All commands on workflows. */
export const workflowRoutes = buildRouteMap({
  routes: {
    create: createWorkflow,
    run: runWorkflow,
    get: getWorkflow,
    list: listWorkflows,
    runs: listRuns,
    logs: workflowLogs,
    explain: explainWorkflow,
    cancel: cancelWorkflow,
    update: updateWorkflow,
    enable: switchCommand('Let it run, also what is pending', { disabled: false }),
    disable: switchCommand('Let nothing of it start', { disabled: true }),
    delete: deleteWorkflow,
    batch: batchRoutes,
  },
  docs: { brief: briefs.workflow },
});
