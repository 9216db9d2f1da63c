/** A pool and a host of its own whose image is being fetched, by the host's real record. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  AbortSchema,
  agent,
  DeletionMode,
  HostGoal,
  HostState,
  PoolAmountSchema,
  RolloutSlotState,
  type RolloutWindow,
  RolloutWindowSchema,
  RunKind,
  RunOutcome,
  RunPhase,
  store as wire,
} from '@rackwright/api';
import { seededRandom } from '@rackwright/sim';
import { openMemoryStore } from '@rackwright/store';
import { expect, test } from 'vitest';
import type { HostRequest } from '../host/index.ts';
import {
  type Bench,
  bench,
  done,
  driveToErase,
  erased,
  inspected,
  verified,
  virtioDisk,
} from '../host/testing/bench.ts';
import { askForHosts } from './asking.ts';
import { digest, image } from './rollout.fixture.ts';
import { seenHost } from './seen.ts';
import { newsOfSlot, type PoolHosts } from './slot-run.ts';
import { stepPool } from './step.ts';

const pool = 'pools/p';
const hourMs = 3_600_000;

function status({ record }: Bench) {
  const found = record.host?.status;
  if (found === undefined) throw new Error('a host has a status');
  return found;
}

const runOf = (host: Bench) => status(host).run;

function stepAt(host: Bench): string {
  const run = runOf(host);
  return run?.phase === RunPhase.ENDED ? '' : (run?.steps[run.currentStep]?.name ?? '');
}

/** Runs image A, for the pool. */
function provisioned(): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const runs = { state: HostState.PROVISIONED, image: image('A'), poweredOn: true };
  Object.assign(status(host), runs);
  host.apply({ kind: 'request', request: { kind: 'claim', reason: 'its' }, by: { actor: pool } });
  return host;
}

/** Its reimage to B has begun. */
function fetching(notAfterMs?: number): Bench {
  const host = provisioned();
  const ends = notAfterMs === undefined ? {} : { notAfterMs };
  const request = { kind: 'reimage', image: image('B'), ...ends } as const;
  host.apply({ kind: 'request', request, by: { actor: pool } });
  expect(stepAt(host)).toBe('deploy.fetch_image');
  return host;
}

/** Its provision with B has begun. */
function provisioning(): Bench {
  const host = bench();
  driveToErase(host);
  const evidence = host.evidence([erased(virtioDisk)]);
  host.report({ case: 'complete', value: create(agent.CompleteSchema, { evidence }) });
  host.report(inspected());
  host.report(done);
  expect(status(host).state).toBe(HostState.AVAILABLE);
  host.apply({ kind: 'request', request: { kind: 'claim', reason: 'its' }, by: { actor: pool } });
  const request = { kind: 'provision', image: image('B') } as const;
  host.apply({ kind: 'request', request, by: { actor: pool } });
  expect(stepAt(host)).toBe('deploy.fetch_image');
  return host;
}

/** Up to the step that writes the image. */
function write(host: Bench): void {
  for (let at = stepAt(host); at !== 'deploy.write_image'; at = stepAt(host)) {
    if (at === 'runner.await') host.runnerReady();
    else host.report(at === 'runner.inspect' ? inspected() : done);
  }
}

/** The pool of that host, which has a slot. */
function poolOf(host: Bench, change: (record: wire.PoolRecord) => void = () => {}) {
  const { name = '', uid = '' } = host.record.host ?? {};
  const wanted = { image: image('B'), reference: image('B'), digest: digest('B') };
  const run = runOf(host)?.number ?? 0n;
  const isFirst = runOf(host)?.kind === RunKind.PROVISION;
  const kind = isFirst ? RunKind.PROVISION : RunKind.REIMAGE;
  const slot = {
    ...{ number: 1n, host: name, hostUid: uid, image: image('B'), run },
    ...{ kind, state: RolloutSlotState.RUNNING },
    runsBefore: run - 1n,
    takeTime: timestampFromMs(host.nowMs),
  };
  const record = create(wire.PoolRecordSchema, {
    pool: {
      ...{ name: pool, uid: 'p' },
      spec: { image: image('B'), hosts: { names: [name] }, rollout: {} },
      status: { target: wanted, slots: [slot] },
    },
    members: [{ host: name, hostUid: uid }],
    slotCount: 1n,
  });
  change(record);
  return record;
}

