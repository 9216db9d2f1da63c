/** Values that are read from the running control plane at each scrape. */
import {
  HostStateSchema,
  RackFaultTypeSchema,
  type RackId,
  type RackName,
  RunKindSchema,
} from '@rackwright/messages';
import { countProcess, type Registry, type Sample } from '@rackwright/metrics';
import type { ProcessFigures } from '@rackwright/platform';
import type { SessionQueues } from '../agents/index.ts';
import { type EventSinks, sinkTargets } from '../events/index.ts';
import type { FleetView } from '../fleet-view/index.ts';
import type { SessionRegistry } from '../host/index.ts';
import type { Passes } from '../loop/index.ts';
import { rackFaultWords, runKindWords, stateWords, wordOf } from './figures.ts';
import { type CountedRacks, rackStops } from './racks.ts';

/** Racks with series of their own; those beyond are counted together. */
const racksMax = { valuesMax: 1_000 };
/** Types of faults are a few dozen. */
const faultsMax = { valuesMax: 64 };
/** Values of `Waiting.reason`. */
const waitsMax = { valuesMax: 32 };

/** The things that a controller reconciles. */
interface ReconciledKind {
  readonly passes: Passes;
}

const controllers = ['hosts', 'workflows', 'batches', 'pools'] as const;

/** The parts of a control plane that are read. */
export interface ObservedParts {
  readonly fleetView: Pick<FleetView, 'tally' | 'unreadableCount'>;
  readonly countedRacks: Pick<CountedRacks, 'racks'>;
  readonly registry: Pick<SessionRegistry, 'sessionOf'>;
  readonly queues: SessionQueues;
  readonly hosts: ReconciledKind;
  readonly runs: { readonly workflows: ReconciledKind; readonly batches: ReconciledKind };
  readonly pools: ReconciledKind;
  readonly eventSinks: Pick<EventSinks, 'lagMs'>;
  readonly servers: Readonly<Record<Port, { readonly counts: PortCounts }>>;
  readonly certificateEnds: () => CertificateEnds;
  /** Unset: there are no process metrics. */
  readonly processFigures?: () => ProcessFigures;
  readonly version: string;
}

/** Declares the values that are read at each scrape. */
export function observe(figures: Registry, parts: ObservedParts): void {
  const { fleetView, countedRacks, registry, queues, servers, certificateEnds } = parts;
  countFleet(figures, fleetView);
  countAgents(figures, countedRacks, registry);
  countRackFaults(figures, countedRacks);
  countCertificates(figures, certificateEnds, countedRacks);
  const { hosts, runs, pools } = parts;
  countQueues(figures, queues, { hosts, ...runs, pools });
  countPorts(figures, servers);
  countLag(figures, parts.eventSinks);
  const { processFigures, version } = parts;
  if (processFigures !== undefined) countProcess(figures, processFigures, { version });
}

const one = (value: number) => [{ labels: {}, value }] as const;

/** How long events have waited for their sinks. */
function countLag(registry: Registry, sinks: Pick<EventSinks, 'lagMs'>): void {
  registry.gauge(
    'rackwright_event_lag_seconds',
    'How long this replica has had events that have not arrived at a sink; 0: none waits.',
    { target: sinkTargets },
    () => sinkTargets.map((target) => ({ labels: { target }, value: sinks.lagMs(target) / 1_000 })),
  );
}

/** Hosts by state, rack, fault and run. */
function countFleet(registry: Registry, view: Pick<FleetView, 'tally' | 'unreadableCount'>): void {
  registry.gauge('rackwright_hosts', 'Hosts by state.', { state: stateWords }, () =>
    Array.from(view.tally.byState, ([state, value]) => ({
      labels: { state: wordOf(HostStateSchema, state) },
      value,
    })),
  );
  const inRacks = { rack: racksMax, state: stateWords } as const;
  registry.gauge('rackwright_rack_hosts', 'Hosts by rack and state.', inRacks, function* () {
    for (const [name, { byState }] of view.tally.byRack) {
      const rack = rackIdOf(name);
      for (const [state, value] of byState) {
        yield { labels: { rack, state: wordOf(HostStateSchema, state) }, value };
      }
    }
  });
  registry.gauge(
    'rackwright_rack_faulty_hosts',
    'Hosts with any fault, by rack.',
    { rack: racksMax },
    () =>
      Array.from(view.tally.byRack, ([name, { faulty }]) => ({
        labels: { rack: rackIdOf(name) },
        value: faulty,
      })),
  );
  const faults = { fault: faultsMax };
  registry.gauge('rackwright_host_faults', 'Hosts that have a fault, by its type.', faults, () =>
    Array.from(view.tally.byFault, ([fault, value]) => ({ labels: { fault }, value })),
  );
  countWork(registry, view);
}

function countWork(registry: Registry, view: Pick<FleetView, 'tally' | 'unreadableCount'>): void {
  const kinds = { kind: runKindWords };
  registry.gauge('rackwright_runs_active', 'Runs that hold a host now, by kind.', kinds, () =>
    Array.from(view.tally.byRun, ([kind, value]) => ({
      labels: { kind: wordOf(RunKindSchema, kind) },
      value,
    })),
  );
  const reasons = { reason: waitsMax };
  registry.gauge('rackwright_runs_waiting', 'Runs that wait, by what they wait for.', reasons, () =>
    Array.from(view.tally.byWait, ([reason, value]) => ({ labels: { reason }, value })),
  );
  registry.gauge('rackwright_hosts_held', 'Hosts that a person or the system holds.', {}, () =>
    one(view.tally.held),
  );
  registry.gauge('rackwright_hosts_unreadable', 'Hosts whose record cannot be read.', {}, () =>
    one(view.unreadableCount),
  );
}

