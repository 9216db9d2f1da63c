/** Invariants under any sequence of requests and reports of a host. */
import { create, equals } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  asWorkflowUid,
  DeletionMode,
  type FailureName,
  HoldScope,
  HostState,
  type HostStatus,
  type OperationId,
  RerunClass,
  type Run,
  RunKind,
  RunPhase,
  RunSchema,
  readActor,
  ShutdownMode,
  ShutdownPolicySchema,
  SkipCause,
  StepState,
  store,
} from '@rackwright/messages';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isBootStep } from './pass/step-names.ts';
import type { HostEvent, HostRequest } from './pass/types.ts';
import { nextWakeMs } from './shell/wake.ts';
import {
  type Bench,
  bench,
  done,
  erased,
  failed,
  inspected,
  verified,
  virtioDisk,
} from './testing/bench.ts';
import { rendered, script, workflowRun } from './testing/templates.ts';

const people = ['user:ann', 'user:bob'] as const;
const reason = 'tried out';
const erase = [{ step: 'deploy.erase_devices', arguments: {} }];

const requests: readonly HostRequest[] = [
  { kind: 'verify' },
  { kind: 'inspect' },
  { kind: 'clean', steps: [] },
  { kind: 'clean', steps: erase },
  { kind: 'service', steps: [{ step: 'deploy.reshape', arguments: {} }] },
  { kind: 'service', steps: [{ step: 'deploy.look', arguments: {} }] },
  {
    ...{
      kind: 'workflow',
      workflowRun,
      workflowUid: asWorkflowUid('w1'),
      templateDigest: 'd1',
      timeoutMs: undefined,
    },
    steps: [script('look', { onFailure: 'hold' }), script('tidy', { handler: true })],
  },
  {
    ...{
      kind: 'workflow',
      workflowRun,
      workflowUid: asWorkflowUid('w1'),
      templateDigest: 'd2',
      timeoutMs: 3_600_000,
    },
    steps: [script('write', { destructive: true, retries: 1 }), rendered('go', 'bootDisk')],
  },
  { kind: 'provision', image: `registry.example/os@sha256:${'1'.repeat(64)}` },
  { kind: 'reimage', image: `registry.example/os@sha256:${'2'.repeat(64)}` },
  { kind: 'release', reason },
  { kind: 'rescue', reason },
  { kind: 'adopt', to: HostState.EXTERNAL, reason },
  { kind: 'adopt', to: HostState.PROVISIONED, reason },
  { kind: 'powerOn', bootOldDiskReason: reason },
  { kind: 'powerOff' },
  { kind: 'powerOff', shutdown: create(ShutdownPolicySchema, { mode: ShutdownMode.GRACEFUL }) },
  { kind: 'powerOff', shutdown: create(ShutdownPolicySchema, { mode: ShutdownMode.FORCE }) },
  { kind: 'skipWait' },
  { kind: 'confirmPower', on: false },
  { kind: 'confirmPower', on: true },
  { kind: 'powerReset', bootOldDiskReason: reason },
  { kind: 'abort', reason },
  { kind: 'resume', reason },
  { kind: 'skip', reason },
  { kind: 'retry' },
  { kind: 'claim', reason },
  { kind: 'unclaim', reason },
  { kind: 'hold', scope: HoldScope.WORK, reason: 'work', untilMs: undefined },
  { kind: 'hold', scope: HoldScope.POWER, reason: 'power', untilMs: undefined },
  { kind: 'hold', scope: HoldScope.RELEASE, reason: 'release', untilMs: undefined },
  { kind: 'releaseHold', hold: '', reason },
  { kind: 'delete', reason },
  { kind: 'delete', mode: DeletionMode.FORCE, reason },
  { kind: 'cancelDelete', reason },
];

type Act =
  | { readonly kind: 'ask'; readonly request: number; readonly by: number }
  /** The present operation succeeds. */
  | { readonly kind: 'succeed' }
  | { readonly kind: 'fail'; readonly type: FailureName }
  | { readonly kind: 'conflict' }
  | { readonly kind: 'pass'; readonly minutes: number }
  | { readonly kind: 'seenOn'; readonly on: boolean };

const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('ask' as const),
      request: fc.nat(requests.length - 1),
      by: fc.nat(people.length - 1),
    }),
  },
  { weight: 30, arbitrary: fc.constant({ kind: 'succeed' as const }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('fail' as const),
      type: fc.constantFrom('internal', 'interrupted', 'authentication', 'cancelled'),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'conflict' as const }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('pass' as const),
      minutes: fc.constantFrom(0, 1, 1, 2, 6, 31, 90),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('seenOn' as const), on: fc.boolean() }),
  },
);

function statusOf(host: Bench) {
  const status = host.record.host?.status;
  if (status === undefined) throw new Error('a host has a status');
  return status;
}

