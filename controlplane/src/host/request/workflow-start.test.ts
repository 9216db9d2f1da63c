/** Reasons against the start of a workflow on a host, with the name of the step. */
import { create } from '@bufbuild/protobuf';
import {
  agent,
  asWorkflowUid,
  FailureType,
  FleetSpecSchema,
  HostState,
  RunOutcome,
  StepState,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import type { WorkflowStep } from '../pass/types.ts';
import { bootOfRunner, done } from '../testing/bench.ts';
import { refusalOf } from '../testing/deleting.ts';
import {
  bootNow,
  exited,
  rendered,
  script,
  startOn,
  workable,
  workflowRun,
  wrote,
} from '../testing/templates.ts';

test('a second start is refused with the name of the run that holds the host', () => {
  const host = workable();
  startOn(host, [script('a')]);
  const templateDigest = 'd1';
  const text = refusalOf(host, {
    kind: 'workflow',
    workflowRun,
    workflowUid: asWorkflowUid('w1'),
    templateDigest,
    steps: [script('a')],
    timeoutMs: undefined,
  });
  expect(text).toContain('busy: workflow 2 holds the host (at power.off)');
});

test('a step that the host or the fleet does not allow is refused by its name', () => {
  const host = workable();
  const refusal = (...steps: Parameters<typeof startOn>[1]) =>
    refusalOf(host, {
      kind: 'workflow',
      workflowRun,
      workflowUid: asWorkflowUid('w1'),
      templateDigest: 'd1',
      steps,
      timeoutMs: undefined,
    });
  expect(refusal(rendered('x', 'firmware.flash'))).toContain(
    'step x: the agent of racks/r1 offers no firmware.flash; it offers: management.clear_event_log',
  );
  const image = `registry.example.org/tools/check@sha256:${'0'.repeat(64)}`;
  const command = rendered('c', 'run.command', { arguments: { image } });
  expect(refusal(command)).toContain('allows no command from registry.example.org/tools/check');
  const call = (url: string) => rendered('w', 'webhook', { arguments: { url } });
  expect(refusal(call('https://hooks.example.org/x'))).toMatch(
    /step w: .*(allows no webhook|user)/,
  );
  allow(host);
  expect(refusal(command)).toContain('accepted');
  expect(refusal(call('https://hooks.example.org/x'))).toContain('accepted');
  expect(refusal(call('https://hooks.example.org.evil/x'))).toMatch(
    /step w: .*(allows no webhook|user)/,
  );
  expect(refusal(call('https://hooks.example.org@evil/x'))).toMatch(
    /step w: .*(allows no webhook|user)/,
  );
  expect(refusal(rendered('go', 'bootDisk'))).toContain('may hold data of its last use');
  expect(refusal(script('big', { arguments: { script: 'x'.repeat(100_000) } }))).toContain(
    'bytes; at most 98304 are run',
  );
  expect(refusal()).toContain('steps is empty');
});

function allow(host: ReturnType<typeof workable>): void {
  const templates = {
    imageRepositories: ['registry.example.org/tools/*'],
    plainHttpRegistries: [],
    webhookUrls: ['https://hooks.example.org/'],
  };
  host.snapshot = { ...host.snapshot, fleet: create(FleetSpecSchema, { templates }) };
}

test.each([
  [HostState.NEW, 'no workflow runs before its BMC is proved'],
  [HostState.EXTERNAL, 'no workflow runs on it'],
])('in state %s no workflow is started', (state, text) => {
  const host = workable(state);
  const asked = {
    kind: 'workflow',
    workflowRun,
    workflowUid: asWorkflowUid('w1'),
    templateDigest: 'd1',
  } as const;
  const said = refusalOf(host, { ...asked, steps: [script('a')], timeoutMs: undefined });
  expect(said).toContain(text);
});

test('a disk that the template writes itself may be booted, others need a reason', () => {
  const asked = {
    kind: 'workflow',
    workflowRun,
    workflowUid: asWorkflowUid('w1'),
    templateDigest: 'd1',
  } as const;
  const go = rendered('go', 'bootDisk');
  const steps = [script('write', { destructive: true }), go];
  expect(refusalOf(workable(), { ...asked, steps, timeoutMs: undefined })).toContain('accepted');
  const clean = workable(HostState.AVAILABLE);
  expect(refusalOf(clean, { ...asked, steps: [go], timeoutMs: undefined })).toContain('accepted');
});

test.each<[string, Partial<WorkflowStep>]>([
  ['was skipped', { condition: 'steps.look.exitCode == 7' }],
  ['has failed', { onFailure: 'continue' }],
])('a disk is not booted when the step that should have written it %s', (_name, more) => {
  const host = workable();
  startOn(host, [
    script('look'),
    script('write', { destructive: true, ...more }),
    rendered('go', 'bootDisk'),
  ]);
  bootNow(host);
  host.report(wrote(''));
  if (more.onFailure !== undefined) host.report(exited(1));
  host.report(done);
  const ended = host.record.host?.status?.run;
  expect(ended?.outcome).toBe(RunOutcome.FAILED);
  expect(ended?.error).toMatchObject({
    type: FailureType.NOT_ALLOWED,
    message: expect.stringContaining('go: the disk may hold data of its last use'),
  });
  expect(ended?.steps.find(({ name }) => name === 'power.on')?.state).toBe(StepState.FAILED);
});

test('a disk that was written is booted, and one that held nothing before', () => {
  for (const dirty of [true, false]) {
    const host = workable();
    const { status } = host.record.host ?? {};
    if (status !== undefined) status.dirty = dirty;
    startOn(host, [script('write', { destructive: dirty }), rendered('go', 'bootDisk')]);
    bootNow(host);
    host.report(wrote(''));
    host.report(done);
    const { kind } = host.operation();
    expect(kind).toMatchObject({ case: 'setPower', value: { on: true } });
  }
});

test('a host that is handed over is available no more, whatever the step says of itself', () => {
  const host = workable(HostState.AVAILABLE);
  startOn(host, [script('kexec', { handOff: true, destructive: false }), script('after')]);
  expect(host.record.host?.status).toMatchObject({
    state: HostState.MANAGEABLE,
    dirty: true,
    useEpoch: 2n,
  });
});

test('a template that may write voids certificates; the host is erased before removal', () => {
  const host = workable();
  const { status } = host.record.host ?? {};
  if (status !== undefined) status.dirty = false;
  startOn(host, [script('write', { destructive: true })]);
  expect(host.record.host?.status).toMatchObject({ dirty: true, useEpoch: 2n });
  bootNow(host);
  host.report(wrote(''));
  host.report(done);
  expect(host.record.eraseBeforeRemoval).toBe(true);
  const other = workable();
  startOn(other, [script('look')]);
  bootNow(other);
  other.report(wrote(''));
  other.report(done);
  expect(other.record.eraseBeforeRemoval).toBe(false);
  expect(other.record.host?.status?.useEpoch).toBe(1n);
});

test('R8: a step is asked only of a runner that has named it', () => {
  const host = workable();
  startOn(host, [script('a')]);
  host.report(done);
  host.report(done);
  const ready = {
    hostUid: 'u1',
    bootOperationId: bootOfRunner(host.record.host?.status?.run),
    runnerSession: 's1',
    runnerVersion: 'v1',
    steps: [{ name: 'deploy.erase_devices' }],
  };
  const value = create(agent.HostUpdatedSchema, { observations: { runnerReady: ready } });
  host.report({ case: 'hostUpdated', value }, '');
  expect(host.record.host?.status?.run).toMatchObject({
    outcome: RunOutcome.FAILED,
    error: {
      type: FailureType.UNSUPPORTED,
      message: 'the runner (version v1) has no step run.script; build its ramdisk anew',
    },
  });
});
