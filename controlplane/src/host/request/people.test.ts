/** People's requests: holds and their scopes, claims, retry; and stuck hosts. */
import { create, equals } from '@bufbuild/protobuf';
import {
  agent,
  HoldScope,
  HostGoal,
  HostState,
  RunKind,
  RunPhase,
  readActor,
  store,
  TransientCause,
} from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import { explainHost } from '../explain/explain.ts';
import type { HostRequest } from '../pass/types.ts';
import { nextWakeMs } from '../shell/wake.ts';
import { type Bench, bench, done, driveToErase, failed, verified } from '../testing/bench.ts';

const minuteMs = 60_000;
const status = (host: Bench) => {
  const found = host.record.host?.status;
  if (found === undefined) throw new Error('a host has a status');
  return found;
};
const explained = (host: Bench) =>
  explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });

function refusal(host: Bench, request: HostRequest, actor = 'user:test') {
  const outcome = host.try({ kind: 'request', request, by: { actor: readActor(actor) } });
  if (outcome.kind !== 'refused') throw new Error(`${request.kind} was accepted`);
  return outcome.refusal;
}

function hold(scope: HoldScope, untilMs?: number): HostRequest {
  return { kind: 'hold', scope, reason: 'a look by hand', untilMs };
}

const releaseHold = { kind: 'releaseHold', hold: 'a look by hand', reason: 'seen' } as const;
const remove = { kind: 'delete', reason: 'sold' } as const;

function manageable(goal: HostGoal = HostGoal.MANAGEABLE): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const { spec } = host.record.host ?? {};
  if (spec !== undefined) spec.goal = goal;
  return host;
}

describe('a hold on work', () => {
  test('keeps the goal from starting anything, and refuses orders naming who holds it', () => {
    const host = manageable(HostGoal.AVAILABLE);
    host.request(hold(HoldScope.WORK));
    expect(status(host).run?.phase).toBe(RunPhase.ENDED);
    const orders: HostRequest[] = [
      { kind: 'verify' },
      { kind: 'inspect' },
      { kind: 'clean', steps: [] },
      { kind: 'rescue', reason: '' },
      { kind: 'powerOff' },
      { kind: 'retry' },
    ];
    for (const order of orders) {
      expect(refusal(host, order).message).toMatch(
        /work is held by user:test since 2026-01-01T00:00:00Z: a look by hand; release the hold/,
      );
    }
    expect(explained(host)).toMatchObject({
      blocker: 'the hold',
      unblock: [expect.stringContaining('rackwright host release-hold h1')],
    });
    host.request(releaseHold);
    expect(status(host).run?.kind).toBe(RunKind.INSPECT);
  });

  test('lets a run that is under way go on, and folds its results in', () => {
    const host = bench();
    driveToErase(host);
    host.request(hold(HoldScope.WORK));
    expect(status(host).run?.phase).toBe(RunPhase.RUNNING);
    expect(nextWakeMs(host.record, host.nowMs)).toBeGreaterThan(host.nowMs);
    host.report(failed('internal', 'broke'));
    expect(status(host).run?.phase).toBe(RunPhase.ENDED);
    host.nowMs += 60 * minuteMs;
    host.apply({ kind: 'tick' });
    expect(status(host).run?.phase).toBe(RunPhase.ENDED);
  });

  test('a hold with a time ends by itself then, and says so', () => {
    const host = manageable(HostGoal.AVAILABLE);
    const untilMs = host.nowMs + 10 * minuteMs;
    host.request(hold(HoldScope.WORK, untilMs));
    expect(nextWakeMs(host.record, host.nowMs)).toBe(untilMs);
    host.nowMs = untilMs - 1;
    host.apply({ kind: 'tick' });
    expect(status(host).holds).toHaveLength(1);
    host.nowMs = untilMs;
    host.apply({ kind: 'tick' });
    expect(status(host).holds).toEqual([]);
    expect(host.record.change?.cause).toContain('the work hold of user:test ended at its time');
    expect(status(host).run?.kind).toBe(RunKind.INSPECT);
  });

  test('needs a reason and a time that lies ahead', () => {
    const host = manageable();
    const blank: HostRequest = { kind: 'hold', scope: 1, reason: '', untilMs: undefined };
    expect(refusal(host, blank).fieldViolations?.[0]?.field).toBe('reason');
    const past = refusal(host, hold(HoldScope.WORK, host.nowMs));
    expect(past.fieldViolations?.[0]?.field).toBe('until');
  });

  test('does not keep a host from its deletion', () => {
    const host = manageable();
    host.request(hold(HoldScope.WORK));
    host.request(remove);
    expect(status(host).run?.kind).toBe(RunKind.DELETE);
  });
});

