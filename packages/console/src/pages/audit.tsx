/** The audit stream: what was asked, by whom, and what came of it. */

import type { AuditRecord } from '@rackwright/messages';
import { useEffect, useState } from 'preact/hooks';
import { useConsole } from '../browser/console.ts';
import { useRoute, useTopic } from '../browser/hooks.ts';
import { usePages } from '../browser/more.ts';
import { idOf } from '../logic/format.ts';
import { formatRoute, routeOf } from '../logic/route.ts';
import { Badge, Nothing, PageHead, Time } from '../parts/basics.tsx';
import { More } from '../parts/more.tsx';
import { Table } from '../parts/table.tsx';

const columns = [
  { title: 'When', cell: ({ time }: AuditRecord) => <Time at={time} /> },
  { title: 'Who', cell: ({ actor }: AuditRecord) => actor },
  { title: 'What', cell: ({ action }: AuditRecord) => action },
  { title: 'About', cell: ({ resource }: AuditRecord) => <About resource={resource} /> },
  {
    title: 'Outcome',
    cell: ({ outcome }: AuditRecord) => (
      <Badge tone={outcome === 'ok' ? 'good' : 'bad'}>{outcome}</Badge>
    ),
  },
  { title: 'Says', cell: ({ message }: AuditRecord) => message },
  { title: 'From', cell: ({ peer }: AuditRecord) => <code>{peer}</code>, isMinor: true },
];

/** What has a page of its own is a link to it. */
function About({ resource }: { readonly resource: string }) {
  const hasPage = /^(hosts|racks|pools)\/[^/]+$/.test(resource);
  return hasPage ? <a href={routeOf(resource)}>{idOf(resource)}</a> : <span>{resource}</span>;
}

const questions = [
  ['actor', 'Who'],
  ['resource', 'About'],
  ['action', 'What'],
  ['outcome', 'Outcome'],
  ['text', 'Says'],
] as const;

interface QuestionsProps {
  readonly asked: Readonly<Record<string, string>>;
  readonly ask: (field: string, value: string) => void;
}

function Questions({ asked, ask }: QuestionsProps) {
  return (
    <form class="filter-bar" role="search" onSubmit={(event) => event.preventDefault()}>
      {questions.map(([field, label]) => (
        <label key={field}>
          {label}
          <input
            value={asked[field] ?? ''}
            spellcheck={false}
            onInput={(event) => ask(field, event.currentTarget.value)}
          />
        </label>
      ))}
    </form>
  );
}

export function AuditPage() {
  const { clients, clock } = useConsole();
  const { query } = useRoute();
  useTopic({ kind: 'racks' });
  const [asked, setAsked] = useState<Record<string, string>>(query);
  const wanted = questions.map(([field]) => [field, query[field] ?? ''] as const);
  const request = Object.fromEntries(wanted);
  useEffect(() => {
    const address = formatRoute(['audit'], asked);
    if (address === location.hash) return undefined;
    return clock.after(300, () => {
      history.replaceState(null, '', address);
      dispatchEvent(new HashChangeEvent('hashchange'));
    });
  }, [asked]);
  const listed = usePages<AuditRecord>(
    `audit ${JSON.stringify(request)}`,
    ({ id }) => id,
    async (pageToken, signal) => {
      const page = await clients.audit.listAuditRecords(
        { ...request, pageToken, pageSize: 100 },
        { signal },
      );
      return { rows: page.records, next: page.nextPageToken };
    },
    { everyMs: 10_000 },
  );
  return (
    <>
      <PageHead title="Audit">
        <Questions
          asked={asked}
          ask={(field, value) => setAsked((now) => ({ ...now, [field]: value }))}
        />
      </PageHead>
      <More subject="The audit cannot be read" listed={listed}>
        {listed.rows.length === 0 ? (
          <Nothing>Nothing fits.</Nothing>
        ) : (
          <Table
            label="Audit, newest first"
            columns={columns}
            rows={listed.rows}
            keyOf={({ id }) => id}
          />
        )}
      </More>
    </>
  );
}
