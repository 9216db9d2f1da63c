/** The metrics of the control plane: bounded, without a scan, and without hosts as labels. */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import * as api from '@rackwright/messages';
import {
  FailureType,
  HostState,
  RunKind,
  RunOutcome,
  RunSchema,
  StepState,
} from '@rackwright/messages';
import { expose } from '@rackwright/metrics';
import { expect, test } from 'vitest';
import { FleetRows, type HostRow } from '../fleet-view/index.ts';
import { createFigures } from './index.ts';
import { observe } from './observe.ts';

const plain: HostRow = {
  ...{ kind: 'host', hostId: 'h', revision: 1, uid: 'u', rack: 'racks/r', credential: '' },
  ...{ labels: {}, bmcAddress: '192.0.2.9', bootMacs: ['52:54:00:00:00:01'], serials: ['S1'] },
  ...{ goal: 1, retired: false, state: HostState.AVAILABLE, dirty: false, poweredOn: true },
  ...{ claim: '', image: '', runKind: RunKind.UNSPECIFIED, waiting: '', faults: [], failure: 0 },
  ...{ workflowRun: '', fences: [], held: false, deleting: false, createMs: 0, updateMs: 0 },
  ...{ acceptedByRule: '', traits: [] },
};

const counts = {
  ...{ connections: 3, waiting: 0, handshakes: 0, strangers: 0, refused: 0, strangersEnded: 0 },
  ...{ calls: 2, callsRefused: 5, refusedEnded: 0, incomingBytes: 0, incomingEnded: 0 },
};

function observed(rows: FleetRows) {
  const figures = createFigures();
  const fleetView = {
    get tally() {
      return rows.tally;
    },
    unreadableCount: 0,
  };
  const idle = { waiting: 0, underWay: 0 };
  const busy = { waiting: 7, underWay: 4 };
  observe(figures.registry, {
    eventSinks: { lagMs: () => 2_500 },
    fleetView,
    countedRacks: {
      racks: new Map([
        ['r', { certificateEndSeconds: 1_000, stops: ['frozen'], faults: [1] }] as const,
      ]),
    },
    registry: { sessionOf: () => undefined },
    queues: { reportSlots: idle, hellos: idle },
    hosts: { passes: busy },
    runs: { workflows: { passes: idle }, batches: { passes: idle } },
    pools: { passes: idle },
    servers: { operators: { counts }, agents: { counts } },
    certificateEnds: () => ({ authority: 3_000, server: 2_000 }),
    version: '0',
  });
  return { figures, text: () => expose(figures.registry.families(), 'prometheus') };
}

test('the objects that wait for a pass are counted by kind', () => {
  const text = observed(new FleetRows()).text();
  expect(text).toContain('rackwright_queue_length{queue="hosts"} 7');
  expect(text).toContain('rackwright_queue_active{queue="hosts"} 4');
  expect(text).toContain('rackwright_queue_length{queue="pools"} 0');
});

test('a scrape of 20,000 hosts looks at no row', () => {
  const rows = new FleetRows();
  for (let at = 0; at < 20_000; at += 1) {
    const faults = at % 100 === 0 ? ['bmcUnreachable'] : [];
    rows.put({ ...plain, hostId: `h${at}`, rack: `racks/r${at % 400}`, faults });
  }
  const { text } = observed(rows);
  rows.get = () => expect.fail('a row was looked at');
  rows.behind = () => expect.fail('the rows were gone through');
  expect(text()).toContain('rackwright_hosts{state="available"} 20000\n');
  expect(text()).toContain('rackwright_rack_hosts{rack="r7",state="available"} 50\n');
  expect(text()).toContain('rackwright_host_faults{fault="bmcUnreachable"} 200\n');
  expect(text().split('\n').length).toBeLessThan(1_200);
});

test('however many racks and faults there are, an answer stays bounded', () => {
  const rows = new FleetRows();
  for (let at = 0; at < 5_000; at += 1) {
    rows.put({ ...plain, hostId: `h${at}`, rack: `racks/r${at}`, faults: [`fault ${at}`] });
  }
  const { figures, text } = observed(rows);
  const lines = text().split('\n');
  expect(lines.filter((line) => line.startsWith('rackwright_rack_hosts'))).toHaveLength(1_001);
  expect(text()).toContain('rackwright_rack_hosts{rack="other",state="available"} 4000\n');
  expect(lines.filter((line) => line.startsWith('rackwright_host_faults'))).toHaveLength(65);
  expect(figures.registry.linesMax).toBeLessThan(20_000);
});