describe('a hold on power', () => {
  test('refuses power requests and nothing else', () => {
    const host = manageable();
    host.request(hold(HoldScope.POWER));
    const power: HostRequest[] = [
      { kind: 'powerOff' },
      { kind: 'powerOn', bootOldDiskReason: 'x' },
      { kind: 'powerReset', bootOldDiskReason: 'x' },
    ];
    for (const request of power) {
      expect(refusal(host, request).message).toContain('power is held by user:test');
    }
    host.request({ kind: 'verify' });
    expect(status(host).run?.kind).toBe(RunKind.VERIFY);
  });

  test('keeps a power request waiting that came before it', () => {
    const host = manageable();
    host.request({ kind: 'verify' });
    host.request({ kind: 'powerOff' });
    host.request(hold(HoldScope.POWER));
    host.report(verified());
    expect(status(host).run?.phase).toBe(RunPhase.ENDED);
    expect(explained(host).headline).toContain('its power is not switched');
    host.request(releaseHold);
    expect(status(host).run?.kind).toBe(RunKind.POWER);
  });
});

describe('a deletion', () => {
  test('is refused at once, with the record as it was, by a claim and by a hold on release', () => {
    const host = manageable();
    host.request({ kind: 'claim', reason: 'database' });
    const claimed = host.record;
    expect(refusal(host, remove).message).toMatch(
      /busy: claimed by user:test \(database\) since 2026-01-01T00:00:00Z; it must be unclaimed/,
    );
    expect(host.record).toBe(claimed);
    host.request({ kind: 'unclaim', reason: '' });
    host.request(hold(HoldScope.RELEASE));
    expect(refusal(host, remove).message).toContain('a look by hand since 2026-01-01');
    host.request(releaseHold);
    host.request(remove);
    expect(status(host).deletion?.reason).toBe('sold');
  });

  test('takes the host once its claim, its hold or its agent is gone for too long', () => {
    const host = bench();
    driveToErase(host);
    host.snapshot = { ...host.snapshot, session: undefined };
    host.apply({ kind: 'tick' });
    expect(refusal(host, remove).message).toContain('busy: clean 3 holds the host');
    host.nowMs += 89_000;
    expect(refusal(host, remove).message).toContain('busy: clean 3 holds the host');
    host.nowMs += 1_000;
    host.request(remove);
    expect(status(host).deletion).toBeDefined();
  });

  test('is not refused by a run that stands at a hold while its agent is away for too long', () => {
    const host = manageable();
    host.request({ kind: 'clean', steps: [{ step: 'hold', arguments: {} }] });
    expect(status(host).run?.waiting?.reason).toBe('hold');
    const agentSeenMs = host.nowMs;
    host.snapshot = { ...host.snapshot, session: undefined, agentSeenMs };
    host.nowMs += 89_000;
    expect(refusal(host, remove).message).toContain('(at hold)');
    host.nowMs += 1_000;
    const { snapshot } = host;
    host.snapshot = { ...snapshot, sessionElsewhere: true };
    expect(refusal(host, remove).message).toContain('(at hold)');
    host.snapshot = snapshot;
    host.request(remove);
    expect(status(host).deletion).toBeDefined();
  });

  test('is not refused by work whose agent is connected and has been silent for too long', () => {
    const host = bench();
    driveToErase(host);
    host.nowMs += 90_000;
    host.request(remove);
    expect(status(host).deletion).toBeDefined();
  });

  test('a deletion that is asked for again stays what it is', () => {
    const host = manageable();
    host.request(remove);
    const before = host.record;
    host.request(remove);
    expect(equals(store.HostRecordSchema, before, host.record)).toBe(true);
    expect(refusal(host, { kind: 'claim', reason: 'x' }).message).not.toBe('');
    expect(refusal(host, { kind: 'verify' }).message).not.toBe('');
  });
});

