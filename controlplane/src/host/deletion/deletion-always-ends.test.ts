/** After any history of a host: force ends, busy changes nothing, each call is made once. */
import { clone, create, equals } from '@bufbuild/protobuf';
import {
  agent,
  DeletionMode,
  HoldScope,
  HostGoal,
  HostState,
  RunKind,
  RunPhase,
  store,
  TransientCause,
  userActor,
} from '@rackwright/messages';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { HostEvent, HostRequest } from '../pass/types.ts';
import { nextWakeMs } from '../shell/wake.ts';
import { type Bench, bench, done, failed, inspected, verified } from '../testing/bench.ts';
import { force, normal, statusOf } from '../testing/deleting.ts';

const by = { actor: userActor('test') };
const request = (asked: HostRequest): HostEvent => ({ kind: 'request', request: asked, by });
const silent: agent.Report['result'] = {
  case: 'transientError',
  value: create(agent.TransientErrorSchema, {
    message: 'silent',
    cause: TransientCause.UNREACHABLE,
  }),
};
const journal = create(agent.JournalSchema, { id: 'j1', generation: 1n });

/** Possible events of the host, by names that make a failing sequence readable. */
const happenings: Readonly<Record<string, (host: Bench) => HostEvent | undefined>> = {
  done: (host) => report(host, done),
  verified: (host) => report(host, verified()),
  inspected: (host) => report(host, inspected()),
  failed: (host) => report(host, failed('notApplied')),
  interrupted: (host) => report(host, failed('interrupted')),
  transient: (host) => report(host, silent),
  forgotten: () => ({ kind: 'forgotten' }),
  soon: (host) => later(host, 5_000),
  afterAwhile: (host) => later(host, 70_000),
  muchLater: (host) => later(host, 2 * 3_600_000),
  agentLeaves: (host) => {
    host.snapshot = { ...host.snapshot, session: undefined };
    return { kind: 'tick' };
  },
  agentReturns: (host) => {
    const session = {
      journal,
      lastMessageMs: host.nowMs,
      openedMs: host.nowMs,
      awaitsReport: false,
    };
    host.snapshot = { ...host.snapshot, session };
    return { kind: 'hello', journal, listed: [] };
  },
  credentialGone: (host) => {
    host.snapshot = { ...host.snapshot, credentialVersion: undefined };
    return { kind: 'tick' };
  },
  delete: () => request(normal),
  cancelDelete: () => request({ kind: 'cancelDelete', reason: '' }),
  force: () => request(force),
  clean: () => request({ kind: 'clean', steps: [] }),
  release: () => request({ kind: 'release', reason: '' }),
  powerOff: () => request({ kind: 'powerOff' }),
  abort: () => request({ kind: 'abort', reason: '' }),
  claim: () => request({ kind: 'claim', reason: 'in use' }),
  unclaim: () => request({ kind: 'unclaim', reason: '' }),
  holdWork: () => request(hold(HoldScope.WORK)),
  holdRelease: () => request(hold(HoldScope.RELEASE)),
  releaseHolds: () => request({ kind: 'releaseHold', hold: '', reason: 'seen to' }),
};

function hold(scope: HoldScope): HostRequest {
  return { kind: 'hold', scope, reason: 'wait', untilMs: undefined };
}

function report(host: Bench, result: agent.Report['result']): HostEvent | undefined {
  const operationId = host.record.operation?.operation?.id;
  if (operationId === undefined || host.snapshot.session === undefined) return undefined;
  const fields = { sequence: 1n, operationId, hostUid: 'u1', result };
  return { kind: 'report', report: create(agent.ReportSchema, fields) };
}

function later(host: Bench, ms: number): HostEvent {
  host.nowMs += ms;
  const { session } = host.snapshot;
  if (session !== undefined) {
    host.snapshot = { ...host.snapshot, session: { ...session, lastMessageMs: host.nowMs } };
  }
  return { kind: 'tick' };
}

