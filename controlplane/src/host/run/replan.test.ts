/** A runner of another version than the one that a clean was planned for. */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  FailureType,
  FleetSpecSchema,
  HostGoal,
  RerunClass,
  RunOutcome,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import {
  type Bench,
  bench,
  bootOfRunner,
  done,
  driveToInspect,
  erased,
  inspected,
  verified,
  virtioDisk,
} from '../testing/bench.ts';

const described = (name: string, priority: number, rebootAfter = false) =>
  create(agent.StepDescriptionSchema, {
    name,
    priority,
    rebootAfter,
    rerunClass: RerunClass.SAFE,
    destructive: false,
  });

const erase = described('deploy.erase_devices', 10);
const ofV1 = [described('bios.set', 90, true), described('vendor.old', 5), erase];
const ofV2 = [described('bios.set', 90, true), described('vendor.new', 20), erase];

const runOf = (host: Bench) => {
  const run = host.record.host?.status?.run;
  if (run === undefined) throw new Error('no run');
  return run;
};
const pendingOf = (host: Bench) =>
  runOf(host)
    .steps.slice(runOf(host).currentStep)
    .map(({ name, title }) => title || name);
const stepNow = (host: Bench) => pendingOf(host)[0];

/** From its request to the presence of the runner in the boot after the erasure. */
function cleanToSecondBoot(host: Bench, steps: agent.StepDescription[]): void {
  host.request({ kind: 'clean', steps: [] });
  host.report(done);
  host.report(done);
  runnerComes(host, '1', steps);
  host.report(inspected());
  expect(stepNow(host)).toBe('deploy.erase_devices');
  const evidence = host.evidence([erased(virtioDisk)]);
  host.report({ case: 'complete', value: create(agent.CompleteSchema, { evidence }) });
  while (stepNow(host) !== 'runner.await') {
    const looks = host.operation().kind.case === 'inspect';
    host.report(looks ? inspected() : done);
  }
}

const image = `registry.example.org/tools/check@sha256:${'a'.repeat(64)}`;
const fleetWith = (...names: string[]) =>
  create(FleetSpecSchema, {
    templates: { imageRepositories: ['registry.example.org/tools/*'] },
    ownCleanSteps: names.map((name) => ({ name, image })),
  });

function manageable(runnerSteps = ofV1, retired = false): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE, retired });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const { facts } = host.snapshot;
  host.snapshot = {
    ...host.snapshot,
    facts: { ...facts, runnerSteps, runnerVersion: '1' },
  };
  return host;
}

/** A runner of this version has come up from the present boot. */
function runnerComes(host: Bench, runnerVersion: string, steps: agent.StepDescription[]): void {
  const bootOperationId = bootOfRunner(runOf(host));
  const ready = { hostUid: 'u1', bootOperationId, runnerSession: 's1', bootId: 'b1' };
  const value = create(agent.HostUpdatedSchema, {
    observations: { runnerReady: { ...ready, runnerVersion, steps } },
  });
  const result = { case: 'hostUpdated' as const, value };
  host.apply({ kind: 'report', report: create(agent.ReportSchema, { hostUid: 'u1', result }) });
}

test('the steps of a runner are taken from each list that has changed, and from no other', () => {
  const host = manageable();
  host.request({ kind: 'clean', steps: [] });
  host.report(done);
  host.report(done);
  const { facts: before } = host.snapshot;
  runnerComes(host, '1', [...ofV1]);
  expect(host.snapshot.facts).toBe(before);
  // The same number of steps, one of which is different.
  const changed = [described('bios.set', 90), ...ofV1.slice(1)];
  runnerComes(host, '1', changed);
  expect(host.snapshot.facts).toMatchObject({ runnerSteps: changed, runnerVersion: '1' });
  expect(host.snapshot.facts.runnerStepsAt).toEqual(timestampFromMs(host.nowMs));
  runnerComes(host, '1', changed.slice(1));
  expect(host.snapshot.facts.runnerSteps).toEqual(changed.slice(1));
  runnerComes(host, '2', changed.slice(1));
  expect(host.snapshot.facts.runnerVersion).toBe('2');
});

test('steps that have not begun are planned again from the new list; done ones stay done', () => {
  const host = manageable();
  host.request({ kind: 'clean', steps: [] });
  expect(runOf(host).runnerVersion).toBe('1');
  host.report(done);
  host.report(done);
  runnerComes(host, '1', ofV1);
  host.report(inspected());
  host.report(done);
  host.report(done);
  host.report(done);
  expect(pendingOf(host)).toContain('vendor.old');
  runnerComes(host, '2', ofV2);
  expect(runOf(host).runnerVersion).toBe('2');
  expect(pendingOf(host)).toEqual([
    'runner.inspect',
    'vendor.new',
    'deploy.erase_devices',
    'runner.inspectAgain',
    'power.off',
  ]);
  expect(host.record.change?.cause).toContain('planned anew for runner 2');
  host.report(inspected());
  host.report(done);
  const evidence = host.evidence([erased(virtioDisk)]);
  host.report({ case: 'complete', value: create(agent.CompleteSchema, { evidence }) });
  host.report(inspected());
  host.report(done);
  expect(runOf(host).outcome).toBe(RunOutcome.SUCCEEDED);
});

