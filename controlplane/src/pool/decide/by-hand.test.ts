/** What a person may do manually with a host of a pool, with the host's real record. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  asWorkflowUid,
  HostGoal,
  HostState,
  RerunClass,
  RolloutSlotState,
  RunKind,
  RunOutcome,
  RunPhase,
  readActor,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import type { HostRequest } from '../../host/pass/types.ts';
import { type Bench, bench, done, inspected, verified } from '../../host/testing/bench.ts';
import { rendered } from '../../host/testing/templates.ts';
import { isMissed, seenHost } from '../facts/seen.ts';
import { image, Rollout } from './rollout.fixture.ts';

const ann = 'user:ann';
const on = { kind: 'powerOn', bootOldDiskReason: '' } as const;
const reset = { kind: 'powerReset', bootOldDiskReason: '' } as const;

/** Runs image A, for the pool. */
function provisioned(): Bench {
  return heldByPool({ state: HostState.PROVISIONED, image: image('A'), poweredOn: true });
}

function heldByPool(status: { readonly state: HostState; readonly [field: string]: unknown }) {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  Object.assign(statusOf(host), status);
  Object.assign(host.record.host?.spec ?? {}, { goal: HostGoal.AVAILABLE });
  asked(host, { kind: 'claim', reason: 'its' }, 'pools/p');
  const step = (name: string, destructive: boolean) =>
    create(agent.StepDescriptionSchema, { name, destructive, rerunClass: RerunClass.SAFE });
  const runnerSteps = [step('bios.set', false), step('raid.remove', true)];
  host.snapshot = { ...host.snapshot, facts: { ...host.snapshot.facts, runnerSteps } };
  return host;
}

function statusOf({ record }: Bench) {
  if (record.host?.status === undefined) throw new Error('a host has a status');
  return record.host.status;
}

function stepOf(host: Bench): string {
  const { run } = statusOf(host);
  return run?.phase === RunPhase.ENDED ? '' : (run?.steps[run.currentStep]?.name ?? '');
}

/** The request is accepted. */
function asked(host: Bench, request: HostRequest, actor = ann): void {
  host.apply({ kind: 'request', request, by: { actor: readActor(actor) } });
}

/** Every step of the run succeeds. */
function finished(host: Bench): void {
  for (let at = stepOf(host); at !== ''; at = stepOf(host)) {
    if (at === 'runner.await') host.runnerReady();
    else host.report(at === 'runner.inspect' ? inspected([]) : done);
  }
}

function refusal(host: Bench, request: HostRequest, actor = ann): string {
  const outcome = host.try({ kind: 'request', request, by: { actor: readActor(actor) } });
  if (outcome.kind !== 'refused') throw new Error(`${request.kind} was accepted`);
  return outcome.refusal.message;
}

function seenOf({ record }: Bench) {
  const seen = seenHost(record);
  if (seen === undefined) throw new Error('the host is seen');
  return seen;
}

const its = /claimed by pools\/p .*; take it out of what pools\/p selects first/;

const service = (step: string): HostRequest => ({
  kind: 'service',
  steps: [{ step, arguments: {} }],
});

const workflow = (more: Parameters<typeof rendered>[2], step = 'run.script'): HostRequest => ({
  ...{
    kind: 'workflow',
    workflowRun: 'hosts/h1/workflows/t/runs/1',
    workflowUid: asWorkflowUid('w1'),
  },
  ...{ templateDigest: 'd1', timeoutMs: undefined },
  steps: [rendered('one', step, more)],
});

test.each([
  ['powerOff', { kind: 'powerOff' }, RunKind.POWER],
  ['powerReset', reset, RunKind.POWER],
  ['rescue', { kind: 'rescue', reason: 'lost its root file system' }, RunKind.RESCUE],
  ['a service', service('bios.set'), RunKind.SERVICE],
  ['a workflow that writes nothing', workflow({ destructive: false }), RunKind.WORKFLOW],
] as const)('a person may ask for %s of a host of a pool', (_, request, kind) => {
  const host = provisioned();
  for (const actor of ['policy', 'pools/other']) expect(refusal(host, request, actor)).toMatch(its);
  asked(host, request);
  expect(statusOf(host).run).toMatchObject({ kind, phase: RunPhase.RUNNING, requestedBy: ann });
  expect(seenOf(host).keptBy).not.toBeUndefined();
});

test.each([
  ['a release', { kind: 'release', reason: '' }],
  ['another image', { kind: 'reimage', image: image('B') }],
  ['a service that writes', service('raid.remove')],
  ['a workflow that writes', workflow({ destructive: true })],
  ['a hand-off', workflow({ destructive: false, handOff: true })],
] as const)(
  'a person may not ask for %s, which ends what the pool has the host for',
  (_, request) => {
    expect(refusal(provisioned(), request)).toMatch(its);
  },
);