const stepAt = (host: Bench) => {
  const { run } = statusOf(host);
  return run?.phase === RunPhase.ENDED ? undefined : run?.steps[run.currentStep];
};

function resultOf(host: Bench): agent.Report['result'] {
  const step = stepAt(host);
  if (step?.name === 'bmc.verifyAccess') return verified();
  if (step?.name.startsWith('runner.inspect') === true) return inspected();
  if (step?.name !== 'deploy.erase_devices') return done;
  const evidence = host.evidence(host.record.devicePlan.length > 0 ? [erased(virtioDisk)] : []);
  return { case: 'complete', value: create(agent.CompleteSchema, { evidence }) };
}

const conflict: agent.Report['result'] = {
  case: 'retryAfter',
  value: create(agent.RetryAfterSchema, {
    reason: agent.ConflictReason.LOCKED,
    message: 'locked',
    delay: durationFromMs(1_000),
  }),
};

/** The event of an act for a host now; undefined when it cannot happen. */
function eventOf(host: Bench, happening: Act): HostEvent | undefined {
  const report = (result: agent.Report['result'], operationId: OperationId): HostEvent => ({
    kind: 'report',
    report: create(agent.ReportSchema, { hostUid: 'u1', operationId, result }),
  });
  const { operation, sentTo } = host.record.operation ?? {};
  const ofAttempt = (result: () => agent.Report['result']): HostEvent | undefined =>
    operation !== undefined && sentTo !== undefined ? report(result(), operation.id) : undefined;
  switch (happening.kind) {
    case 'ask': {
      const request = requests[happening.request];
      const actor = people[happening.by] ?? 'user:ann';
      return request && { kind: 'request', request, by: { actor: readActor(actor) } };
    }
    case 'succeed':
      if (host.record.forgetting) return { kind: 'forgotten' };
      if (stepAt(host)?.name === 'runner.await') return readyEvent(host);
      return ofAttempt(() => resultOf(host));
    case 'fail':
      return ofAttempt(() => failed(happening.type));
    case 'conflict':
      return ofAttempt(() => conflict);
    case 'pass':
      return { kind: 'tick' };
    case 'seenOn': {
      const observations = create(agent.ObservationsSchema, { poweredOn: happening.on });
      const value = create(agent.HostUpdatedSchema, { observations });
      return report({ case: 'hostUpdated', value }, '');
    }
  }
}

function readyEvent(host: Bench): HostEvent {
  const { run } = statusOf(host);
  const index = run?.steps.findLastIndex(({ name, attempt }) => isBootStep(name) && attempt > 0);
  const bootOperationId = `u1/${run?.number}/${index}/${run?.steps[index ?? 0]?.attempt}`;
  const runnerReady = { hostUid: 'u1', bootOperationId, runnerSession: 's1', bootId: 'b1' };
  const value = create(agent.HostUpdatedSchema, { observations: { runnerReady } });
  const result = { case: 'hostUpdated' as const, value };
  return { kind: 'report', report: create(agent.ReportSchema, { hostUid: 'u1', result }) };
}

function check(host: Bench, before: store.HostRecord, event: HostEvent): void {
  const runBefore = before.host?.status?.run;
  const status = statusOf(host);
  const { run } = status;
  if (status.state === HostState.AVAILABLE) expect(status.dirty).toBe(false);
  // H3: a finished run does not change any more, and a new run has a new number.
  if (runBefore?.phase === RunPhase.ENDED && run?.number === runBefore.number) {
    expect(equals(RunSchema, run, runBefore)).toBe(true);
  }
  const started = run !== undefined && run.number !== runBefore?.number ? run : undefined;
  const lifts = event.kind === 'request' && lifting.has(event.request.kind);
  if (started !== undefined && !lifts) checkStart(status, before, started);
  if (status.state === HostState.EXTERNAL && run?.phase !== RunPhase.ENDED) {
    const kinds: (RunKind | undefined)[] = [RunKind.VERIFY, RunKind.ADOPT, RunKind.POWER];
    expect([...kinds, RunKind.DELETE, undefined]).toContain(run?.kind);
  }
  checkBoots(host, status);
  checkRest(host, status);
}

/**
 * An inspection leaves a host on only for a clean that begins in the same pass; and a clean erases
 * only by its own inventory.
 */
function checkBoots({ record }: Bench, { run }: HostStatus): void {
  if (run?.kind === RunKind.INSPECT)
    expect(run.steps.at(-1)?.skipCause).toBe(SkipCause.UNSPECIFIED);
  const { kind } = record.operation?.operation ?? {};
  const erases = kind?.case === 'runStep' && kind.value.step === 'deploy.erase_devices';
  if (!erases || run?.kind !== RunKind.CLEAN) return;
  const looked = run.steps.some(({ name, state, attempt }) => {
    const isOwn = attempt > 0 || run.resumes !== '';
    return name === 'runner.inspect' && state === StepState.SUCCEEDED && isOwn;
  });
  expect(looked).toBe(true);
}