/** Folds an event in; a refusal must leave the record as it was. */
function happen(host: Bench, event: HostEvent | undefined): void {
  if (event === undefined || host.removed) return;
  const before = clone(store.HostRecordSchema, host.record);
  const outcome = host.try(event);
  expect(equals(store.HostRecordSchema, before, host.record)).toBe(true);
  if (outcome.kind === 'refused') return;
  host.apply(event);
  if (!host.removed) expectOnItsWay(host);
}

/** What holds for every host in deletion, after every event. */
function expectOnItsWay(host: Bench): void {
  const { state, run, deletion, backoff } = statusOf(host);
  const active = run?.phase === RunPhase.ENDED ? undefined : run;
  const switches = active?.steps.some(({ name }) => name === 'power.off') ?? false;
  if (active?.kind === RunKind.DELETE && state === HostState.EXTERNAL) {
    expect(switches, 'somebody else’s power').toBe(false);
  }
  if (deletion?.mode !== DeletionMode.FORCE) return;
  expect(backoff, 'force never pauses').toBeUndefined();
  expect(active, 'force never rests').toBeDefined();
  expect(host.record.forcedUntil, 'force waits for a bounded time').toBeDefined();
}

const answers = ['done', 'failed', 'interrupted', 'transient', 'soon', 'afterAwhile'] as const;

const states = [
  HostState.NEW,
  HostState.MANAGEABLE,
  HostState.AVAILABLE,
  HostState.PROVISIONED,
  HostState.EXTERNAL,
];

/** A host in some state, after any earlier events. */
const lives = fc.record({
  state: fc.constantFrom(...states),
  poweredOn: fc.boolean(),
  names: fc.array(fc.constantFrom(...Object.keys(happenings)), { maxLength: 30 }),
});

type Life = typeof lives extends fc.Arbitrary<infer T> ? T : never;

function live({ state, poweredOn, names }: Life): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  statusOf(host).state = state;
  statusOf(host).poweredOn = poweredOn;
  for (const name of names) happen(host, happenings[name]?.(host));
  return host;
}

/** The host is unclaimed, and the party of its work has been silent for too long. */
function abandon(host: Bench): void {
  host.nowMs += 91_000;
  happen(host, { kind: 'tick' });
  for (const name of ['unclaim', 'releaseHolds']) happen(host, happenings[name]?.(host));
  host.nowMs += 91_000;
  happen(host, { kind: 'tick' });
}

test('a forced deletion is accepted once nobody is busy, and ends within three calls', () => {
  fc.assert(
    fc.property(lives, fc.boolean(), (life, agentThere) => {
      const host = live(life);
      if (host.removed) return;
      if (!agentThere) happen(host, happenings['agentLeaves']?.(host));
      abandon(host);
      if (host.removed) return;
      const outcome = host.try(request(force));
      if (outcome.kind === 'refused') expect(outcome.refusal.message).toBe('accepted');
      happen(host, request(force));
      const endMs = host.nowMs + 3 * host.snapshot.timing.forcedCallTimeoutMs;
      for (let ticks = 0; !host.removed; ticks += 1) {
        expect(ticks, 'it ends').toBeLessThan(1_000);
        const nextMs = nextWakeMs(host.record, host.nowMs) ?? Number.POSITIVE_INFINITY;
        expect(nextMs, 'it wakes by itself').toBeLessThanOrEqual(endMs);
        host.nowMs = nextMs;
        happen(host, { kind: 'tick' });
      }
    }),
    { numRuns: 300 },
  );
});

test('a forced removal that begins as one makes each of its calls once', () => {
  fc.assert(
    fc.property(lives, fc.array(fc.constantFrom(...answers), { maxLength: 8 }), (life, names) => {
      const host = live(life);
      abandon(host);
      if (host.removed || statusOf(host).deletion !== undefined) return;
      happen(host, request(force));
      for (const name of names) {
        if (host.removed) return;
        const { run } = statusOf(host);
        const attempts =
          run?.kind === RunKind.DELETE ? run.steps.map(({ attempt }) => attempt) : [];
        expect(Math.max(0, ...attempts)).toBeLessThanOrEqual(1);
        happen(host, happenings[name]?.(host));
      }
    }),
    { numRuns: 300 },
  );
});
