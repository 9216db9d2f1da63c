/** rackwright host history, diff: earlier states of a host, and the changes between them. */
import { create } from '@bufbuild/protobuf';
import {
  DiffHostResponseSchema,
  type FieldDifference,
  HistoryService,
  type HostRevision,
  ListHostRevisionsResponseSchema,
} from '@rackwright/messages';
import { buildCommand } from '@stricli/core';
import type { CliContext } from '../../command-io.ts';
import { resourceName, type SharedFlags } from '../../flags.ts';
import { stateText } from '../../output/host.ts';
import { isForPrograms, printAs, printLines, printTable } from '../../output/show.ts';
import type { TextColumn } from '../../output/table.ts';
import { instant } from '../../output/time.ts';
import { callsOf } from '../frame/calls.ts';
import {
  pagesUntil,
  pastFlag,
  pastTime,
  type RangeFlags,
  rangeFlags,
  rangeOf,
} from '../frame/past-time.ts';
import { hostAliases as aliases, hostArgument, hostFlags, withHosts } from './client.ts';

const withHistory = callsOf(HistoryService);

export const hostHistory = buildCommand({
  docs: {
    brief: 'Show what happened to a host, newest first',
    fullDescription:
      'One line for each intent and transition: when, who, in which state the host was then, and ' +
      'why. `host get --at TIME` shows the whole host as of a time.',
  },
  parameters: { flags: { ...hostFlags, ...rangeFlags }, positional: hostArgument, aliases },
  async func(this: CliContext, flags: SharedFlags & RangeFlags, id: string) {
    const { io } = this;
    const name = resourceName('hosts', id);
    const range = rangeOf(io.clock, flags);
    const { items: revisions, more } = await withHosts(io, flags, (hosts) =>
      pagesUntil(
        flags.limit,
        (pageToken, pageSize) => hosts.listHostRevisions({ name, pageToken, pageSize, ...range }),
        (page) => page.revisions,
      ),
    );
    if (isForPrograms(flags.output)) {
      const schema = ListHostRevisionsResponseSchema;
      printAs(io, flags.output, schema, create(schema, { revisions }));
      return;
    }
    printTable(io, flags.output, columns, revisions);
    if (more) io.err.write(olderText(revisions.at(-1)));
  },
});

const columns: TextColumn<HostRevision>[] = [
  { title: 'WHEN', value: ({ time }) => instant(time) },
  { title: 'WHO', value: ({ actor }) => actor, dropOrder: 1 },
  {
    title: 'STATE',
    value: ({ host }) => (host === undefined ? '' : stateText(host)),
    dropOrder: 2,
  },
  { title: 'WHY', value: ({ cause }) => cause, widthMin: 20 },
];

function olderText(last: HostRevision | undefined): string {
  const until = last?.time === undefined ? '' : `, or --until ${instant(last.time)}`;
  return `There is more: give a higher --limit${until}.\n`;
}

interface DiffFlags extends SharedFlags {
  readonly from: string;
  readonly to?: string;
}

export const diffHost = buildCommand({
  docs: { brief: 'Show what differs between a host at one time and at another' },
  parameters: {
    flags: {
      ...hostFlags,
      from: {
        kind: 'parsed',
        parse: String,
        brief: 'The earlier time: 2026-01-31T12:00:00Z, or 2h for two hours ago',
        placeholder: 'time',
      },
      to: pastFlag('The later time; without it now'),
    },
    positional: hostArgument,
    aliases,
  },
  async func(this: CliContext, flags: DiffFlags, id: string) {
    const { io } = this;
    const { from, to } = flags;
    const request = {
      name: resourceName('hosts', id),
      fromTime: pastTime(io.clock, '--from', from),
      ...(to === undefined ? {} : { toTime: pastTime(io.clock, '--to', to) }),
    };
    const answer = await withHistory(io, flags, (history) => history.diffHost(request));
    if (isForPrograms(flags.output)) printAs(io, flags.output, DiffHostResponseSchema, answer);
    else if (answer.differences.length === 0) printLines(io, ['no difference']);
    else printTable(io, flags.output, differenceColumns, answer.differences);
  },
});

const differenceColumns: TextColumn<FieldDifference>[] = [
  { title: 'FIELD', value: ({ path }) => path, widthMin: 20 },
  { title: 'BEFORE', value: ({ before }) => before, widthMin: 12 },
  { title: 'AFTER', value: ({ after }) => after, widthMin: 12 },
];