/** One look of the pool, and what it asks of its host then. */
async function look(host: Bench, kept: wire.PoolRecord, nowMs = host.nowMs) {
  const seen = seenHost(host.record);
  const run = runOf(host);
  if (seen === undefined || run === undefined) throw new Error('the host is seen, with a run');
  const news = new Map([[1n, { kind: 'run', run } as const]]);
  const step = stepPool(kept, { hosts: [seen], others: [], news, nowMs });
  const asked: string[] = [];
  const request: PoolHosts['request'] = async (_, wanted, by) => {
    asked.push(wanted.kind);
    host.apply({ kind: 'request', request: wanted, by });
    return { kind: 'accepted', record: host.record, revision: 1 };
  };
  const asking = { hosts: { request }, clock: { nowMs: () => nowMs }, log: { debug: () => {} } };
  await askForHosts(asking, step.record, { hosts: [seen], kept: new Map() }, step.callOffs);
  return { record: step.record, asked, nextLookMs: step.nextLookMs };
}

/** Each reason, and what it is called. */
const changes: Readonly<Record<string, (record: wire.PoolRecord, host: Bench) => void>> = {
  'it is paused': ({ pool: changed }) => {
    if (changed?.spec?.rollout !== undefined) changed.spec.rollout.paused = true;
  },
  'no host may be unavailable': ({ pool: changed }) => {
    const { rollout } = changed?.spec ?? {};
    const amount = { case: 'count', value: 0 } as const;
    if (rollout !== undefined) rollout.maxUnavailable = create(PoolAmountSchema, { amount });
  },
  'user:ann asked for its deletion': (record, host) => {
    const at = timestampFromMs(host.nowMs);
    record.deletion = create(AbortSchema, { by: 'user:ann', at });
  },
  'its image is not wanted any more': ({ pool: changed }) => {
    const wanted = { image: image('C'), reference: image('C'), digest: digest('C') };
    if (changed?.status?.target !== undefined) Object.assign(changed.status.target, wanted);
    if (changed?.spec !== undefined) changed.spec.image = image('C');
  },
  'the window has shut': ({ pool: changed }, host) => {
    changed?.spec?.rollout?.windows.push(windowOf(host, -2));
  },
  'it has left the pool': ({ pool: changed }) => {
    if (changed?.spec?.hosts !== undefined) changed.spec.hosts.names = ['hosts/other'];
  },
};

/** Of an hour, that begins so many hours from now. */
function windowOf({ nowMs }: Bench, inHours: number) {
  const start = new Date(nowMs + inHours * hourMs);
  const cron = `${start.getUTCMinutes()} ${start.getUTCHours()} * * *`;
  return create(RolloutWindowSchema, { cron, duration: durationFromMs(hourMs) });
}

test.each(Object.entries(changes))(
  'a host whose image is still fetched is not taken out any more: %s',
  async (reason, change) => {
    const host = fetching();
    const { record, asked } = await look(
      host,
      poolOf(host, (each) => change(each, host)),
    );
    expect(asked).toEqual(['abort']);
    expect(runOf(host)?.abort).toMatchObject({ by: pool, reason });
    // Once is enough, and the slot stays until the run has ended.
    const again = await look(host, record);
    expect(again.asked).toEqual([]);
    expect(again.record.pool?.status?.slots).toHaveLength(1);
    host.report(done);
    expect(runOf(host)).toMatchObject({ phase: RunPhase.ENDED, outcome: RunOutcome.CANCELLED });
    expect(status(host)).toMatchObject({ image: image('A'), poweredOn: true, faults: [] });
    expect(host.record.pendingPower).toBeUndefined();
    const after = await look(host, again.record);
    expect(after.record.failures).toEqual([]);
    expect(after.record.pool?.status?.slots.filter(({ number }) => number === 1n)).toEqual([]);
  },
);

const { 'the window has shut': shut, ...others } = changes;

