/** What the sweeper never removes: anything of an existing host, whatever was reported of it. */
import { create, toBinary } from '@bufbuild/protobuf';
import { type HostId, store as wire } from '@rackwright/messages';
import { quietLog as log } from '@rackwright/platform/testing';
import { EventHeap, SimProcess, seededRandom } from '@rackwright/sim';
import { type Entry, openMemoryStore, type StateStore } from '@rackwright/store';
import { beforeEach, expect, test } from 'vitest';
import { FleetRows, type RowObserver, rowOf } from '../fleet-view/index.ts';
import type { Follower } from '../following/index.ts';
import { WorkflowSweeper } from './sweep.ts';

const quiet = () => undefined;
const sweepIntervalMs = 1_000;

let heap: EventHeap;
let store: StateStore;
let rows: FleetRows;
let tell: RowObserver;
let sweeper: WorkflowSweeper;
/** Reads of the store: "get hosts.h1". */
let reads: string[];

beforeEach(async () => {
  heap = new EventHeap();
  const { clock } = new SimProcess('p', heap, 0, () => false);
  const random = seededRandom(1);
  store = await openMemoryStore({ random });
  const [get, list] = [store.get.bind(store), store.list.bind(store)];
  reads = [];
  store.get = (key) => {
    reads.push(`get ${key}`);
    return get(key);
  };
  store.list = (prefix, page) => {
    reads.push(`list ${prefix}`);
    return list(prefix, page);
  };
  const following = {
    follow: async (prefix: string, joined: Follower) => {
      joined.listed(await store.list(prefix));
    },
  };
  rows = new FleetRows();
  const fleetView = {
    start: async () => {
      for (const entry of (await store.list('hosts')).entries) rows.put(rowOf(entry));
    },
    onChange: (observer: RowObserver) => {
      tell = observer;
    },
    row: (hostId: HostId) => rows.get(hostId),
    rows: () => rows.behind(),
    caughtUp: async () => undefined,
    idsBy: () => [],
  };
  const sweep = { sweepIntervalMs, timedOutShownMs: sweepIntervalMs };
  const workflows = { wake: quiet };
  sweeper = new WorkflowSweeper({
    ...{ store, following, fleetView, random, clock, log, workflows, sweep },
    retryDelayMs: 10,
  });
});

async function advance(ms: number): Promise<void> {
  const untilMs = heap.nowMs + ms;
  heap.after(ms, quiet);
  await heap.run(untilMs, () => false);
}

function host(uid: string): Uint8Array {
  return toBinary(wire.HostRecordSchema, create(wire.HostRecordSchema, { host: { uid } }));
}

async function present(key: string): Promise<Entry> {
  const entry = (await store.list(key)).entries[0];
  if (entry === undefined) throw new Error(`${key} is not there`);
  return entry;
}

async function putRun(uid: string): Promise<void> {
  const run = create(wire.FinishedRunRecordSchema);
  await store.put(`runs.${uid}.00000001`, toBinary(wire.FinishedRunRecordSchema, run), 'absent');
  await store.put(`stepOutputs.${uid}.00000001.0`, new Uint8Array(), 'absent');
}

async function keys(prefix: string): Promise<string[]> {
  return (await store.list(prefix)).entries.map(({ key }) => key);
}

test('a host that is there keeps its runs, whatever an older change says of it', async () => {
  await store.put('hosts.h1', host('uB'), 'absent');
  await putRun('uB');
  const row = rowOf(await present('hosts.h1'));
  await sweeper.start();
  await advance(0);
  tell(row, undefined);
  tell(undefined, row);
  await advance(sweepIntervalMs);
  // Its owner is unknown by now.
  tell(row, { kind: 'unreadable', hostId: 'h1', revision: row.revision + 1, reason: 'cut short' });
  await advance(5 * sweepIntervalMs);
  sweeper.stop();
  expect(await keys('runs')).toEqual(['runs.uB.00000001']);
  expect(await keys('stepOutputs')).toEqual(['stepOutputs.uB.00000001.0']);
});

test('the records of a removed host are deleted, also those written afterwards', async () => {
  await store.put('hosts.h1', host('uA'), 'absent');
  await putRun('uA');
  await sweeper.start();
  await advance(0);
  const { revision } = await present('hosts.h1');
  await store.delete('hosts.h1', revision);
  const row = rows.get('h1');
  rows.take('h1', revision + 9);
  tell(row, undefined);
  await advance(0);
  expect([...(await keys('runs')), ...(await keys('stepOutputs'))]).toEqual([]);
  await putRun('uA');
  await store.put('hosts.h1', host('uB'), 'absent');
  await putRun('uB');
  await advance(2 * sweepIntervalMs);
  sweeper.stop();
  expect(await keys('runs')).toEqual(['runs.uB.00000001']);
});

test('a run that cannot be decoded stops the sweep of no other host', async () => {
  await store.put('hosts.h1', host('uA'), 'absent');
  await store.put('runs.uA.00000001', Uint8Array.of(255, 255), 'absent');
  await putRun('uGone');
  await sweeper.start();
  await advance(0);
  sweeper.stop();
  expect(await keys('runs')).toEqual(['runs.uA.00000001']);
});

test('a host that cannot be decoded keeps all runs whose owner is unknown', async () => {
  await store.put('hosts.h1', Uint8Array.of(255, 255), 'absent');
  await store.put(
    'workflows.h2.t',
    toBinary(wire.WorkflowRecordSchema, create(wire.WorkflowRecordSchema)),
    'absent',
  );
  await putRun('uA');
  reads = [];
  await sweeper.start();
  await advance(0);
  sweeper.stop();
  expect(await keys('runs')).toEqual(['runs.uA.00000001']);
  expect(reads, 'the sweep goes on').toContain('get hosts.h2');
});

test.each([200, 2_000])(
  'a pass reads nothing of hosts that have not changed, with %d of them',
  async (hostsMany) => {
    for (let at = 0; at < hostsMany; at += 1) {
      await store.put(`hosts.h${at}`, host(`u${at}`), 'absent');
      await putRun(`u${at}`);
    }
    await sweeper.start();
    await advance(sweepIntervalMs / 2);
    reads = [];
    await advance(2 * sweepIntervalMs);
    expect(reads).toEqual([]);
    const row = rows.get('h7');
    rows.put(rowOf({ ...(await present('hosts.h7')), revision: (row?.revision ?? 0) + 1 }));
    tell(row, rows.get('h7'));
    reads = [];
    await advance(2 * sweepIntervalMs);
    sweeper.stop();
    expect(reads).toEqual(['list runs.u7', 'list workflows.h7']);
    expect(await keys('runs')).toHaveLength(hostsMany);
  },
);

test('records without an owner are found at the start, also behind a full page', async () => {
  for (let at = 0; at < 300; at += 1) {
    if (at !== 290) await store.put(`hosts.h${at}`, host(`u${at}`), 'absent');
    await putRun(`u${at}`);
  }
  await sweeper.start();
  await advance(sweepIntervalMs / 2);
  sweeper.stop();
  expect(await keys('runs')).toHaveLength(299);
  expect(await keys('stepOutputs.u290')).toEqual([]);
});