test('a host that a person switched off is left off until the power is on again', () => {
  const host = provisioned();
  asked(host, { kind: 'powerOff' });
  host.report(done);
  const off = seenOf(host);
  expect(isMissed(off)).toBe(true);
  const why = 'user:ann has switched it off; when that is over: rackwright host power on h1';
  const pool = new Rollout(2).push('A');
  pool.set(1, { ...off, name: 'hosts/h1', uid: 'u1', labels: { pool: 'p' } });
  pool.push('B');
  // It would be healed at once, while a person works on it.
  expect([pool.out, pool.surveyed().surveyedHosts[0]?.why]).toEqual(['', why]);
  asked(host, on);
  host.report(done);
  expect(seenOf(host)).toMatchObject({ service: 'in', keptBy: undefined });

  // A host that goes off by itself does not count; nor does one that was off when the pool took it.
  statusOf(host).poweredOn = false;
  expect(seenOf(host)).toMatchObject({ service: 'out', keptBy: undefined });
  const before = provisioned();
  asked(before, { kind: 'unclaim', reason: '' });
  asked(before, { kind: 'powerOff' });
  before.report(done);
  before.nowMs += 1_000;
  asked(before, { kind: 'claim', reason: 'its' }, 'pools/p');
  expect(seenOf(before)).toMatchObject({ claimedBy: 'pools/p', keptBy: undefined });
});

test.each([
  ['an inspection', { kind: 'inspect' }],
  ['a service', service('bios.set')],
  ['a workflow', workflow({ destructive: false })],
  ['a power off', { kind: 'powerOff' }],
] as const)('a host that is available is off anyway, and goes also after %s', (_, request) => {
  const host = heldByPool({ state: HostState.AVAILABLE, dirty: false, poweredOn: false });
  host.nowMs += 1_000;
  asked(host, request);
  finished(host);
  const { state, poweredOn, run } = statusOf(host);
  expect({ state, poweredOn }).toEqual({ state: HostState.AVAILABLE, poweredOn: false });
  expect(run).toMatchObject({ outcome: RunOutcome.SUCCEEDED, requestedBy: ann });
  // Nobody could switch it on to let the pool continue.
  expect(refusal(host, on)).toContain('an available host stays off');
  expect(seenOf(host)).toMatchObject({ switchedOffBy: undefined, keptBy: undefined });
});

test.each([
  ['a service', service('bios.set')],
  ['a workflow', workflow({ destructive: false })],
] as const)(
  'a host that was off is left so by %s, which nobody has switched it off by',
  (_, request) => {
    const host = provisioned();
    statusOf(host).poweredOn = false;
    asked(host, request);
    finished(host);
    expect(statusOf(host).poweredOn).toBe(false);
    expect(seenOf(host)).toMatchObject({ service: 'out', keptBy: undefined });
    // A template's power off counts as its requester's.
    statusOf(host).poweredOn = true;
    asked(host, workflow({}, 'powerOff'));
    finished(host);
    expect(seenOf(host).switchedOffBy).toBe(ann);
  },
);

test('after its rescue a host counts as out, and may serve: nobody takes it unasked', () => {
  const host = provisioned();
  asked(host, { kind: 'rescue', reason: 'lost its root file system' });
  finished(host);
  expect(seenOf(host)).toMatchObject({
    service: 'out',
    keptBy: { kind: 'rescue', text: expect.stringContaining('retry') },
  });
  asked(host, { kind: 'retry' });
  const left = seenOf(host);
  expect(left).toMatchObject({ service: 'unseen', keptBy: undefined });
  expect(left.illness?.text).toContain('rackwright host power reset h1');
  // It may have been rebooted in the runner, which is not observed.
  const pool = new Rollout(2, { rollout: { gate: { approval: true } } }).push('A');
  pool.set(1, { ...left, name: 'hosts/h1', uid: 'u1', labels: { pool: 'p' } });
  pool.push('B');
  expect(pool.slots).toMatchObject([{ host: 'hosts/h1', state: RolloutSlotState.GATE }]);
  asked(host, reset);
  finished(host);
  expect(seenOf(host)).toMatchObject({ service: 'in', illness: undefined });
});

test('a person’s act on a host that proves its image is no failure of the image', () => {
  for (const isInRescue of [true, false]) {
    const rollout = { soak: durationFromMs(3_600_000) };
    const pool = new Rollout(3, { rollout }).push('A').push('B');
    const first = pool.out;
    pool.end(first);
    const hands = isInRescue ? { isInRescue } : { switchedOffBy: ann };
    pool.set(Number(first.slice(1)), {
      illness: { kind: 'off', text: 'it is off' },
      keptBy: { kind: 'rescue', text: 'ann' },
      ...hands,
    });
    pool.reconcile();
    pool.nowMs += 20 * 60_000;
    expect(pool.reconcile().out).toBe('');
    expect([pool.surveyed().failedCount, pool.surveyed().stop]).toEqual([0, undefined]);
    expect(pool.condition('Degraded')).toBe('HostKept');
  }
});
