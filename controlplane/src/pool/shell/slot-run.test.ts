/** The request to the host of a slot, and when it is no longer sent. */
import { create } from '@bufbuild/protobuf';
import {
  asRunNumber,
  RolloutSlotState,
  type RolloutWindow,
  RunKind,
  RunSchema,
  type store as wire,
} from '@rackwright/messages';
import { seededRandom } from '@rackwright/sim';
import { openMemoryStore } from '@rackwright/store';
import { expect, test } from 'vitest';
import type { HostRequest } from '../../host/index.ts';
import { type Bench, bench } from '../../host/testing/bench.ts';
import {
  changes,
  hourMs,
  poolOf,
  provisioned,
  status,
  windowOf,
} from '../decide/call-off.fixture.ts';
import { notBegun } from '../decide/call-off.ts';
import { decidePool } from '../decide/decide.ts';
import { seenHost } from '../facts/seen.ts';
import { newsOfSlot, type PoolHosts } from './slot-run.ts';

/**
 * Requests the run of a new slot from the host. `change`: since then; `agoMs`: the age of the
 * pool's snapshot.
 */
async function begin(
  host: Bench,
  windows: readonly RolloutWindow[] = [],
  change: (record: wire.PoolRecord, host: Bench) => void = () => {},
  agoMs = 0,
) {
  const store = await openMemoryStore({ random: seededRandom(1) });
  const record = poolOf(host, ({ pool: { spec, status: told } = {} }) => {
    spec?.rollout?.windows.push(...windows);
    for (const slot of told?.slots ?? []) {
      Object.assign(slot, { state: RolloutSlotState.STARTING, run: 0n });
      slot.runsBefore = host.record.runCount;
    }
  });
  change(record, host);
  const found: HostRequest[] = [];
  const request: PoolHosts['request'] = async (_, wanted) => {
    found.push(wanted);
    const message = 'not asked of it here';
    return { kind: 'refused', code: 'failedPrecondition', reason: 'state', message };
  };
  const [slot] = record.pool?.status?.slots ?? [];
  if (slot === undefined) throw new Error('the pool has a slot');
  const deps = { store, hosts: { request }, clock: { nowMs: () => host.nowMs + agoMs } };
  const seen = seenHost(host.record);
  if (seen === undefined) throw new Error('the host is seen');
  const notNow = notBegun(record, new Map([[seen.uid, seen]]), host.nowMs).get(slot.number);
  const kept = { record: host.record, revision: 1 };
  const news = await newsOfSlot(deps, record, slot, kept, notNow);
  return { news, asked: found[0] };
}

test('a host rescued between its slot and the request for its run is not written', async () => {
  const host = provisioned();
  status(host).inRescue = true;
  const { news, asked } = await begin(host);
  expect(asked).toBeUndefined();
  expect(news).toEqual({
    kind: 'refused',
    message: 'it is in rescue; when all is saved: rackwright host retry h1',
  });
});

test.each(Object.entries(changes))(
  'a host with a slot that was not asked yet, over a crash, is not asked any more: %s',
  async (reason, change) => {
    const { news, asked } = await begin(provisioned(), [], change);
    expect([news, asked]).toEqual([{ kind: 'recalled' }, undefined]);
    // A host that is already out costs nothing.
    const broken = provisioned();
    status(broken).poweredOn = false;
    const mayHeal = !/left the pool|not wanted/.test(reason);
    expect((await begin(broken, [], change)).asked?.kind).toBe(mayHeal ? 'reimage' : undefined);
  },
);

/** Runs of the host since the slot: the requester and the kind of each. */
function addRuns(host: Bench, runs: readonly (readonly [string, RunKind])[]): void {
  for (const [requestedBy, kind] of runs) {
    host.record.runCount += 1n;
    const number = host.record.runCount;
    host.record.finishedRuns.push(
      create(RunSchema, { number: asRunNumber(number), requestedBy, kind }),
    );
  }
}

test('the run of a slot is the first of its kind that the pool has asked for since', async () => {
  const { REIMAGE, POWER } = RunKind;
  const host = provisioned();
  const { news, asked } = await begin(host, [], () => {
    addRuns(host, [
      ['user:ann', REIMAGE],
      ['pools/p', POWER],
      ['pools/p', REIMAGE],
      ['pools/p', REIMAGE],
    ]);
  });
  expect(news).toMatchObject({ kind: 'run', run: { number: host.record.runCount - 1n } });
  expect(asked).toBeUndefined();
});

test('a run that was requested before the slot was taken is not that of the slot', async () => {
  const host = provisioned();
  addRuns(host, [['pools/p', RunKind.REIMAGE]]);
  expect((await begin(host)).asked?.kind).toBe('reimage');
});

test('a recalled slot is free, and counts as no failure', () => {
  const host = provisioned();
  const record = poolOf(host, (each) => changes['it is paused']?.(each, host));
  const seen = seenHost(host.record);
  const news = new Map([[1n, { kind: 'recalled' } as const]]);
  const hosts = seen === undefined ? [] : [seen];
  const after = decidePool(record, { hosts, others: [], news, nowMs: host.nowMs });
  expect([after.record.pool?.status?.slots, after.record.failures]).toEqual([[], []]);
});

test('only the request for a host in service carries the end of the open window', async () => {
  const askedOf = async (windows: RolloutWindow[], poweredOn: boolean) => {
    const host = provisioned();
    status(host).poweredOn = poweredOn;
    const { asked } = await begin(host, windows);
    if (asked?.kind !== 'reimage') throw new Error('a reimage is asked for');
    return asked.notAfterMs === undefined ? undefined : asked.notAfterMs - host.nowMs;
  };
  const host = bench();
  const open = windowOf(host, 0);
  const sinceMinuteMs = host.nowMs % 60_000;
  expect(await askedOf([], true)).toBeUndefined();
  expect(await askedOf([open], true)).toBe(hourMs - sinceMinuteMs);
  expect(await askedOf([open], false)).toBeUndefined();
});

test('a host that is asked as its window shuts does not begin any more', async () => {
  const host = provisioned();
  const { asked } = await begin(host, [windowOf(host, 0)], () => {}, hourMs);
  expect(asked).toMatchObject({ kind: 'reimage', notAfterMs: host.nowMs + hourMs });
});
