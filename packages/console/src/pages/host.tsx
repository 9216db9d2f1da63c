/** One host: what it waits for, what it does, what it is, and what can be asked of it. */

import {
  enumWord,
  type Hold,
  HoldScopeSchema,
  type Host,
  HostGoalSchema,
  RunPhase,
} from '@rackwright/messages';
import { useState } from 'preact/hooks';
import { useConsole } from '../browser/console.ts';
import { useEvents, useLive, useRoute, useTopic } from '../browser/hooks.ts';
import { idOf, shortImage } from '../logic/format.ts';
import { hostTone, stateTone, stateWord } from '../logic/host-tones.ts';
import { formatRoute, routeOf } from '../logic/route.ts';
import { Badge, Fields, PageHead, Panel, Resource, Time } from '../parts/basics.tsx';
import { ExplanationPanel } from '../parts/explanation.tsx';
import { RunView } from '../parts/run.tsx';
import { Tabs } from '../parts/tabs.tsx';
import { Unread } from '../parts/unread.tsx';
import { HostActions } from './host-actions.tsx';
import { HostBoots } from './host-boots.tsx';
import { HostBurnIns } from './host-burn-ins.tsx';
import { HostDisks } from './host-disks.tsx';
import { powerWord } from './host-grid.tsx';
import { HostInventory } from './host-inventory.tsx';
import { HostLog } from './host-log.tsx';
import { HostRuns, HostTimeline } from './host-past.tsx';

const tabs = [
  ['now', 'Now'],
  ['runs', 'Runs'],
  ['timeline', 'Timeline'],
  ['inventory', 'Inventory'],
  ['disks', 'Disks and certificates'],
  ['boots', 'Boots'],
  ['log', 'Log'],
] as const;

export function HostPage({ name }: { readonly name: string }) {
  const { clients } = useConsole();
  const { query } = useRoute();
  useTopic({ kind: 'host', name });
  const [pushed, setPushed] = useState<Host | undefined>(undefined);
  const [isGone, setGone] = useState(false);
  const loaded = useLive(name, (signal) => clients.hosts.getHost({ name }, { signal }));
  useEvents((event) => {
    if (event.kind !== 'host' || event.host.name !== name) return;
    setGone(event.isGone);
    if (!event.isGone) setPushed(event.host);
  });
  const host = pushed?.name === name ? pushed : loaded.value;
  const { failure } = loaded;
  const above = <a href={formatRoute(['hosts'])}>Hosts</a>;
  if (host === undefined) {
    return <Unread name={name} kind="host" above={above} failure={failure} retry={loaded.reload} />;
  }
  const chosen = query['tab'] ?? 'now';
  return (
    <>
      <PageHead title={idOf(name)} above={above} actions={<HostActions host={host} />}>
        <HostLine host={host} />
      </PageHead>
      {isGone && (
        <div class="banner warn" role="status">
          <strong>This host has been removed.</strong> What is shown is how it was last.
        </div>
      )}
      <Tabs
        label="Parts of the host"
        tabs={tabs}
        chosen={chosen}
        href={(tab) => routeOf(name, tab === 'now' ? {} : { tab })}
      />
      <HostTab host={host} tab={chosen} />
    </>
  );
}

function HostTab({ host, tab }: { readonly host: Host; readonly tab: string }) {
  switch (tab) {
    case 'runs':
      return <HostRuns host={host} />;
    case 'timeline':
      return <HostTimeline host={host} />;
    case 'inventory':
      return (
        <>
          <HostInventory host={host} />
          <HostBurnIns host={host} />
        </>
      );
    case 'disks':
      return <HostDisks host={host} />;
    case 'boots':
      return <HostBoots host={host} />;
    case 'log':
      return <HostLog host={host} />;
    default:
      return <HostNow host={host} />;
  }
}

