/** The fleet at a glance: hosts by state, what is wrong, and racks. */
import type { CountHostsResponse, Freeze, Rack } from '@rackwright/messages';
import type { ConsoleClients } from '../browser/client.ts';
import { useConsole } from '../browser/console.ts';
import { useLive, useTopic } from '../browser/hooks.ts';
import { grouped, idOf, spaced } from '../logic/format.ts';
import { hostStates, stateWord, toneOfWord } from '../logic/host-tones.ts';
import { formatRoute, routeOf } from '../logic/route.ts';
import { Badge, Loading, Nothing, PageHead, Panel, Time } from '../parts/basics.tsx';
import { FailureBox } from '../parts/errors.tsx';
import { Shares } from '../parts/shares.tsx';
import { Table } from '../parts/table.tsx';

/** A busy fleet is counted no more often. */
const countPauseMs = 2_000;
const racksShownMax = 1_000;

export function OverviewPage() {
  const { clients } = useConsole();
  useTopic({ kind: 'hosts', filter: '' });
  const options = { isConcerned: () => true, pauseMs: countPauseMs, everyMs: 15_000 };
  const { value, failure, reload } = useLive(
    'overview',
    (signal) => read(clients, signal),
    options,
  );
  return (
    <>
      <PageHead title="Fleet" />
      {failure !== undefined && (
        <FailureBox subject="The fleet cannot be counted" failure={failure} retry={reload} />
      )}
      {value === undefined && failure === undefined && <Loading subject="Counting hosts" />}
      {value !== undefined && <Overview overview={value} />}
    </>
  );
}

type OverviewCounts = Awaited<ReturnType<typeof read>>;

/** A fixed number of calls, however many racks there are. */
async function read({ hosts, racks, fleet }: ConsoleClients, signal: AbortSignal) {
  const count = (groupBy: string, filter = '') => hosts.countHosts({ groupBy, filter }, { signal });
  const [states, faults, waiting, runs, failures, racked, troubled, ready, fleetNow, listed] =
    await Promise.all([
      count('state'),
      count('fault', 'fault:*'),
      count('waiting', 'waiting:*'),
      count('run', 'run:*'),
      count('failure', 'failure:*'),
      count('rack'),
      count('rack', 'fault:*'),
      count('rack', 'state = available'),
      fleet.getFleet({}, { signal }),
      racks.listRacks({ pageSize: racksShownMax }, { signal }),
    ]);
  return {
    states,
    faults,
    waiting,
    runs,
    failures,
    racked: mapOf(racked),
    troubled: mapOf(troubled),
    ready: mapOf(ready),
    freeze: fleetNow.status?.freeze,
    racks: listed.racks,
    hasMoreRacks: listed.nextPageToken !== '',
  };
}

function mapOf({ groups }: CountHostsResponse): ReadonlyMap<string, number> {
  return new Map(groups.map(({ value, count }) => [idOf(value), count]));
}

function FrozenBanner({ freeze }: { readonly freeze: Freeze }) {
  return (
    <div class="banner warn" role="status">
      <span>
        <strong>The fleet is frozen</strong> by {freeze.by} (<Time at={freeze.at} />
        ): {freeze.reason}. No destructive work begins. <a href={formatRoute(['brakes'])}>Brakes</a>
      </span>
    </div>
  );
}

function Overview({ overview }: { readonly overview: OverviewCounts }) {
  const { states, freeze, racks } = overview;
  const byState = new Map(states.groups.map(({ value, count }) => [value, count]));
  const parts = hostStates.map(([state]) => {
    const label = stateWord(state);
    return {
      label,
      count: byState.get(label) ?? 0,
      tone: toneOfWord(label),
      href: formatRoute(['hosts'], { state: label }),
    };
  });
  const away = racks.filter(({ status }) => status?.agentConnected !== true).length;
  return (
    <>
      {freeze !== undefined && <FrozenBanner freeze={freeze} />}
      <div class="tiles">
        <Tile count={states.total} label="hosts" href={formatRoute(['hosts'])} />
        <Tile count={racks.length} label={overview.hasMoreRacks ? 'racks and more' : 'racks'} />
        <Tile count={away} label="agents away" isBad={away > 0} />
        <Tile
          count={sum(overview.runs)}
          label="at work"
          href={formatRoute(['hosts'], { run: '*' })}
        />
        <Tile
          count={overview.faults.total}
          label="with faults"
          isBad={overview.faults.total > 0}
          href={formatRoute(['hosts'], { fault: '*' })}
        />
      </div>
      {states.unreadable > 0 && (
        <div class="banner warn">
          {grouped(states.unreadable)} records of hosts cannot be read, as after a downgrade.
        </div>
      )}
      <Panel title="Hosts by state">
        <Shares label="Hosts by state" parts={parts} />
      </Panel>
      <div class="columns">
        <Groups title="Faults" facet="fault" counts={overview.faults} none="No host has a fault." />
        <Groups title="Waits for" facet="waiting" counts={overview.waiting} none="No host waits." />
        <Groups title="Runs" facet="run" counts={overview.runs} none="No run is under way." />
        <Groups
          title="Last failures"
          facet="failure"
          counts={overview.failures}
          none="Nothing has failed that is not well again."
        />
      </div>
      <Racks overview={overview} />
    </>
  );
}

