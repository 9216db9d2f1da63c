/** rackwright audit … */
import { create } from '@bufbuild/protobuf';
import {
  type AuditRecord,
  AuditService,
  ListAuditRecordsResponseSchema,
} from '@rackwright/messages';
import { buildCommand, buildRouteMap } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import type { CliContext } from '../../command-io.ts';
import { connectionFlags, outputFlag, type SharedFlags } from '../../flags.ts';
import { isForPrograms, printAs, printTable } from '../../output/show.ts';
import type { TextColumn } from '../../output/table.ts';
import { instant } from '../../output/time.ts';
import { callsOf } from '../frame/calls.ts';
import { pagesUntil, type RangeFlags, rangeFlags, rangeOf } from '../frame/past-time.ts';

function filterFlag(brief: string, placeholder: string) {
  return { kind: 'parsed', parse: String, default: '', brief, placeholder } as const;
}

interface AuditFlags extends SharedFlags, RangeFlags {
  readonly actor: string;
  readonly resource: string;
  readonly action: string;
  readonly outcome: string;
  readonly text: string;
  readonly filter: string;
}

const withAudit = callsOf(AuditService);

const listAudit = buildCommand({
  docs: {
    brief: 'List what was asked, by whom, and what came of it, newest first',
    fullDescription:
      'Also what was refused, who was not let in, which agent got a certificate, and which ' +
      'secret went to which operation (never its value). Each filter given must match.',
  },
  parameters: {
    flags: {
      ...connectionFlags,
      ...outputFlag,
      actor: filterFlag('Who, as admin, user:admin or agent:racks/r1', 'actor'),
      resource: filterFlag('About which resource or one below it, as hosts/h1', 'name'),
      action: filterFlag('Which method, as CleanHost', 'method'),
      outcome: filterFlag('ok, or a status as FAILED_PRECONDITION', 'outcome'),
      text: filterFlag('Any part of the message', 'text'),
      filter: filterFlag('Only what matches, as outcome != ok AND actor = user:*', 'filter'),
      ...rangeFlags,
    },
    aliases: { o: 'output' },
  },
  async func(this: CliContext, flags: AuditFlags) {
    const { io } = this;
    const { actor, resource, action, outcome, text, filter } = flags;
    const range = rangeOf(io.clock, flags);
    const search = { actor, resource, action, outcome, text, filter, ...range };
    const { items: records, more } = await withAudit(io, flags, (audit) =>
      pagesUntil(
        flags.limit,
        (pageToken, pageSize) => audit.listAuditRecords({ ...search, pageToken, pageSize }),
        (page) => page.records,
      ),
    );
    if (isForPrograms(flags.output)) {
      const schema = ListAuditRecordsResponseSchema;
      printAs(io, flags.output, schema, create(schema, { records }));
      return;
    }
    printTable(io, flags.output, columns, records);
    if (more) io.err.write('There is more: give a higher --limit, or --until.\n');
  },
});

const columns: TextColumn<AuditRecord>[] = [
  { title: 'WHEN', value: ({ time }) => instant(time) },
  { title: 'WHO', value: ({ actor, peer }) => actor || `(${peer})`, widthMin: 10 },
  { title: 'ACTION', value: ({ action }) => action, widthMin: 12 },
  { title: 'RESOURCE', value: ({ resource }) => resource, widthMin: 10 },
  { title: 'OUTCOME', value: ({ outcome }) => outcome, widthMin: 6 },
  { title: 'FROM', value: ({ peer }) => peer, dropOrder: 3 },
  { title: 'REQUEST', value: ({ requestId }) => requestId, dropOrder: 2 },
  { title: 'WORDS', value: ({ message }) => message, widthMin: 20, dropOrder: 1 },
];

/** All commands on the audit stream. */
export const auditRoutes = buildRouteMap({
  routes: { list: listAudit },
  docs: { brief: briefs.audit },
});