/** Agents, work that waits for their racks, and when their certificates expire. */
function countAgents(
  registry: Registry,
  racks: Pick<CountedRacks, 'racks'>,
  sessions: Pick<SessionRegistry, 'sessionOf'>,
): void {
  const byRack = { rack: racksMax };
  const isHere = (rack: string): boolean => sessions.sessionOf(rack) !== undefined;
  registry.gauge(
    'rackwright_agent_connected',
    'Whether the agent of a rack is connected to this replica: 1 or 0.',
    byRack,
    () =>
      Array.from(racks.racks.keys(), (rack) => ({ labels: { rack }, value: Number(isHere(rack)) })),
  );
  registry.gauge('rackwright_agents_connected', 'Agents connected to this replica.', {}, () =>
    one([...racks.racks.keys()].filter(isHere).length),
  );
  registry.gauge('rackwright_racks', 'Racks whose agent has joined.', {}, () =>
    one(racks.racks.size),
  );
  registry.gauge(
    'rackwright_racks_stopped',
    'Racks whose work waits for a person, by why.',
    { reason: rackStops },
    () =>
      [...racks.racks.values()].flatMap(({ stops }) =>
        stops.map((reason) => ({ labels: { reason }, value: 1 })),
      ),
  );
}

/** Faults of provisioning networks: a fault that affects two hosts counts once. */
function countRackFaults(registry: Registry, racks: Pick<CountedRacks, 'racks'>): void {
  registry.gauge(
    'rackwright_rack_faults',
    'Racks with a fault of their provisioning network, by its type.',
    { fault: rackFaultWords },
    () =>
      [...racks.racks.values()].flatMap(({ faults }) =>
        faults.map((fault) => ({
          labels: { fault: wordOf(RackFaultTypeSchema, fault) },
          value: 1,
        })),
      ),
  );
}

/** When the certificates expire that this control plane shows or trusts, seconds since 1970. */
export interface CertificateEnds {
  readonly authority: number;
  readonly server: number;
}

/** The expiry of each certificate, seconds since 1970; of agents' certificates the earliest. */
function countCertificates(
  registry: Registry,
  ends: () => CertificateEnds,
  racks: Pick<CountedRacks, 'racks'>,
): void {
  registry.gauge(
    'rackwright_certificate_expiry_timestamp_seconds',
    'When a certificate ends, seconds since 1970; of the agents’ the one that ends first.',
    { certificate: ['authority', 'server', 'agents'] },
    () => {
      const { authority, server } = ends();
      let agents = Number.POSITIVE_INFINITY;
      for (const { certificateEndSeconds: end = agents } of racks.racks.values()) {
        agents = Math.min(agents, end);
      }
      return [
        { labels: { certificate: 'authority' as const }, value: authority },
        { labels: { certificate: 'server' as const }, value: server },
        { labels: { certificate: 'agents' as const }, value: agents },
      ];
    },
  );
}

/** The queues in this process: of agents' sessions, and of the controllers' passes. */
function countQueues(
  registry: Registry,
  { reportSlots, hellos }: SessionQueues,
  led: Readonly<Record<(typeof controllers)[number], ReconciledKind>>,
): void {
  const queue = ['reports', 'hellos', ...controllers];
  const sizes = (of: (queue: Passes) => number) => [
    { labels: { queue: 'reports' }, value: of(reportSlots) },
    { labels: { queue: 'hellos' }, value: of(hellos) },
    ...controllers.map((each) => ({ labels: { queue: each }, value: of(led[each].passes) })),
  ];
  registry.gauge('rackwright_queue_length', 'What waits in a queue, by queue.', { queue }, () =>
    sizes(({ waiting }) => waiting),
  );
  registry.gauge('rackwright_queue_active', 'What is under way, by queue.', { queue }, () =>
    sizes(({ underWay }) => underWay),
  );
}

/** The connections and calls of a port, and those refused for lack of room. */
export interface PortCounts {
  readonly connections: number;
  readonly calls: number;
  readonly callsRefused: number;
  readonly incomingEnded: number;
}

const ports = ['operators', 'agents'] as const;
type Port = (typeof ports)[number];

/** Connections and calls of both ports. */
function countPorts(
  registry: Registry,
  servers: Readonly<Record<Port, { readonly counts: PortCounts }>>,
): void {
  const spec = { port: ports };
  const each = (read: (counts: PortCounts) => number) => (): Sample<typeof spec>[] =>
    ports.map((port) => ({ labels: { port }, value: read(servers[port].counts) }));
  registry.gauge(
    'rackwright_port_connections',
    'Open connections.',
    spec,
    each(({ connections }) => connections),
  );
  registry.gauge(
    'rackwright_port_calls',
    'Calls under way, streams among them.',
    spec,
    each(({ calls }) => calls),
  );
  registry.counts(
    'rackwright_port_calls_refused_total',
    'Calls refused for want of room.',
    spec,
    each(({ callsRefused }) => callsRefused),
  );
  registry.counts(
    'rackwright_port_requests_ended_total',
    'Requests ended before they were whole, for want of room.',
    spec,
    each(({ incomingEnded }) => incomingEnded),
  );
}

/** "r1" from "racks/r1". */
function rackIdOf(name: RackName): RackId {
  return name.replace(/^racks\//, '');
}
