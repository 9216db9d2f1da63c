/** Workflows, templates and batches. */
import {
  enumWord,
  type Template,
  type Workflow,
  type WorkflowBatch,
  WorkflowRunStateSchema,
} from '@rackwright/messages';
import { useConsole } from '../browser/console.ts';
import { useRoute, useTopic } from '../browser/hooks.ts';
import { usePages } from '../browser/more.ts';
import { grouped, idOf } from '../logic/format.ts';
import { workflowTone } from '../logic/host-tones.ts';
import { formatRoute, routeOf } from '../logic/route.ts';
import { Badge, Nothing, PageHead, Resource, Time } from '../parts/basics.tsx';
import { More } from '../parts/more.tsx';
import { Shares } from '../parts/shares.tsx';
import { Table } from '../parts/table.tsx';
import { Tabs } from '../parts/tabs.tsx';

const tabs = [
  ['workflows', 'Workflows'],
  ['batches', 'Batches'],
  ['templates', 'Templates'],
] as const;
const fresh = { everyMs: 5_000 };

export function WorkflowsPage() {
  const { query } = useRoute();
  useTopic({ kind: 'racks' });
  const chosen = query['tab'] ?? 'workflows';
  return (
    <>
      <PageHead title="Workflows" />
      <Tabs
        label="Kinds"
        tabs={tabs}
        chosen={chosen}
        href={(tab) => formatRoute(['workflows'], { tab: tab === 'workflows' ? '' : tab })}
      />
      {chosen === 'batches' ? <Batches /> : chosen === 'templates' ? <Templates /> : <Workflows />}
    </>
  );
}

/** "hosts/h1" of "hosts/h1/workflows/greet" */
const hostOf = (name: string) => name.split('/').slice(0, 2).join('/');

const workflowColumns = [
  {
    title: 'Workflow',
    cell: ({ name }: Workflow) => <a href={routeOf(name)}>{idOf(name)}</a>,
  },
  { title: 'Host', cell: ({ name }: Workflow) => <Resource name={hostOf(name)} /> },
  {
    title: 'Latest run',
    cell: ({ status }: Workflow) =>
      status?.run === undefined ? (
        <span class="quiet">none yet</span>
      ) : (
        <Badge tone={workflowTone(status.run.state)}>
          {enumWord(WorkflowRunStateSchema, status.run.state) ?? ''}
        </Badge>
      ),
  },
  {
    title: 'Says',
    cell: ({ status }: Workflow) =>
      status?.notRunnable || status?.run?.waiting?.message || status?.run?.error?.message || '',
  },
  {
    title: 'Runs',
    cell: ({ status }: Workflow) => grouped(status?.runCount ?? 0n),
    isNumber: true,
    isMinor: true,
  },
  {
    title: 'Begun',
    cell: ({ status }: Workflow) => <Time at={status?.run?.createTime} />,
    isMinor: true,
  },
];

function Workflows() {
  const { clients } = useConsole();
  const listed = usePages<Workflow>(
    'workflows',
    ({ name }) => name,
    async (pageToken, signal) => {
      const page = await clients.workflows.listWorkflows(
        { parent: 'hosts/-', pageToken },
        { signal },
      );
      return { rows: page.workflows, next: page.nextPageToken };
    },
    fresh,
  );
  return (
    <More subject="The workflows cannot be listed" listed={listed}>
      {listed.rows.length === 0 ? (
        <Nothing>
          No host has a workflow. Begin one by <code>rackwright workflow create HOST TEMPLATE</code>
          .
        </Nothing>
      ) : (
        <Table
          label="Workflows"
          columns={workflowColumns}
          rows={listed.rows}
          keyOf={({ name }) => name}
        />
      )}
    </More>
  );
}

const batchColumns = [
  { title: 'Batch', cell: ({ name }: WorkflowBatch) => idOf(name) },
  { title: 'Template', cell: ({ spec }: WorkflowBatch) => idOf(spec?.template ?? '') },
  { title: 'Hosts', cell: (batch: WorkflowBatch) => <BatchBar batch={batch} /> },
  {
    title: 'Stopped',
    cell: ({ status }: WorkflowBatch) => status?.stoppedReason ?? '',
  },
  {
    title: 'Made',
    cell: ({ createTime }: WorkflowBatch) => <Time at={createTime} />,
    isMinor: true,
  },
];

function BatchBar({ batch: { status } }: { readonly batch: WorkflowBatch }) {
  return (
    <Shares
      label="Hosts of the batch"
      parts={[
        { label: 'succeeded', count: status?.succeeded ?? 0, tone: 'good' },
        { label: 'running', count: status?.running ?? 0, tone: 'busy' },
        { label: 'pending', count: status?.pending ?? 0, tone: 'calm' },
        { label: 'cancelled', count: status?.cancelled ?? 0, tone: 'warn' },
        { label: 'failed', count: status?.failed ?? 0, tone: 'bad' },
      ]}
    />
  );
}

function Batches() {
  const { clients } = useConsole();
  const listed = usePages<WorkflowBatch>(
    'batches',
    ({ name }) => name,
    async (pageToken, signal) => {
      const page = await clients.batches.listWorkflowBatches({ pageToken }, { signal });
      return { rows: page.workflowBatches, next: page.nextPageToken };
    },
    fresh,
  );
  return (
    <More subject="The batches cannot be listed" listed={listed}>
      {listed.rows.length === 0 ? (
        <Nothing>There is no batch.</Nothing>
      ) : (
        <Table
          label="Batches"
          columns={batchColumns}
          rows={listed.rows}
          keyOf={({ name }) => name}
        />
      )}
    </More>
  );
}

const templateColumns = [
  { title: 'Template', cell: ({ name }: Template) => idOf(name) },
  { title: 'What it does', cell: ({ description }: Template) => description },
  {
    title: 'Steps',
    cell: ({ steps }: Template) => steps.map(({ name }) => name).join(' → '),
  },
  {
    title: 'Destroys',
    cell: ({ steps }: Template) =>
      steps.some(({ destructive }) => destructive) && <Badge tone="bad">destroys data</Badge>,
    isMinor: true,
  },
];

function Templates() {
  const { clients } = useConsole();
  const listed = usePages<Template>(
    'templates',
    ({ name }) => name,
    async (pageToken, signal) => {
      const page = await clients.templates.listTemplates({ pageToken }, { signal });
      return { rows: page.templates, next: page.nextPageToken };
    },
  );
  return (
    <More subject="The templates cannot be listed" listed={listed}>
      <Table
        label="Templates"
        columns={templateColumns}
        rows={listed.rows}
        keyOf={({ name }) => name}
      />
    </More>
  );
}