test('no label can name a host, a MAC, an address or a person', () => {
  const rows = new FleetRows();
  rows.put({ ...plain, hostId: 'the-host', claim: 'user:alice' });
  const { figures, text } = observed(rows);
  expect(text()).not.toMatch(/the-host|52:54:00|192\.0\.2\.9|alice|S1/);
  const labels = [...figures.registry.labels.values()].flatMap((spec) => Object.keys(spec));
  expect([...new Set(labels)].toSorted()).toEqual([
    ...['answer', 'call', 'certificate', 'code', 'failure', 'fault', 'kind', 'method', 'outcome'],
    ...['port', 'queue', 'rack', 'reason', 'result', 'state', 'step', 'target'],
  ]);
});

test('a run that has ended is counted with its steps, and hosts with their states', () => {
  const { figures, text } = observed(new FleetRows());
  const at = (seconds: number) => timestampFromMs(seconds * 1_000);
  figures.onRunEnded(
    create(RunSchema, {
      kind: RunKind.CLEAN,
      outcome: RunOutcome.FAILED,
      error: { type: FailureType.IO_ERROR },
      startTime: at(0),
      endTime: at(90),
      steps: [
        {
          name: 'power.bootRunner',
          state: StepState.SUCCEEDED,
          startTime: at(0),
          endTime: at(40),
        },
        {
          name: 'deploy.erase_devices',
          state: StepState.FAILED,
          startTime: at(40),
          endTime: at(90),
        },
        { name: 'deploy.verify_erased', state: StepState.PENDING },
      ],
    }),
    { name: 'hosts/h', uid: 'u' },
  );
  const failed = 'kind="clean",outcome="failed"';
  expect(text()).toContain(`rackwright_runs_total{${failed}} 1\n`);
  expect(text()).toContain('rackwright_run_failures_total{kind="clean",failure="ioError"} 1\n');
  expect(text()).toContain(`rackwright_run_duration_seconds_sum{${failed}} 90\n`);
  const boot = 'step="power.bootRunner",outcome="succeeded"';
  expect(text()).toContain(`rackwright_step_duration_seconds_sum{${boot}} 40\n`);
  expect(text()).not.toContain('verify_erased');
  expect(text()).toContain(
    'rackwright_certificate_expiry_timestamp_seconds{certificate="agents"} 1000',
  );
  expect(text()).toContain('rackwright_racks_stopped{reason="frozen"} 1\n');
  expect(text()).toContain('rackwright_rack_faults{fault="foreign-dhcp-server"} 1\n');
});

test('a fault that goes, a host that leaves and a run that ends are counted no more', () => {
  const rows = new FleetRows();
  const { text } = observed(rows);
  const busy = { runKind: RunKind.CLEAN, waiting: 'agent', faults: ['a', 'b'], held: true };
  rows.put({ ...plain, ...busy });
  expect(text()).toContain('rackwright_runs_waiting{reason="agent"} 1\n');
  rows.put({ ...plain, revision: 2 });
  expect(text()).not.toContain('reason="agent"');
  expect(text()).not.toContain('fault="a"');
  expect(text()).toContain('rackwright_hosts_held 0\n');
  rows.take('h', 3);
  expect(text()).not.toContain('rackwright_rack_hosts{');
});

test('calls are counted by method and code, with room for all methods of the API', () => {
  const { figures, text } = observed(new FleetRows());
  const served = Object.values({ ...api, ...api.agent }).flatMap((each) =>
    typeof each === 'object' && 'kind' in each && each.kind === 'service' ? [each] : [],
  );
  const methods = served.flatMap(({ name, methods }) =>
    methods.map((each) => `${name}.${each.name}`),
  );
  expect(methods).toContain('HostService.GetHost');
  for (const method of methods) figures.onCall(method, 'OK');
  figures.onCall('HostService.GetHost', 'NOT_FOUND');
  figures.onCall('HostService.GetHost', 'NOT_FOUND');
  expect(text()).toContain(
    'rackwright_api_calls_total{method="HostService.GetHost",code="OK"} 1\n',
  );
  expect(text()).toContain(
    'rackwright_api_calls_total{method="HostService.GetHost",code="NOT_FOUND"} 2\n',
  );
  expect(text()).not.toContain('method="other"');
});