test('the plan that was made before any runner spoke gives way to the first one’s list', () => {
  const host = manageable();
  host.snapshot = {
    ...host.snapshot,
    facts: { ...host.snapshot.facts, runnerSteps: [], runnerVersion: '' },
  };
  host.request({ kind: 'clean', steps: [] });
  host.report(done);
  runnerComes(host, '2', ofV2);
  expect(pendingOf(host), 'told before the power-on was').toContain('power.bootRunner');
  host.report(done);
  expect(pendingOf(host)).toContain('vendor.new');
  expect(pendingOf(host)).toContain('bios.set');
  expect(host.operation().kind.case).toBe('inspect');
});

test('a list that a person wrote keeps its steps, and ends with one that the runner lacks', () => {
  const steps = ['hold', 'vendor.old'].map((step) => ({ step, arguments: {} }));
  const host = manageable();
  host.request({ kind: 'clean', steps });
  host.report(done);
  host.report(done);
  runnerComes(host, '2', ofV2);
  expect(runOf(host)).toMatchObject({ outcome: RunOutcome.FAILED });
  expect(runOf(host).error).toMatchObject({
    type: FailureType.UNSUPPORTED,
    message: 'the runner is version 2 now (it was 1) and has no step vendor.old',
  });
});

test('ids are not used twice when places of steps change their meaning', () => {
  const host = manageable();
  host.request({ kind: 'clean', steps: [] });
  driveToInspect(host);
  host.report(inspected());
  const used = new Set<string>();
  const note = () => {
    const { id } = host.operation();
    expect(used.has(id), id).toBe(false);
    used.add(id);
  };
  note();
  const value = create(agent.RetryAfterSchema, {
    reason: agent.ConflictReason.INVALID_STATE,
    message: 'over',
    delay: {},
  });
  host.report({ case: 'retryAfter', value });
  for (const _ of ['off', 'on']) {
    note();
    host.report(done);
  }
  runnerComes(host, '2', [described('vendor.new', 95), ...ofV2.slice(0, 1), erase]);
  note();
  host.report(inspected());
  for (let step = 0; step < 3; step++) {
    note();
    host.report(done);
  }
});

test('a program that the fleet got since the clean began never comes behind the erasure', () => {
  const checks = [described('bios.reset', 5, true), described('bios.check', 4)];
  const steps = [erase, ...checks, described('run.command', 0)];
  const host = manageable(steps);
  cleanToSecondBoot(host, steps);
  host.snapshot = { ...host.snapshot, fleet: fleetWith('check') };
  runnerComes(host, '2', steps);
  expect(runOf(host).runnerVersion).toBe('2');
  expect(pendingOf(host)).toContain('bios.check');
  expect(pendingOf(host)).not.toContain('own.check');
});

test('a program that the run has before it stays, as the run has it, and no other comes', () => {
  const steps = [described('bios.set', 200, true), erase, described('run.command', 0)];
  const host = manageable(steps);
  host.snapshot = { ...host.snapshot, fleet: fleetWith('check') };
  host.request({ kind: 'clean', steps: [] });
  host.report(done);
  host.report(done);
  const fleet = fleetWith('check', 'late');
  for (const own of fleet.ownCleanSteps) own.retries = 3;
  host.snapshot = { ...host.snapshot, fleet };
  runnerComes(host, '2', [...steps, described('vendor.new', 20)]);
  const order = ['own.check', 'power.off', 'vendor.new', 'deploy.erase_devices'];
  expect(pendingOf(host).filter((name) => order.includes(name))).toEqual([
    ...['power.off', ...order],
    'power.off',
  ]);
  expect(pendingOf(host)).not.toContain('own.late');
  expect(runOf(host).steps.find(({ title }) => title === 'own.check')?.retries).toBe(0);
});

test('a runner of another version in the boot of the reading at the end plans nothing', () => {
  const steps = [erase, described('deploy.verify_erased', 0), described('run.command', 0)];
  const host = manageable(steps, true);
  cleanToSecondBoot(host, steps);
  const before = pendingOf(host);
  expect(before).toEqual(['runner.await', 'deploy.verify_erased', 'power.off']);
  runnerComes(host, '2', [...steps, described('vendor.new', 20)]);
  expect(runOf(host).runnerVersion).toBe('2');
  expect(pendingOf(host)).toEqual(before.slice(1));
});