describe('retry', () => {
  test('starts at once what is backed off, and what was given up', () => {
    const host = bench();
    host.apply({ kind: 'tick' });
    host.report(failed('notApplied'));
    host.request({ kind: 'retry' });
    expect(status(host).run?.phase).toBe(RunPhase.RUNNING);
    host.request({ kind: 'abort', reason: 'enough' });
    host.report(failed('cancelled'));
    expect(status(host).backoff?.givenUpReason).toContain('aborted');
    host.request({ kind: 'retry' });
    expect(status(host).run?.phase).toBe(RunPhase.RUNNING);
    expect(status(host).backoff).toBeUndefined();
  });

  test('sends at once what waits for a silent BMC', () => {
    const host = bench();
    host.apply({ kind: 'tick' });
    host.report({
      case: 'transientError',
      value: create(agent.TransientErrorSchema, {
        cause: TransientCause.UNREACHABLE,
        message: 'silent',
      }),
    });
    const effects = host.request({ kind: 'retry' });
    expect(effects).toContainEqual(expect.objectContaining({ kind: 'send' }));
  });

  test('is refused on a host that waits for nothing', () => {
    const host = manageable();
    expect(refusal(host, { kind: 'retry' }).message).toContain('nothing of it waits to be retried');
  });
});

test('a host in rescue that is reset from its disk is left alone by its goal until a retry', () => {
  const host = manageable(HostGoal.AVAILABLE);
  host.request({ kind: 'rescue', reason: 'save the data' });
  host.report(done);
  host.report(done);
  host.runnerReady();
  host.request({ kind: 'powerReset', bootOldDiskReason: 'does it boot again?' });
  host.report(done);
  host.report(done);
  expect(status(host)).toMatchObject({ inRescue: true, run: { kind: RunKind.POWER } });
  expect(status(host).run?.phase).toBe(RunPhase.ENDED);
  expect(explained(host).unblock.join()).toContain('rackwright host retry h1');
  host.request({ kind: 'retry' });
  expect(status(host).run).toMatchObject({ kind: RunKind.INSPECT, phase: RunPhase.RUNNING });
});

describe('a claim', () => {
  test('is one person’s, who may say another reason, and give it up', () => {
    const host = manageable();
    host.request({ kind: 'claim', reason: 'one' });
    const { at } = status(host).claim ?? {};
    host.nowMs += minuteMs;
    host.request({ kind: 'claim', reason: 'two' });
    expect(status(host).claim).toMatchObject({ by: 'user:test', reason: 'two', at });
    const other = refusal(host, { kind: 'claim', reason: 'mine' }, 'user:other');
    expect(other.message).toContain('claimed by user:test');
    host.request({ kind: 'unclaim', reason: 'done' });
    expect(status(host).claim).toBeUndefined();
    expect(refusal(host, { kind: 'unclaim', reason: '' }).message).toContain('nobody claims it');
  });

  test('keeps others from going on with a clean that failed', () => {
    const host = bench();
    driveToErase(host);
    host.report(failed('internal', 'broke'));
    host.request({ kind: 'claim', reason: 'one' });
    const resume = { kind: 'resume', reason: 'again' } as const;
    expect(refusal(host, resume, 'user:other').message).toContain('claimed by user:test');
    host.request(resume);
    expect(status(host).run).toMatchObject({ kind: RunKind.CLEAN, phase: RunPhase.RUNNING });
  });

  test('does not keep a host of its own from being switched or verified', () => {
    const host = manageable();
    host.request({ kind: 'claim', reason: 'one' });
    host.request({ kind: 'powerOff' });
    host.report(done);
    expect(status(host)).toMatchObject({ state: HostState.MANAGEABLE, poweredOn: false });
  });
});
