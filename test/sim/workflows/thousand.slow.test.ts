/**
 * A batch of as many hosts as one may have, through the production API, loops and engine in
 * simulated time: what it costs is counted, and printed for people.
 */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { reservedValues } from '@rackwright/controlplane';
import {
  HostGoal,
  HostSpecSchema,
  HostState,
  WorkflowRunState,
  store as wire,
} from '@rackwright/messages';
import { EventHeap, SimProcess, seededRandom } from '@rackwright/sim';
import { openMemoryStore } from '@rackwright/store';
import { expect, test } from 'vitest';
import type { StoredWrite } from '../acknowledged.ts';
import { makeChance } from '../chance.ts';
import { ControlPlaneReplica } from '../control-plane.ts';
import { putCredential, putFleet, putRack } from '../furnish.ts';
import { counterOf } from '../operators/counter.ts';
import { poolWorld } from '../pools/world.ts';
import { StoreBox } from '../store-box.ts';
import type { WorldView } from '../view.ts';
import { hooksUrl, TemplateBook } from './recipes.ts';

const hostsMax = 1_000;
const maxParallel = 50;
const noLog: ReturnType<WorldView['log']> = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => noLog,
};

const source = `
steps:
  - { name: tell, webhook: { url: "${hooksUrl}t/tell", body: "mark t 1 tell" } }
`;

/** A view in which nothing goes wrong. */
function calmView(heap: EventHeap, storage: StoreBox): WorldView {
  const random = seededRandom(1);
  return {
    ...{ heap, seed: 1, random, chance: makeChance(random, () => false), planted: undefined },
    ...{
      workflows: true,
      batches: true,
      discovery: false,
      pools: false,
      ...poolWorld(0, false),
      book: new TemplateBook(),
    },
    machines: new Map(),
    strangers: () => [],
    discoveryBoot: () => undefined,
    storeDisk: () => storage.disk,
    replicas: () => [],
    agents: () => [],
    faulty: () => false,
    trace: () => undefined,
    count: () => undefined,
    log: () => noLog,
    found: (rule, text) => expect.fail(`${rule}: ${text}`),
    makeProcess: (name) => new SimProcess(name, heap, Date.UTC(2026, 0, 1), () => false),
  };
}

function hex(byte: number): string {
  return byte.toString(16).padStart(2, '0');
}

async function putHosts(storage: StoreBox, random: WorldView['random']): Promise<void> {
  const store = await openMemoryStore({ random, disk: storage.disk });
  await putRack(store);
  await putFleet(store);
  await putCredential(store, random);
  for (let n = 1; n <= hostsMax; n++) {
    const [holder, holderUid] = [`hosts/h${n}`, `u${n}`];
    const bmc = { address: `10.1.${n >> 8}.${n & 255}`, credential: 'credentials/c1' };
    const mac = `52:54:00:01:${hex(n >> 8)}:${hex(n & 255)}`;
    const given = { rack: 'racks/r1', goal: HostGoal.MANAGEABLE, bmc, bootMacs: [mac] };
    const spec = create(HostSpecSchema, given);
    const status = { state: HostState.MANAGEABLE, dirty: true, useEpoch: 1n };
    const host = { name: holder, uid: holderUid, spec, status };
    const record = create(wire.HostRecordSchema, { host, verifiedBmc: bmc });
    const held = create(wire.ReservationSchema, { holder, holderUid });
    const reservation = toBinary(wire.ReservationSchema, held);
    for (const { key } of reservedValues(spec)) await store.put(key, reservation, 'absent');
    await store.put(`hosts.h${n}`, toBinary(wire.HostRecordSchema, record), 'absent');
  }
}

function hostsWithSlot(storage: StoreBox, key: string): number {
  const change = storage.disk.changesOf(key).at(-1);
  if (change?.kind !== 'put') return 0;
  const { workflowBatch } = fromBinary(wire.WorkflowBatchRecordSchema, change.value);
  const hosts = workflowBatch?.status?.hosts ?? [];
  return hosts.filter(({ state }) => state === WorkflowRunState.RUNNING).length;
}

