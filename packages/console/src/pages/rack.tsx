/** One rack: its agent, what its hosts wait for, its limits. */
import {
  type CountHostsResponse,
  enumWord,
  type Rack,
  RackFaultTypeSchema,
} from '@rackwright/messages';
import { useConsole } from '../browser/console.ts';
import { useLive, useTopic } from '../browser/hooks.ts';
import { grouped, idOf } from '../logic/format.ts';
import { hostStates, stateWord, toneOfWord } from '../logic/host-tones.ts';
import { formatRoute } from '../logic/route.ts';
import { Badge, Fields, PageHead, Panel, Resource, Time } from '../parts/basics.tsx';
import { ExplanationPanel } from '../parts/explanation.tsx';
import { Shares } from '../parts/shares.tsx';
import { Unread } from '../parts/unread.tsx';
import { AgentState } from './overview.tsx';

export function RackPage({ name }: { readonly name: string }) {
  const { clients } = useConsole();
  const id = idOf(name);
  const filter = `rack = "${id}"`;
  useTopic({ kind: 'hosts', filter });
  const options = { isConcerned: () => true, everyMs: 10_000, pauseMs: 2_000 };
  const { value, failure, reload } = useLive(
    name,
    async (signal) => {
      const [rack, states] = await Promise.all([
        clients.racks.getRack({ name }, { signal }),
        clients.hosts.countHosts({ filter, groupBy: 'state' }, { signal }),
      ]);
      return { rack, states };
    },
    options,
  );
  const explained = useLive(
    `explain ${name}`,
    (signal) => clients.racks.explainRack({ name }, { signal }),
    options,
  );
  const above = <a href={formatRoute([])}>Fleet</a>;
  if (value === undefined) {
    return <Unread name={name} kind="rack" above={above} failure={failure} retry={reload} />;
  }
  return (
    <>
      <PageHead
        title={id}
        above={above}
        actions={
          <a class="button" href={formatRoute(['hosts'], { rack: id })}>
            Its hosts
          </a>
        }
      >
        <p class="host-line">
          <AgentState rack={value.rack} />
          <span>{grouped(value.states.total)} hosts</span>
        </p>
      </PageHead>
      <ExplanationPanel title="Now" subject="What the rack waits for" explained={explained} />
      <NetworkFaults rack={value.rack} />
      <States id={id} states={value.states} />
      <Agent rack={value.rack} />
    </>
  );
}

/** Of its provisioning network, by the word of its agent. */
function NetworkFaults({ rack: { status } }: { readonly rack: Rack }) {
  const faults = status?.faults ?? [];
  if (faults.length === 0) return null;
  return (
    <Panel title="Faults of the provisioning network" tone="bad">
      <ul class="troubles">
        {faults.map(({ type, message, since, host, mac, address }) => (
          <li key={`${type} ${mac} ${address}`}>
            <Badge tone="bad">{enumWord(RackFaultTypeSchema, type) ?? ''}</Badge> {message}{' '}
            <Time at={since} />
            {host !== '' && (
              <>
                {' '}
                <Resource name={host} />
              </>
            )}
          </li>
        ))}
      </ul>
    </Panel>
  );
}

interface StatesProps {
  readonly id: string;
  readonly states: CountHostsResponse;
}

function States({ id, states }: StatesProps) {
  const counts = new Map(states.groups.map(({ value: state, count }) => [state, count]));
  return (
    <Panel title="Hosts by state">
      <Shares
        label="Hosts by state"
        parts={hostStates.map(([state]) => {
          const label = stateWord(state);
          const href = formatRoute(['hosts'], { rack: id, state: label });
          return { label, count: counts.get(label) ?? 0, tone: toneOfWord(label), href };
        })}
      />
    </Panel>
  );
}

function Agent({ rack: { spec, status } }: { readonly rack: Rack }) {
  return (
    <Panel title="Agent">
      <Fields
        rows={[
          { label: 'Version', value: status?.agentVersion },
          { label: 'Last heard', value: <Time at={status?.lastSeenTime} /> },
          { label: 'Joined', value: <Time at={status?.agentJoinTime} /> },
          { label: 'Certificate until', value: <Time at={status?.certificateExpireTime} /> },
          { label: 'Key (SHA-256)', value: status?.agentKeySha256 },
          { label: 'Second agent', value: status?.duplicateAgent },
          { label: 'Hosts to forget', value: String(status?.tombstones ?? 0) },
          { label: 'Machines that nobody knows', value: String(status?.discoveredMachines ?? 0) },
          { label: 'Runs at once', value: String(spec?.limits?.runs ?? 'no limit') },
        ]}
      />
    </Panel>
  );
}