function HostLine({ host }: { readonly host: Host }) {
  const { status, spec } = host;
  const state = stateWord(status?.state ?? 0);
  return (
    <p class="host-line">
      <Badge tone={stateTone(status?.state ?? 0)}>{state}</Badge>
      {status?.display !== state && <Badge tone={hostTone(host)}>{status?.display ?? ''}</Badge>}
      <span>
        in <Resource name={spec?.rack ?? ''} />
      </span>
      <span>power {powerWord(status?.poweredOn)}</span>
      {status?.agentConnected === false && <Badge tone="bad">agent away</Badge>}
      {status?.claim !== undefined && <span>claimed by {status.claim.by}</span>}
    </p>
  );
}

function HostNow({ host }: { readonly host: Host }) {
  const { clients } = useConsole();
  const { name, status } = host;
  const explained = useLive(
    `explain ${name}`,
    (signal) => clients.hosts.explainHost({ name }, { signal }),
    { isConcerned: ({ kind }) => kind === 'host', everyMs: 15_000 },
  );
  const run = status?.run;
  return (
    <>
      <ExplanationPanel
        subject="What the host waits for"
        explained={explained}
        title={run?.phase === RunPhase.ENDED || run === undefined ? 'State' : 'What it waits for'}
      />
      <Troubles host={host} />
      <Panel
        title={run?.phase === RunPhase.ENDED ? 'Last run' : 'Run'}
        {...(run === undefined ? {} : { tone: hostTone(host) })}
      >
        {run === undefined ? (
          <p class="nothing">No run yet.</p>
        ) : (
          <RunView
            run={run}
            percent={status?.progress?.percent ?? 0}
            text={status?.progress?.text ?? ''}
          />
        )}
      </Panel>
      <Panel title="Host">
        <HostFields host={host} />
      </Panel>
    </>
  );
}

function Troubles({ host: { status } }: { readonly host: Host }) {
  const faults = status?.faults ?? [];
  const holds = status?.holds ?? [];
  if (faults.length === 0 && holds.length === 0) return null;
  return (
    <Panel title="Faults and holds" tone="bad">
      <ul class="troubles">
        {faults.map(({ type, message, since, clearedBy }) => (
          <li key={`${type} ${message}`}>
            <Badge tone="bad">{type}</Badge> {message} <Time at={since} />
            {clearedBy !== '' && <span class="advice">It is over once: {clearedBy}</span>}
          </li>
        ))}
        {holds.map((hold) => (
          <HeldLine key={`${hold.scope} ${hold.reason}`} hold={hold} />
        ))}
      </ul>
    </Panel>
  );
}

function HeldLine({ hold: { scope, by, reason, since } }: { readonly hold: Hold }) {
  return (
    <li>
      <Badge tone="warn">hold on {enumWord(HoldScopeSchema, scope) ?? 'work'}</Badge> {reason}{' '}
      <span class="quiet">
        by {by}, <Time at={since} />
      </span>
    </li>
  );
}

function HostFields({ host }: { readonly host: Host }) {
  const { spec, status, labels } = host;
  const { bmc } = spec ?? {};
  const named = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  return (
    <Fields
      rows={[
        { label: 'Goal', value: enumWord(HostGoalSchema, spec?.goal ?? 0) ?? 'available' },
        { label: 'Rack', value: <Resource name={spec?.rack ?? ''} /> },
        { label: 'BMC', value: bmc && `${bmc.address}${bmc.port ? `:${bmc.port}` : ''}` },
        { label: 'Boots from', value: spec?.bootMacs.join(', ') },
        { label: 'Labels', value: named.join(', ') },
        { label: 'Image', value: shortImage(status?.image ?? '') },
        { label: 'May hold data', value: status?.dirty ? 'yes' : 'no' },
        {
          label: 'Last cleaned',
          value: status?.lastCleaned && <Time at={status.lastCleaned.at} />,
        },
        { label: 'Use', value: String(status?.useEpoch ?? 0) },
        { label: 'Created', value: <Time at={host.createTime} /> },
        { label: 'Changed', value: <Time at={host.updateTime} /> },
        { label: 'Uid', value: <code>{host.uid}</code> },
      ]}
    />
  );
}