/** A control plane with its hosts, and what it writes from now on. */
async function startRack() {
  const heap = new EventHeap();
  const storage = new StoreBox();
  const view = calmView(heap, storage);
  await putHosts(storage, view.random);
  const writes = new Map<string, number>();
  const counted = { writes, atOnce: 0 };
  const acknowledged = ({ key }: StoredWrite) => {
    const [prefix = ''] = key.split('.');
    writes.set(prefix, (writes.get(prefix) ?? 0) + 1);
    if (prefix === 'workflowBatches') {
      counted.atOnce = Math.max(counted.atOnce, hostsWithSlot(storage, key));
    }
  };
  const { nowMs: _, ...reach } = { awayUntilMs: 0, count: () => undefined, nowMs: 0 };
  const replica = new ControlPlaneReplica(view, {
    name: 'cp1',
    storage,
    reach: { ...reach, nowMs: () => heap.nowMs, crashesAfter: [], acknowledged },
    onLease: () => undefined,
    onApplied: () => undefined,
    onCalled: () => undefined,
  });
  replica.start();
  while (replica.live === undefined) await heap.run(heap.nowMs + 5, () => false);
  const { live } = replica;
  const { templates, batches } = counterOf(view, live);

  /** Lets the simulated world go on until the call is answered. */
  const answered = async <T>(call: Promise<T>): Promise<T> => {
    let isOver = false;
    const settled = call.finally(() => {
      isOver = true;
    });
    while (!isOver) await heap.run(heap.nowMs + 5, () => isOver);
    return settled;
  };
  return { heap, counted, templates, batches, answered };
}

test('a batch of a thousand hosts keeps to its limit, and reports a line for each', async () => {
  const { heap, counted, templates, batches, answered } = await startRack();
  const { writes } = counted;
  await answered(templates.createTemplate({ templateId: 't', template: { source } }));
  const before = heap.nowMs;
  const cpuBefore = process.cpuUsage();
  writes.clear();
  const spec = {
    template: 'templates/t',
    hosts: { rack: 'racks/r1' },
    maxParallel,
    maxFailures: 0,
  };
  const request = { workflowBatchId: 'all', workflowBatch: { spec } };
  await answered(batches.createWorkflowBatch(request));
  let last = await answered(batches.getWorkflowBatch({ name: 'workflowBatches/all' }));
  for (let round = 0; round < 10_000 && last.status?.endTime === undefined; round++) {
    await heap.run(heap.nowMs + 20, () => false);
    last = await answered(batches.getWorkflowBatch({ name: 'workflowBatches/all' }));
  }
  const { user, system } = process.cpuUsage(cpuBefore);
  const counts = [...writes].map(([prefix, count]) => `${prefix} ${count}`).join(', ');
  console.log(
    `a batch of ${hostsMax} hosts, ${maxParallel} at once: ${(heap.nowMs - before) / 1_000} ` +
      `simulated s, ${((user + system) / 1e6).toFixed(1)} s of CPU; writes: ${counts}`,
  );

  expect(last.status).toMatchObject({ pending: 0, running: 0, failed: 0, cancelled: 0 });
  expect(last.status?.succeeded).toBe(hostsMax);
  expect(counted.atOnce).toBe(maxParallel);
  const lines = last.status?.hosts ?? [];
  expect(new Set(lines.map(({ host }) => host)).size).toBe(hostsMax);
  const own = lines.filter(({ host, run }) => run === `${host}/workflows/t/runs/1`);
  expect(own).toHaveLength(hostsMax);
  expect(lines.every(({ state }) => state === WorkflowRunState.SUCCEEDED)).toBe(true);
  // A turn costs a bounded number of writes, however many hosts there are.
  expect((writes.get('hosts') ?? 0) / hostsMax).toBeLessThanOrEqual(6);
  expect((writes.get('workflows') ?? 0) / hostsMax).toBeLessThanOrEqual(4);
  expect(writes.get('workflowBatches') ?? 0).toBeLessThanOrEqual(3 * hostsMax);
});
