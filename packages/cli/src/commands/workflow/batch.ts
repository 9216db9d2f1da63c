/** rackwright workflow batch … */
import { create } from '@bufbuild/protobuf';
import {
  ListWorkflowBatchesResponseSchema,
  type WorkflowBatch,
  WorkflowBatchSchema,
} from '@rackwright/messages';
import { buildCommand, buildRouteMap } from '@stricli/core';
import type { CliContext, CommandIo } from '../../command-io.ts';
import {
  idArgument,
  parseLabels,
  parseWhole,
  requestFlag,
  resourceName,
  type SharedFlags,
} from '../../flags.ts';
import { isForPrograms, printAs, printFields, printLines, printTable } from '../../output/show.ts';
import { batchColumns, batchFields, batchHostColumns } from '../../output/workflow.ts';
import { allPages } from '../frame/calls.ts';
import { reasonFlag } from '../host/client.ts';
import {
  workflowAliases as aliases,
  parseVariables,
  varFlag,
  withBatches,
  workflowFlags,
} from './client.ts';

const batchArgument = idArgument('batch', 'Id of the batch');
const nameOf = (id: string) => resourceName('workflowBatches', id);

function showBatch(io: CommandIo, { output }: SharedFlags, batch: WorkflowBatch): void {
  if (isForPrograms(output)) {
    printAs(io, output, WorkflowBatchSchema, batch);
    return;
  }
  printFields(io, batchFields(batch, io.clock));
  printTable(io, output, batchHostColumns, batch.status?.hosts ?? []);
}

interface CreateFlags extends SharedFlags {
  readonly host?: readonly string[];
  readonly rack?: string;
  readonly label?: readonly string[];
  readonly var?: readonly string[];
  readonly parallel?: number;
  readonly maxFailures?: number;
  readonly dryRun: boolean;
  readonly requestId: string;
}

const createBatch = buildCommand({
  docs: {
    brief: 'Run a template on many hosts, a bounded number at once',
    fullDescription:
      'The hosts are those that match everything that is given: names, rack, labels. They are ' +
      'fixed when the batch is created; --dry-run shows them.',
  },
  parameters: {
    flags: {
      ...workflowFlags,
      host: {
        kind: 'parsed',
        parse: String,
        variadic: true,
        optional: true,
        brief: 'Id of a host',
      },
      rack: { kind: 'parsed', parse: String, optional: true, brief: 'Id of the rack' },
      label: { kind: 'parsed', parse: String, variadic: true, optional: true, brief: 'NAME=VALUE' },
      ...varFlag,
      parallel: {
        kind: 'parsed',
        parse: parseWhole,
        optional: true,
        brief: 'Hosts at once; unset means 1',
      },
      maxFailures: {
        kind: 'parsed',
        parse: parseWhole,
        optional: true,
        brief: 'Failed hosts after which no further one starts; unset means 1, 0 never',
      },
      dryRun: { kind: 'boolean', default: false, brief: 'Only show the hosts' },
      ...requestFlag,
    },
    positional: {
      kind: 'tuple',
      parameters: [
        { parse: String, brief: 'Id of the batch', placeholder: 'batch' },
        { parse: String, brief: 'Id of the template', placeholder: 'template' },
      ],
    },
    aliases,
  },
  async func(this: CliContext, flags: CreateFlags, id: string, template: string) {
    const { host = [], rack, label = [], parallel, maxFailures } = flags;
    const spec = {
      template: resourceName('templates', template),
      variables: parseVariables(flags.var ?? []),
      hosts: {
        names: host.map((each) => resourceName('hosts', each)),
        rack: rack === undefined ? '' : resourceName('racks', rack),
        labels: parseLabels(label),
      },
      ...(parallel === undefined ? {} : { maxParallel: parallel }),
      ...(maxFailures === undefined ? {} : { maxFailures }),
    };
    const made = await withBatches(this.io, flags, (batches) =>
      batches.createWorkflowBatch({
        workflowBatchId: id,
        workflowBatch: { spec },
        validateOnly: flags.dryRun,
        requestId: flags.requestId,
      }),
    );
    showBatch(this.io, flags, made);
  },
});

const getBatch = buildCommand({
  docs: { brief: 'Show a batch, with a line for each host' },
  parameters: { flags: workflowFlags, positional: batchArgument, aliases },
  async func(this: CliContext, flags: SharedFlags, id: string) {
    const name = nameOf(id);
    const batch = await withBatches(this.io, flags, (batches) =>
      batches.getWorkflowBatch({ name }),
    );
    showBatch(this.io, flags, batch);
  },
});

const listBatches = buildCommand({
  docs: { brief: 'List batches' },
  parameters: { flags: workflowFlags, aliases },
  async func(this: CliContext, flags: SharedFlags) {
    const workflowBatches = await withBatches(this.io, flags, (client) =>
      allPages(
        (pageToken) => client.listWorkflowBatches({ pageToken }),
        (page) => page.workflowBatches,
      ),
    );
    if (isForPrograms(flags.output)) {
      const schema = ListWorkflowBatchesResponseSchema;
      printAs(this.io, flags.output, schema, create(schema, { workflowBatches }));
    } else printTable(this.io, flags.output, batchColumns(this.io.clock), workflowBatches);
  },
});

const cancelBatch = buildCommand({
  docs: { brief: 'Start no further host, and end the runs under way' },
  parameters: {
    flags: { ...workflowFlags, ...reasonFlag, ...requestFlag },
    positional: batchArgument,
    aliases,
  },
  async func(
    this: CliContext,
    flags: SharedFlags & { reason: string; requestId: string },
    id: string,
  ) {
    const { reason, requestId } = flags;
    const batch = await withBatches(this.io, flags, (batches) =>
      batches.cancelWorkflowBatch({ name: nameOf(id), reason, requestId }),
    );
    showBatch(this.io, flags, batch);
  },
});

const deleteBatch = buildCommand({
  docs: { brief: 'Remove a batch and its pending runs; runs under way go on' },
  parameters: { flags: workflowFlags, positional: batchArgument, aliases },
  async func(this: CliContext, flags: SharedFlags, id: string) {
    const name = nameOf(id);
    const gone = await withBatches(this.io, flags, (batches) =>
      batches.deleteWorkflowBatch({ name }),
    );
    if (isForPrograms(flags.output)) printAs(this.io, flags.output, WorkflowBatchSchema, gone);
    else printLines(this.io, [`${name} deleted`]);
  },
});

/** All commands on batches. */
export const batchRoutes = buildRouteMap({
  routes: {
    create: createBatch,
    get: getBatch,
    list: listBatches,
    cancel: cancelBatch,
    delete: deleteBatch,
  },
  docs: { brief: 'One template on many hosts' },
});
