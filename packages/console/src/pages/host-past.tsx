/** What was done on a host, and what it was: runs and timeline. */
import type { Host, HostRevision, Run } from '@rackwright/messages';
import { useConsole } from '../browser/console.ts';
import { usePages } from '../browser/more.ts';
import { runWord, stateTone, stateWord } from '../logic/host-tones.ts';
import { Badge, Nothing, Panel, Time } from '../parts/basics.tsx';
import { More } from '../parts/more.tsx';
import { RunState, RunView } from '../parts/run.tsx';
import { Table } from '../parts/table.tsx';

export function HostRuns({ host: { name } }: { readonly host: Host }) {
  const { clients } = useConsole();
  const listed = usePages<Run>(
    `runs ${name}`,
    ({ number }) => String(number),
    async (pageToken, signal) => {
      const page = await clients.history.listHostRuns(
        { parent: name, pageToken, pageSize: 20 },
        { signal },
      );
      return { rows: page.runs, next: page.nextPageToken };
    },
    { isConcerned: ({ kind }) => kind === 'host' },
  );
  return (
    <Panel title="Runs">
      <More subject="The runs cannot be listed" listed={listed}>
        {listed.rows.length === 0 && <Nothing>No run is kept.</Nothing>}
        {listed.rows.map((run) => (
          <details class="past-run" key={String(run.number)}>
            <summary>
              <RunSummary run={run} />
            </summary>
            <RunView run={run} />
          </details>
        ))}
      </More>
    </Panel>
  );
}

function RunSummary({ run }: { readonly run: Run }) {
  return (
    <>
      <strong>{runWord(run)}</strong> <RunState run={run} /> <Time at={run.startTime} />
      {run.error !== undefined && <span class="quiet"> {run.error.message}</span>}
    </>
  );
}

const columns = [
  { title: 'When', cell: ({ time }: HostRevision) => <Time at={time} /> },
  { title: 'Who', cell: ({ actor }: HostRevision) => actor },
  { title: 'What', cell: ({ cause }: HostRevision) => cause },
  {
    title: 'State then',
    cell: ({ host }: HostRevision) => (
      <Badge tone={stateTone(host?.status?.state ?? 0)}>
        {stateWord(host?.status?.state ?? 0)}
      </Badge>
    ),
  },
  {
    title: 'Shown as',
    cell: ({ host }: HostRevision) => host?.status?.display ?? '',
    isMinor: true,
  },
];

export function HostTimeline({ host: { name } }: { readonly host: Host }) {
  const { clients } = useConsole();
  const listed = usePages<HostRevision>(
    `timeline ${name}`,
    ({ revision }) => String(revision),
    async (pageToken, signal) => {
      const page = await clients.hosts.listHostRevisions(
        { name, pageToken, pageSize: 50 },
        { signal },
      );
      return { rows: page.revisions, next: page.nextPageToken };
    },
    { isConcerned: ({ kind }) => kind === 'host' },
  );
  return (
    <Panel title="Timeline">
      <More subject="The timeline cannot be read" listed={listed}>
        <Table
          label="Timeline, newest first"
          columns={columns}
          rows={listed.rows}
          keyOf={({ revision }) => String(revision)}
        />
      </More>
    </Panel>
  );
}
