/** A pool and one of its hosts whose image is being fetched, with the host's real record. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  AbortSchema,
  agent,
  HostGoal,
  HostState,
  noRun,
  PoolAmountSchema,
  RolloutSlotState,
  RolloutWindowSchema,
  RunKind,
  RunPhase,
  readActor,
  store as wire,
} from '@rackwright/messages';
import { expect } from 'vitest';
import type { Brake } from '../../host/index.ts';
import {
  type Bench,
  bench,
  done,
  driveToErase,
  erased,
  inspected,
  verified,
  virtioDisk,
} from '../../host/testing/bench.ts';
import { type SeenHost, seenHost } from '../facts/seen.ts';
import { sendHostRequests } from '../shell/asking.ts';
import type { PoolHosts } from '../shell/slot-run.ts';
import { decidePool } from './decide.ts';
import { digest, image } from './rollout.fixture.ts';

export const pool = readActor('pools/p');
export const hourMs = 3_600_000;

export function status({ record }: Bench) {
  const found = record.host?.status;
  if (found === undefined) throw new Error('a host has a status');
  return found;
}

export const runOf = (host: Bench) => status(host).run;

export function stepAt(host: Bench): string {
  const run = runOf(host);
  return run?.phase === RunPhase.ENDED ? '' : (run?.steps[run.currentStep]?.name ?? '');
}

/** Runs image A, for the pool. */
export function provisioned(): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const runs = { state: HostState.PROVISIONED, image: image('A'), poweredOn: true };
  Object.assign(status(host), runs);
  host.apply({ kind: 'request', request: { kind: 'claim', reason: 'its' }, by: { actor: pool } });
  return host;
}

/** Its reimage to B has begun. */
export function fetching(notAfterMs?: number): Bench {
  const host = provisioned();
  const ends = notAfterMs === undefined ? {} : { notAfterMs };
  const request = { kind: 'reimage', image: image('B'), ...ends } as const;
  host.apply({ kind: 'request', request, by: { actor: pool } });
  expect(stepAt(host)).toBe('deploy.fetch_image');
  return host;
}

/** Its provision with B has begun. */
export function provisioning(): Bench {
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
export function write(host: Bench): void {
  for (let at = stepAt(host); at !== 'deploy.write_image'; at = stepAt(host)) {
    if (at === 'runner.await') host.runnerReady();
    else host.report(at === 'runner.inspect' ? inspected() : done);
  }
}

/** The pool of that host, which has a slot. */
export function poolOf(host: Bench, change: (record: wire.PoolRecord) => void = () => {}) {
  const { name = '', uid = '' } = host.record.host ?? {};
  const wanted = { image: image('B'), reference: image('B'), digest: digest('B') };
  const run = runOf(host)?.number ?? noRun;
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

/** One pass over the pool, and the resulting requests to its host. */
export async function reconcile(
  host: Bench,
  kept: wire.PoolRecord,
  nowMs = host.nowMs,
  more: readonly SeenHost[] = [],
  brake?: Brake,
) {
  const seen = seenHost(host.record, brake);
  const run = runOf(host);
  if (seen === undefined || run === undefined) throw new Error('the host is seen, with a run');
  const news = new Map([[1n, { kind: 'run', run } as const]]);
  const step = decidePool(kept, { hosts: [seen, ...more], others: [], news, nowMs });
  const requests: string[] = [];
  const request: PoolHosts['request'] = async (_, wanted, by) => {
    requests.push(wanted.kind);
    host.apply({ kind: 'request', request: wanted, by });
    return { kind: 'accepted', record: host.record, revision: 1 };
  };
  const asking = { hosts: { request }, clock: { nowMs: () => nowMs }, log: { debug: () => {} } };
  await sendHostRequests(asking, step.record, { hosts: [seen], kept: new Map() }, step.callOffs);
  return { record: step.record, asked: requests, nextPassMs: step.nextPassMs };
}

/** Each reason, by its name. */
export const changes: Readonly<Record<string, (record: wire.PoolRecord, host: Bench) => void>> = {
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

/** A window of one hour that begins this many hours from now. */
export function windowOf({ nowMs }: Bench, inHours: number) {
  const start = new Date(nowMs + inHours * hourMs);
  const cron = `${start.getUTCMinutes()} ${start.getUTCHours()} * * *`;
  return create(RolloutWindowSchema, { cron, duration: durationFromMs(hourMs) });
}
