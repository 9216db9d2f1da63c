/** Pools: how far each is with its image. */
import { type Pool, type PoolConditionType, poolCondition } from '@rackwright/messages';
import { useConsole } from '../browser/console.ts';
import { useLive, useTopic } from '../browser/hooks.ts';
import { grouped, idOf, shortImage } from '../logic/format.ts';
import { routeOf } from '../logic/route.ts';
import { Badge, Loading, Nothing, PageHead } from '../parts/basics.tsx';
import { FailureBox } from '../parts/errors.tsx';
import { Shares } from '../parts/shares.tsx';
import { Table } from '../parts/table.tsx';

const poolsShownMax = 1_000;

const columns = [
  { title: 'Pool', cell: ({ name }: Pool) => <a href={routeOf(name)}>{idOf(name)}</a> },
  { title: 'State', cell: (pool: Pool) => <PoolState pool={pool} /> },
  { title: 'Rollout', cell: (pool: Pool) => <PoolBar pool={pool} /> },
  {
    title: 'Hosts',
    cell: ({ status }: Pool) => grouped(status?.hostCount ?? 0),
    isNumber: true,
  },
  {
    title: 'Out',
    cell: ({ status }: Pool) =>
      `${status?.unavailableCount ?? 0} of ${status?.unavailableMax ?? 0}`,
    isNumber: true,
    isMinor: true,
  },
  {
    title: 'Failed',
    cell: ({ status }: Pool) => grouped(status?.failedCount ?? 0),
    isNumber: true,
  },
  {
    title: 'Image',
    cell: ({ spec }: Pool) => <code>{shortImage(spec?.image ?? '')}</code>,
    isMinor: true,
  },
];

export function PoolsPage() {
  const { clients } = useConsole();
  useTopic({ kind: 'pools', name: '' });
  const { value, failure, reload } = useLive(
    'pools',
    (signal) => clients.pools.listPools({ pageSize: poolsShownMax }, { signal }),
    { isConcerned: ({ kind }) => kind === 'pool', everyMs: 15_000 },
  );
  return (
    <>
      <PageHead title="Pools" />
      {failure !== undefined && (
        <FailureBox subject="The pools cannot be listed" failure={failure} retry={reload} />
      )}
      {value === undefined && failure === undefined && <Loading subject="Reading pools" />}
      {value?.pools.length === 0 && (
        <Nothing>
          There is no pool. Make one by{' '}
          <code>rackwright pool create web --label role=web --image REGISTRY/web:1.0</code>.
        </Nothing>
      )}
      {value !== undefined && value.pools.length > 0 && (
        <Table label="Pools" columns={columns} rows={value.pools} keyOf={({ name }) => name} />
      )}
    </>
  );
}

/** How far the pool is, from its own counts. */
export function PoolBar({ pool: { status } }: { readonly pool: Pool }) {
  const { hostCount = 0, currentCount = 0, unavailableCount = 0, failedCount = 0 } = status ?? {};
  const rest = Math.max(0, hostCount - currentCount - unavailableCount - failedCount);
  return (
    <Shares
      label="Hosts of the pool"
      hasLegend={false}
      parts={[
        { label: 'on the image', count: currentCount, tone: 'good' },
        { label: 'out', count: unavailableCount, tone: 'busy' },
        { label: 'waiting', count: rest, tone: 'calm' },
        { label: 'failed', count: failedCount, tone: 'bad' },
      ]}
    />
  );
}

/** What the pool's conditions come to. */
export function PoolState({ pool: { status, spec } }: { readonly pool: Pool }) {
  if (status?.deleting === true) return <Badge tone="warn">deleting</Badge>;
  const conditionWith = (type: PoolConditionType, { is: wanted }: { readonly is: boolean }) => {
    const condition = poolCondition(status, type);
    return condition?.status === wanted ? condition : undefined;
  };
  const degraded = conditionWith('Degraded', { is: true });
  if (degraded !== undefined) {
    return (
      <Badge tone="bad" title={degraded.message}>
        {degraded.reason}
      </Badge>
    );
  }
  if (spec?.rollout?.paused === true) return <Badge tone="warn">paused</Badge>;
  const unresolved = conditionWith('Resolved', { is: false });
  if (unresolved !== undefined) {
    return (
      <Badge tone="warn" title={unresolved.message}>
        {unresolved.reason}
      </Badge>
    );
  }
  return conditionWith('UpToDate', { is: true }) === undefined ? (
    <Badge tone="busy">rolling out</Badge>
  ) : (
    <Badge tone="good">up to date</Badge>
  );
}
