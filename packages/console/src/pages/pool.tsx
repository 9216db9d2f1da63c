/** One pool: its rollout drawn host by host, what it waits for, and what was deployed. */

import {
  type DeployHistoryEntry,
  enumWord,
  type HostSelector,
  type Pool,
  type PoolHost,
  type RolloutSlot,
  RolloutSlotState,
  RolloutSlotStateSchema,
} from '@rackwright/messages';
import { newRequestId } from '../browser/clock.ts';
import { useConsole } from '../browser/console.ts';
import { useLive, useTopic } from '../browser/hooks.ts';
import { grouped, idOf, msOf, shortImage, spaced, utc } from '../logic/format.ts';
import { poolHostTone } from '../logic/host-tones.ts';
import { isOffered } from '../logic/offers.ts';
import { statesOf } from '../logic/rollout.ts';
import { formatRoute, routeOf } from '../logic/route.ts';
import { Badge, Fields, Mark, Nothing, PageHead, Panel, Resource, Time } from '../parts/basics.tsx';
import { useAction } from '../parts/dialog.tsx';
import { FailureBox } from '../parts/errors.tsx';
import { ExplanationPanel } from '../parts/explanation.tsx';
import { Shares } from '../parts/shares.tsx';
import { Table } from '../parts/table.tsx';
import { Unread } from '../parts/unread.tsx';
import { PoolState } from './pools.tsx';

const historyMax = 50;

export function PoolPage({ name }: { readonly name: string }) {
  const { clients } = useConsole();
  useTopic({ kind: 'pools', name });
  const options = { isConcerned: () => true, everyMs: 10_000 };
  const { value, failure, reload } = useLive(
    name,
    async (signal) => {
      const [pool, hosts, history] = await Promise.all([
        clients.pools.getPool({ name }, { signal }),
        clients.pools.listPoolHosts({ parent: name }, { signal }),
        clients.pools.listDeployHistory({ parent: name, pageSize: historyMax }, { signal }),
      ]);
      return { pool, hosts: hosts.hosts, history: history.entries };
    },
    options,
  );
  const explained = useLive(
    `explain ${name}`,
    (signal) => clients.pools.explainPool({ name }, { signal }),
    options,
  );
  const above = <a href={formatRoute(['pools'])}>Pools</a>;
  if (value === undefined) {
    return <Unread name={name} kind="pool" above={above} failure={failure} retry={reload} />;
  }
  const { pool, hosts, history } = value;
  return (
    <>
      <PageHead
        title={idOf(name)}
        above={above}
        actions={<PoolActions pool={pool} reload={reload} />}
      >
        <p class="host-line">
          <PoolState pool={pool} />
          <span>{grouped(pool.status?.hostCount ?? 0)} hosts</span>
          <code>{pool.spec?.image}</code>
        </p>
      </PageHead>
      <ExplanationPanel title="Rollout" subject="What the pool waits for" explained={explained} />
      <Rollout hosts={hosts} />
      <Slots pool={pool} reload={reload} />
      <History entries={history} />
      <Panel title="Pool">
        <PoolFields pool={pool} />
      </Panel>
    </>
  );
}

/** Hosts that are drawn; of larger pools the bar tells the rest. */
const cellsMax = 2_000;

function Rollout({ hosts }: { readonly hosts: readonly PoolHost[] }) {
  const parts = statesOf(hosts).map(({ state, count }) => ({
    label: spaced(state),
    count,
    tone: poolHostTone(state),
  }));
  const drawn = hosts.slice(0, cellsMax);
  return (
    <Panel title="Hosts">
      {hosts.length === 0 && <Nothing>The pool selects no host.</Nothing>}
      {hosts.length > 0 && <Shares label="Hosts by state of the rollout" parts={parts} />}
      <ul class="cells" aria-label="Hosts of the pool">
        {drawn.map((host) => (
          <li key={host.host}>
            <a
              class={`cell ${poolHostTone(host.state)}`}
              href={routeOf(host.host)}
              title={cellText(host)}
            >
              <Mark tone={poolHostTone(host.state)} />
              {idOf(host.host)}
            </a>
          </li>
        ))}
      </ul>
      {hosts.length > cellsMax && (
        <p class="quiet">The first {grouped(cellsMax)} of them are drawn.</p>
      )}
    </Panel>
  );
}

function cellText({ host, state, message, image }: PoolHost): string {
  return [`${idOf(host)}: ${spaced(state)}`, message, shortImage(image)].filter(Boolean).join('\n');
}

interface SlotsProps {
  readonly pool: Pool;
  readonly reload: () => void;
}