test.each(Object.entries(others))(
  'garm-R5, garm-R31: nor is a host written that is available: %s',
  async (reason, change) => {
    const host = provisioning();
    const { record, asked } = await look(
      host,
      poolOf(host, (each) => change(each, host)),
    );
    expect([asked, runOf(host)?.abort?.reason]).toEqual([['abort'], reason]);
    host.report(done);
    expect(runOf(host)).toMatchObject({ phase: RunPhase.ENDED, outcome: RunOutcome.CANCELLED });
    expect(status(host)).toMatchObject({ state: HostState.AVAILABLE, image: '', faults: [] });
    const after = await look(host, record);
    expect(after.record.failures).toEqual([]);
    expect(after.record.pool?.status?.slots.filter(({ number }) => number === 1n)).toEqual([]);
  },
);

test('windows are nothing to who is available, nor what holds a pool to who is out', async () => {
  const host = provisioning();
  const late = poolOf(host, (each) => shut?.(each, host));
  expect((await look(host, late)).asked).toEqual([]);
  const asked: Record<string, readonly string[]> = {};
  for (const [reason, change] of Object.entries(changes)) {
    const broken = fetching();
    status(broken).poweredOn = false;
    const record = poolOf(broken, (each) => change(each, broken));
    asked[reason] = (await look(broken, record)).asked;
  }
  expect(asked).toEqual({
    ...Object.fromEntries(Object.keys(changes).map((reason) => [reason, []])),
    'its image is not wanted any more': ['abort'],
    'it has left the pool': ['abort'],
  });
});

test('whose pool may go on is left to go on, and so is who is being switched off', async () => {
  const host = fetching();
  expect((await look(host, poolOf(host))).asked).toEqual([]);
  host.report(done);
  expect(stepAt(host)).toBe('power.off');
  const paused = poolOf(host, (record) => changes['it is paused']?.(record, host));
  expect((await look(host, paused)).asked).toEqual([]);
});

test('a person’s abort of a fetch still is a try that failed', async () => {
  const host = fetching();
  host.request({ kind: 'abort', reason: 'not now' });
  host.report(done);
  const { record } = await look(host, poolOf(host));
  expect(record.failures).toMatchObject([{ attempts: 1, counted: false }]);
});

test('an image that comes after its window takes nobody out, and is no failure', async () => {
  const host = fetching(bench().nowMs + hourMs);
  const record = poolOf(host);
  host.nowMs += hourMs;
  host.report(done);
  expect(runOf(host)).toMatchObject({ phase: RunPhase.ENDED, outcome: RunOutcome.CANCELLED });
  expect(runOf(host)?.steps[1]).toMatchObject({ name: 'power.off', attempt: 0 });
  expect(runOf(host)?.error?.message).toContain('could not be taken out before');
  expect(status(host)).toMatchObject({ image: image('A'), faults: [] });
  expect(host.record.pendingPower).toBeUndefined();
  expect((await look(host, record)).record.failures).toEqual([]);
});

test('an image that comes within its window takes the host out, however long that lasts', () => {
  const host = fetching(bench().nowMs + hourMs);
  host.nowMs += hourMs - 1;
  host.report(done);
  expect(stepAt(host)).toBe('power.off');
  host.nowMs += hourMs;
  write(host);
});

const frozen = { of: 'racks/r1', by: 'user:ann', reason: 'a drill', at: timestampFromMs(0) };
/** What keeps the order to switch a host off from leaving. */
const waits = { agent: { session: undefined }, freeze: { freeze: frozen } };

test.each(Object.entries(waits))(
  'who has waited for the end of its %s past that of its window stays in service',
  (reason, wait) => {
    const host = fetching(bench().nowMs + hourMs);
    const { context } = host;
    host.context = { ...context, ...wait };
    host.report(done);
    expect(runOf(host)?.waiting?.reason).toBe(reason);
    host.nowMs += hourMs;
    host.context = context;
    host.apply({ kind: 'tick' });
    expect(runOf(host)).toMatchObject({ phase: RunPhase.ENDED, outcome: RunOutcome.CANCELLED });
    expect(host.record.pendingPower).toBeUndefined();
  },
);

test('who is called off while a freeze keeps it in service is not switched at all', async () => {
  const host = fetching();
  host.context = { ...host.context, freeze: frozen };
  host.report(done);
  expect(stepAt(host)).toBe('power.off');
  const paused = poolOf(host, (record) => changes['it is paused']?.(record, host));
  expect((await look(host, paused)).asked).toEqual(['abort']);
  expect(runOf(host)).toMatchObject({ phase: RunPhase.ENDED, outcome: RunOutcome.CANCELLED });
  expect(runOf(host)?.steps.map(({ attempt }) => attempt)).toEqual(
    runOf(host)?.steps.map((_, index) => (index === 0 ? 1 : 0)),
  );
  expect(host.record.pendingPower).toBeUndefined();
});

