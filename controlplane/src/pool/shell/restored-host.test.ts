/**
 * A host that a restored store shows as a pool's, or as unowned: it may have a new user since the
 * lost history, and its pool leaves it unchanged until a person has looked.
 */
import {
  HostState,
  type Run,
  RunKind,
  RunOutcome,
  RunPhase,
  readActor,
} from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import { explainHost } from '../../host/explain/explain.ts';
import type { HostRequest } from '../../host/index.ts';
import {
  type Bench,
  bench,
  done,
  inspected,
  statusOf,
  verified,
} from '../../host/testing/bench.ts';
import { image, Rollout } from '../decide/rollout.fixture.ts';
import { type SeenHost, seenHost } from '../facts/seen.ts';
import { wantedOf } from './asking.ts';

const { AVAILABLE, MANAGEABLE, PROVISIONED } = HostState;
const lookFirst = 'the store was restored: check whether the host is in use, then retry';
const clean: HostRequest = { kind: 'clean', steps: [] };
const reimage: HostRequest = { kind: 'reimage', image: image('B') };

/** As in the backup; undefined claim: unowned. */
function kept(state: HostState, claimedBy?: string): Bench {
  const host = bench();
  host.apply({ kind: 'tick' });
  host.report(verified());
  delete host.record.host?.status?.run;
  delete host.record.operation;
  const runs = state === PROVISIONED ? { image: image('A'), poweredOn: true } : {};
  Object.assign(statusOf(host), { state, dirty: state !== AVAILABLE, poweredOn: false, ...runs });
  if (claimedBy !== undefined) asks(host, claimedBy, { kind: 'claim', reason: 'its own' });
  return host;
}

/** The store is restored to this, and a person accepts the loss. */
function restore(host: Bench): Bench {
  host.snapshot = { ...host.snapshot, restored: 'the store was restored' };
  host.apply({ kind: 'tick' });
  host.snapshot = { ...host.snapshot, restored: undefined };
  const journal = host.snapshot.session?.journal;
  if (journal === undefined) throw new Error('the agent is connected');
  host.apply({ kind: 'hello', journal, listed: [], grants: [] });
  return host;
}

function asks(host: Bench, actor: string, request: HostRequest): string {
  const outcome = host.try({ kind: 'request', request, by: { actor: readActor(actor) } });
  if (outcome.kind === 'refused') return outcome.refusal.message;
  if (outcome.kind === 'kept') host.record = outcome.record;
  return 'accepted';
}

function seenOf({ record }: Bench): SeenHost {
  const seen = seenHost(record);
  if (seen === undefined) throw new Error('the host is seen');
  return { ...seen, labels: { pool: 'p' } };
}

function underWay(host: Bench): Run | undefined {
  const { run } = statusOf(host);
  return run?.phase === RunPhase.ENDED ? undefined : run;
}

describe.each([
  ['available', AVAILABLE, clean, RunKind.INSPECT],
  ['in use', PROVISIONED, reimage, RunKind.REIMAGE],
])('a host that its pool held, and that was %s in the backup', (_, state, request, kind) => {
  test('gets nothing of its pool before a person has looked', () => {
    const host = restore(kept(state, 'pools/p'));
    const pool = new Rollout(1);
    const seen = seenOf(host);
    expect(seen.keptBy).toEqual({ kind: 'review', text: lookFirst });
    expect(wantedOf(pool.record, seen, true)).toBeUndefined();
    expect(asks(host, 'pools/p', request)).toContain(lookFirst);
    host.apply({ kind: 'tick' });
    expect(underWay(host)).toBeUndefined();
  });

  test('says so, and who looks sets it going', () => {
    const host = restore(kept(state, 'pools/p'));
    const told = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
    expect(told.headline).toContain(lookFirst);
    expect(told.unblock.join()).toMatch(/host retry h1.*take it out of what that selects/);
    expect(asks(host, 'user:ann', { kind: 'retry' })).toBe('accepted');
    // A host that is not in use is led by its goal, and not by its pool.
    expect(seenOf(host).keptBy?.text.includes('busy: inspect') ?? false).toBe(state === AVAILABLE);
    if (state === PROVISIONED) expect(asks(host, 'pools/p', request)).toBe('accepted');
    expect(underWay(host)?.kind).toBe(kind);
  });

  test('is taken by no pool when nobody held it', () => {
    const host = restore(kept(state));
    const pool = new Rollout(1).push('A');
    pool.hosts = [seenOf(host)];
    pool.reconcile();
    expect([pool.record.members, pool.out, seenOf(host).claimedBy]).toEqual([[], '', undefined]);
    expect(pool.messageOf('UpToDate')).toContain(lookFirst);
    asks(host, 'user:ann', { kind: 'retry' });
    if (state === AVAILABLE) return;
    pool.hosts = [seenOf(host)];
    expect(pool.reconcile().record.members).toHaveLength(1);
  });
});

test('a person who has looked gives the host its image, or back, without further words', () => {
  for (const request of [reimage, { kind: 'release', reason: 'done' } as const]) {
    const host = restore(kept(PROVISIONED, 'user:ann'));
    expect(asks(host, 'user:ann', request)).toBe('accepted');
    expect(seenOf(host).waitsForReview).toBe(false);
  }
});

test('a run that the backup remembers ends, and the host’s power is left as it is', () => {
  const host = kept(PROVISIONED, 'pools/p');
  asks(host, 'pools/p', reimage);
  for (let at = stepAt(host); at !== 'deploy.write_image'; at = stepAt(host)) {
    if (at === 'runner.await') host.runnerReady();
    else host.report(at === 'runner.inspect' ? inspected() : done);
  }
  restore(host);
  expect(statusOf(host).run?.outcome).toBe(RunOutcome.FAILED);
  expect([host.record.pendingPower, seenOf(host).keptBy?.text]).toEqual([undefined, lookFirst]);
  expect(statusOf(host).state).not.toBe(MANAGEABLE);
});

function stepAt(host: Bench): string {
  const run = underWay(host);
  return run?.steps[run.currentStep]?.name ?? '';
}