function Slots({ pool, reload }: SlotsProps) {
  const { clients, caller } = useConsole();
  const { failure, isBusy, run } = useAction();
  const slots = pool.status?.slots ?? [];
  if (slots.length === 0) return null;
  const digest = pool.status?.target?.digest ?? '';
  const approve = (slot: RolloutSlot) => {
    const request = { name: pool.name, hosts: [slot.host], digest, requestId: newRequestId() };
    void run(() => clients.pools.approvePool(request)).then(reload);
  };
  const columns = [
    { title: 'Host', cell: ({ host }: RolloutSlot) => <Resource name={host} /> },
    {
      title: 'State',
      cell: ({ state }: RolloutSlot) => (
        <Badge tone={state === RolloutSlotState.GATE ? 'warn' : 'busy'}>
          {enumWord(RolloutSlotStateSchema, state)}
        </Badge>
      ),
    },
    { title: 'Since', cell: ({ takeTime }: RolloutSlot) => <Time at={takeTime} /> },
    { title: 'Says', cell: ({ message }: RolloutSlot) => message },
    {
      title: 'Approval',
      cell: (slot: RolloutSlot) =>
        slot.state === RolloutSlotState.GATE && isOffered(caller, 'approvePool') ? (
          <button type="button" disabled={isBusy} onClick={() => approve(slot)}>
            Approve
          </button>
        ) : (
          slot.approvedBy
        ),
    },
  ];
  return (
    <Panel title="Under way">
      {failure !== undefined && <FailureBox subject="It was not approved" failure={failure} />}
      <Table label="Hosts under way" columns={columns} rows={slots} keyOf={({ host }) => host} />
    </Panel>
  );
}

/** Deployments as bars: how many hosts came onto each image, and how many run it now. */
function History({ entries }: { readonly entries: readonly DeployHistoryEntry[] }) {
  const most = Math.max(1, ...entries.map(({ hostCount }) => hostCount));
  return (
    <Panel title="Deployed">
      {entries.length === 0 && <Nothing>Nothing has been deployed yet.</Nothing>}
      <ol class="history">
        {entries.map((entry) => (
          <li key={entry.digest}>
            <span class="history-name">
              <strong>{entry.version || 'no version'}</strong>{' '}
              <code title={entry.digest}>{entry.digest.replace('sha256:', '').slice(0, 12)}</code>
            </span>
            <HistoryBar entry={entry} most={most} />
            <span class="quiet" title={timeOf(entry)}>
              {entry.currentHosts} of {entry.hostCount} run it now, last{' '}
              <Time at={entry.lastDeployed} />
            </span>
          </li>
        ))}
      </ol>
    </Panel>
  );
}

function HistoryBar({
  entry,
  most,
}: {
  readonly entry: DeployHistoryEntry;
  readonly most: number;
}) {
  const all = (entry.hostCount / most) * 100;
  const now = (Math.min(entry.currentHosts, entry.hostCount) / most) * 100;
  const text = `${entry.hostCount} hosts were brought to it, ${entry.currentHosts} run it now`;
  return (
    <svg
      class="history-bar"
      viewBox="0 0 100 6"
      preserveAspectRatio="none"
      role="img"
      aria-label={text}
    >
      <rect class="ground" width="100" height="6" />
      <rect class="fill calm" width={all} height="6" />
      <rect class="fill good" width={now} height="6" />
    </svg>
  );
}

function timeOf({ lastDeployed }: DeployHistoryEntry): string {
  const ms = msOf(lastDeployed);
  return ms === undefined ? '' : utc(ms);
}

function selectorText(hosts: HostSelector | undefined): string {
  const labels = Object.entries(hosts?.labels ?? {}).map(([key, value]) => `${key}=${value}`);
  return [...labels, hosts?.rack ?? ''].filter(Boolean).join(', ');
}

function PoolFields({ pool: { spec, status, createTime } }: { readonly pool: Pool }) {
  const { rollout, size } = spec ?? {};
  const { target, unavailableMax = 0, rolledBackFrom } = status ?? {};
  return (
    <Fields
      rows={[
        { label: 'Selects', value: selectorText(spec?.hosts) },
        { label: 'Size', value: size === undefined ? 'all' : String(size) },
        { label: 'Target', value: shortImage(target?.image ?? '') },
        { label: 'Version', value: target?.version },
        { label: 'Target since', value: target && <Time at={target.since} /> },
        { label: 'Went back from', value: rolledBackFrom },
        { label: 'Out at once', value: String(unavailableMax) },
        { label: 'Waves', value: rollout?.waves.map(({ name }) => name).join(', ') },
        { label: 'Goes back by itself', value: rollout?.rollback === true ? 'yes' : 'no' },
        { label: 'Made', value: <Time at={createTime} /> },
      ]}
    />
  );
}

function PoolActions({ pool, reload }: SlotsProps) {
  const { clients, caller } = useConsole();
  const { failure, isBusy, run } = useAction();
  const isPaused = pool.spec?.rollout?.paused === true;
  const request = { name: pool.name, requestId: newRequestId() };
  const act = (call: () => Promise<unknown>) => void run(call).then(reload);
  return (
    <>
      {isPaused && isOffered(caller, 'resumePool') && (
        <button
          type="button"
          disabled={isBusy}
          onClick={() => act(() => clients.pools.resumePool(request))}
        >
          Go on
        </button>
      )}
      {!isPaused && isOffered(caller, 'pausePool') && (
        <button
          type="button"
          disabled={isBusy}
          onClick={() => act(() => clients.pools.pausePool(request))}
        >
          Pause
        </button>
      )}
      {failure !== undefined && <FailureBox subject="The pool was not changed" failure={failure} />}
    </>
  );
}