const burnt = { kind: 'delete', mode: DeletionMode.FORCE, reason: 'burnt' } as const;

/** Its agent goes for good while it is written, and a person aborts the run. */
function orphaned(): Bench {
  const host = fetching();
  write(host);
  expect(triedToDelete(host)).toContain('claimed by pools/p');
  host.context = { ...host.context, session: undefined, agentSeenMs: host.nowMs };
  host.nowMs += 24 * hourMs;
  host.apply({ kind: 'tick' });
  host.request({ kind: 'abort', reason: 'its rack has burnt' });
  host.nowMs += hourMs;
  host.apply({ kind: 'tick' });
  expect(runOf(host)?.phase).not.toBe(RunPhase.ENDED);
  return host;
}

function triedToDelete(host: Bench): string {
  const by = { actor: 'user:ann' };
  const outcome = host.try({ kind: 'request', request: burnt, by });
  return outcome.kind === 'refused' ? outcome.refusal.message : '';
}

test('a host whose agent is gone in mid-run goes by force, and its pool after it', async () => {
  const host = orphaned();
  const kept = poolOf(host, (each) => changes['user:ann asked for its deletion']?.(each, host));
  const { record } = await look(host, kept);
  expect(record.members).toHaveLength(1);
  host.request(burnt);
  for (let calls = 0; !host.removed && calls < 3; calls++) {
    host.nowMs += 60_000;
    host.apply({ kind: 'tick' });
  }
  expect(host.removed).toBe(true);
  const after = stepPool(record, { hosts: [], others: [], news: new Map(), nowMs: host.nowMs });
  expect(after.record).toMatchObject({ members: [], pool: { status: { slots: [] } } });
});

test('a claim that a person ends is not taken again of who stays for its run alone', async () => {
  const host = orphaned();
  host.request({ kind: 'unclaim', reason: 'the pool cannot' });
  expect((await look(host, poolOf(host))).asked).toEqual(['claim']);
  host.request({ kind: 'unclaim', reason: 'the pool cannot' });
  const left = poolOf(host, (each) => changes['it has left the pool']?.(each, host));
  const deleted = poolOf(host, (each) => changes['user:ann asked for its deletion']?.(each, host));
  for (const kept of [left, deleted]) {
    const { record, asked } = await look(host, kept);
    expect(record.members).toHaveLength(1);
    expect(asked).toEqual([]);
  }
});

/** Asks the host for the run of a slot that was just taken. */
async function begin(host: Bench, windows: readonly RolloutWindow[] = []) {
  const store = await openMemoryStore({ random: seededRandom(1) });
  const record = poolOf(host, ({ pool: { spec, status: told } = {} }) => {
    spec?.rollout?.windows.push(...windows);
    for (const slot of told?.slots ?? []) {
      Object.assign(slot, { state: RolloutSlotState.STARTING, run: 0n });
      slot.runsBefore = host.record.runCount;
    }
  });
  const found: HostRequest[] = [];
  const request: PoolHosts['request'] = async (_, wanted) => {
    found.push(wanted);
    return { kind: 'refused', code: 'failedPrecondition', message: 'not asked of it here' };
  };
  const [slot] = record.pool?.status?.slots ?? [];
  if (slot === undefined) throw new Error('the pool has a slot');
  const deps = { store, hosts: { request }, clock: { nowMs: () => host.nowMs } };
  const news = await newsOfSlot(deps, record, slot, { record: host.record, revision: 1 });
  return { news, asked: found[0] };
}

test('who is rescued between its slot and the request for its run is not written', async () => {
  const host = provisioned();
  status(host).inRescue = true;
  const { news, asked } = await begin(host);
  expect(asked).toBeUndefined();
  expect(news).toEqual({
    kind: 'refused',
    message: 'it is in rescue; when all is saved: rackwright host retry h1',
  });
});

test('the request carries the end of the open window, of a host in service alone', async () => {
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
  expect(await askedOf([windowOf(host, -2)], true)).toBe(0);
  expect(await askedOf([open], false)).toBeUndefined();
});