/** Another pass changes nothing (R2), and a wait for a time has its wake-up. */
function checkRest(host: Bench, { backoff, run }: HostStatus): void {
  const outcome = host.try({ kind: 'tick' });
  expect(
    outcome.kind === 'kept' && equals(store.HostRecordSchema, outcome.record, host.record),
  ).toBe(true);
  if (backoff?.nextAttemptTime !== undefined && run?.phase === RunPhase.ENDED) {
    expect(nextWakeMs(host.record, host.nowMs) ?? Number.POSITIVE_INFINITY).toBeGreaterThan(
      host.nowMs,
    );
  }
}

/** Requests that withdraw an earlier one. */
const lifting: ReadonlySet<string> = new Set(['releaseHold', 'unclaim', 'retry']);

/** Nothing starts against earlier requests of people. */
function checkStart({ state }: HostStatus, before: store.HostRecord, started: Run): void {
  const said = before.host?.status;
  const held = (scope: HoldScope) => said?.holds.some((hold) => hold.scope === scope) === true;
  const ofDeletion = said?.deletion !== undefined || started.kind === RunKind.DELETE;
  if (held(HoldScope.WORK) && !ofDeletion) {
    expect(started.requestedBy).not.toBe('goal');
  }
  if (held(HoldScope.POWER)) expect(started.kind).not.toBe(RunKind.POWER);
  const theirs = state === HostState.PROVISIONED || state === HostState.EXTERNAL;
  if (theirs && started.requestedBy === 'goal') {
    expect([RunKind.VERIFY, RunKind.ADOPT]).toContain(started.kind);
  }
  const erases = started.kind === RunKind.CLEAN || started.kind === RunKind.INSPECT;
  if (erases && isUsed(said)) expect(started.requestedBy).not.toBe('goal');
}

/** The owner of the claim may have released the host with the run that has just ended. */
function isUsed(said: HostStatus | undefined): boolean {
  const gaveBack = said?.run?.kind === RunKind.RELEASE && said.run.requestedBy === said.claim?.by;
  return said?.inRescue === true || (said?.claim !== undefined && !gaveBack);
}

/** Successes in a row after which a new host is available. */
const stepsToAvailable = 9;

/** The progress of a host at the start of its sequence. */
const beginning = fc.oneof(
  fc.nat(stepsToAvailable + 2),
  fc.constantFrom(HostState.EXTERNAL, HostState.PROVISIONED).map((adopted) => ({ adopted })),
);

function begun(begin: number | { readonly adopted: HostState }): Bench {
  const host = bench();
  const runnerSteps = ['deploy.reshape', 'deploy.look', 'deploy.erase_devices'].map((name) =>
    create(agent.StepDescriptionSchema, {
      name,
      rerunClass: RerunClass.SAFE,
      priority: name === 'deploy.erase_devices' ? 10 : 0,
      destructive: name !== 'deploy.look',
    }),
  );
  const facts = { ...host.snapshot.facts, runnerSteps };
  host.snapshot = { ...host.snapshot, facts };
  host.apply({ kind: 'tick' });
  if (typeof begin !== 'number') host.request({ kind: 'adopt', to: begin.adopted, reason });
  for (let count = typeof begin === 'number' ? begin : 2; count > 0; count--) {
    const event = eventOf(host, { kind: 'succeed' });
    if (event !== undefined) host.apply(event);
  }
  if (typeof begin !== 'number') expect(statusOf(host).state).toBe(begin.adopted);
  return host;
}

const story = fc.array(act, { minLength: 1, maxLength: 60 });

test('a host keeps its promises through anything that is asked and reported', () => {
  fc.assert(
    fc.property(beginning, story, (begin, acts) => {
      const host = begun(begin);
      for (const happening of acts) {
        if (host.removed) return;
        if (happening.kind === 'pass') host.nowMs += happening.minutes * 60_000;
        const { session } = host.snapshot;
        if (session !== undefined) {
          host.snapshot = { ...host.snapshot, session: { ...session, lastMessageMs: host.nowMs } };
        }
        const before = host.record;
        const bytes = JSON.stringify(before, replaceBigints);
        const event = eventOf(host, happening);
        if (event === undefined) continue;
        const outcome = host.try(event);
        // H1, H5: neither the record nor anything in it is modified in place.
        expect(JSON.stringify(before, replaceBigints)).toBe(bytes);
        if (outcome.kind === 'refused') {
          expect(outcome.refusal.message).not.toBe('');
          continue;
        }
        host.apply(event);
        if (!host.removed) check(host, before, event);
      }
    }),
    { numRuns: 200 },
  );
});

function replaceBigints(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}
