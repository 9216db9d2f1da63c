/** rackwright host runs, run, explain */
import { create } from '@bufbuild/protobuf';
import {
  HistoryService,
  type HostId,
  ListHostRunsResponseSchema,
  RunSchema,
} from '@rackwright/messages';
import { buildCommand } from '@stricli/core';
import type { CliContext } from '../../command-io.ts';
import {
  parseWhole,
  resourceName,
  type SearchFlags,
  type SharedFlags,
  searchFlags,
  searchOf,
} from '../../flags.ts';
import { runColumns, runLines } from '../../output/run.ts';
import { isForPrograms, printAs, printLines, printTable } from '../../output/show.ts';
import { callsOf } from '../frame/calls.ts';
import { showExplanation } from '../frame/explain.ts';
import { hostAliases as aliases, hostArgument, hostFlags, withHosts } from './client.ts';

const withHistory = callsOf(HistoryService);

/** The default number of runs that are shown. */
const runsShown = 20;

export const listRuns = buildCommand({
  docs: { brief: 'List the runs of a host, newest first' },
  parameters: {
    flags: {
      ...hostFlags,
      limit: {
        kind: 'parsed',
        parse: parseWhole,
        default: String(runsShown),
        brief: 'Maximum number of runs',
        placeholder: 'number',
      },
      ...searchFlags,
    },
    positional: hostArgument,
    aliases,
  },
  async func(this: CliContext, flags: SharedFlags & SearchFlags & { limit: number }, id: string) {
    const { io } = this;
    const parent = resourceName('hosts', id);
    const { runs } = await withHistory(io, flags, (history) =>
      history.listHostRuns({ ...searchOf(flags), parent, pageSize: flags.limit }),
    );
    if (isForPrograms(flags.output)) {
      printAs(
        io,
        flags.output,
        ListHostRunsResponseSchema,
        create(ListHostRunsResponseSchema, { runs }),
      );
    } else printTable(io, flags.output, runColumns(io.clock), runs);
  },
});

export const getRun = buildCommand({
  docs: { brief: 'Show one run of a host with its steps' },
  parameters: {
    flags: hostFlags,
    positional: {
      kind: 'tuple',
      parameters: [
        ...hostArgument.parameters,
        { parse: parseWhole, brief: 'Number of the run', placeholder: 'number' },
      ],
    },
    aliases,
  },
  async func(this: CliContext, flags: SharedFlags, id: string, number: number) {
    const { io } = this;
    const name = runName(id, number);
    const run = await withHistory(io, flags, (history) => history.getHostRun({ name }));
    if (isForPrograms(flags.output)) printAs(io, flags.output, RunSchema, run);
    else printLines(io, runLines(run, io.clock, io.out.columns));
  },
});

export const explainHost = buildCommand({
  docs: {
    brief: 'Say what a host waits for, and what would make it move',
    fullDescription:
      'Say what a host waits for, since when, what comes next by itself, and what would make it ' +
      'move. With --run, the same of one run: what it waits for, or how it ended.',
  },
  parameters: {
    flags: {
      ...hostFlags,
      run: {
        kind: 'parsed',
        parse: parseWhole,
        optional: true,
        brief: 'Number of a run to explain instead',
        placeholder: 'number',
      },
    },
    positional: hostArgument,
    aliases,
  },
  async func(this: CliContext, flags: SharedFlags & { run?: number }, id: string) {
    const { io } = this;
    const name = flags.run === undefined ? resourceName('hosts', id) : runName(id, flags.run);
    const answer =
      flags.run === undefined
        ? await withHosts(io, flags, (hosts) => hosts.explainHost({ name }))
        : await withHistory(io, flags, (history) => history.explainRun({ name }));
    showExplanation(io, flags, answer);
  },
});

function runName(hostId: HostId, number: number): string {
  return `${resourceName('hosts', hostId)}/runs/${number}`;
}