const sum = ({ total }: CountHostsResponse) => total;

interface TileProps {
  readonly count: number;
  readonly label: string;
  readonly href?: string;
  readonly isBad?: boolean;
}

function Tile({ count, label, href, isBad = false }: TileProps) {
  const inside = (
    <>
      <span class="tile-count">{grouped(count)}</span>
      <span class="tile-label">{label}</span>
    </>
  );
  const kind = `tile${isBad ? ' bad' : ''}`;
  return href === undefined ? (
    <div class={kind}>{inside}</div>
  ) : (
    <a class={kind} href={href}>
      {inside}
    </a>
  );
}

interface GroupsProps {
  readonly title: string;
  readonly facet: string;
  readonly counts: CountHostsResponse;
  readonly none: string;
}

const groupsShownMax = 8;

function Groups({ title, facet, counts, none }: GroupsProps) {
  const { groups } = counts;
  const most = Math.max(1, ...groups.map(({ count }) => count));
  return (
    <Panel title={title}>
      {groups.length === 0 && <Nothing>{none}</Nothing>}
      <ul class="bars">
        {groups.slice(0, groupsShownMax).map(({ value, count }) => (
          <li key={value}>
            <a href={formatRoute(['hosts'], { [facet]: value })}>{spaced(value)}</a>
            <span class="bar" aria-hidden="true">
              <span style={{ width: `${(count / most) * 100}%` }} />
            </span>
            <span class="number">{grouped(count)}</span>
          </li>
        ))}
      </ul>
      {groups.length > groupsShownMax && (
        <p class="quiet">and {groups.length - groupsShownMax} more kinds</p>
      )}
    </Panel>
  );
}

function Racks({ overview }: { readonly overview: OverviewCounts }) {
  const { racks, racked, troubled, ready, hasMoreRacks } = overview;
  const number =
    (counts: ReadonlyMap<string, number>, facet: Record<string, string>) =>
    ({ name }: Rack) => {
      const count = counts.get(idOf(name)) ?? 0;
      if (count === 0) return <span class="quiet">0</span>;
      return <a href={formatRoute(['hosts'], { rack: idOf(name), ...facet })}>{grouped(count)}</a>;
    };
  const columns = [
    { title: 'Rack', cell: ({ name }: Rack) => <a href={routeOf(name)}>{idOf(name)}</a> },
    { title: 'Agent', cell: (rack: Rack) => <AgentState rack={rack} /> },
    { title: 'Hosts', cell: number(racked, {}), isNumber: true },
    { title: 'Available', cell: number(ready, { state: 'available' }), isNumber: true },
    { title: 'Faults', cell: number(troubled, { fault: '*' }), isNumber: true },
    {
      title: 'Version',
      cell: ({ status }: Rack) => status?.agentVersion || '–',
      isMinor: true,
    },
    {
      title: 'Last heard',
      cell: ({ status }: Rack) => <Time at={status?.lastSeenTime} />,
      isMinor: true,
    },
  ];
  return (
    <Panel title="Racks">
      {racks.length === 0 ? (
        <Nothing>
          There is no rack yet. Make one by <code>rackwright rack create r1</code>.
        </Nothing>
      ) : (
        <Table label="Racks" columns={columns} rows={racks} keyOf={({ name }) => name} />
      )}
      {hasMoreRacks && <p class="quiet">The first {grouped(racksShownMax)} racks are shown.</p>}
    </Panel>
  );
}

/** Whether the agent is there, and what keeps it from work. */
export function AgentState({ rack: { status } }: { readonly rack: Rack }) {
  if (status?.agentConnected !== true) return <Badge tone="bad">away</Badge>;
  if (status.freeze !== undefined) {
    return (
      <Badge tone="warn" title={status.freeze.reason}>
        frozen
      </Badge>
    );
  }
  if (status.restoredStore !== undefined) return <Badge tone="warn">store restored</Badge>;
  return <Badge tone="good">connected</Badge>;
}
