/** Every kind of run besides verify, inspect and clean: its steps, and the host's next state. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  FailureType,
  FaultSeverity,
  HostGoal,
  HostState,
  RerunClass,
  RunKind,
  RunOutcome,
  RunPhase,
  readActor,
  userActor,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { explainHost } from '../explain/explain.ts';
import { displayOf } from '../pass/display.ts';
import type { HostRequest } from '../pass/types.ts';
import {
  type Bench,
  bench,
  done,
  driveToErase,
  failed,
  inspected,
  makeAvailable,
  verified,
  virtioDisk,
} from '../testing/bench.ts';

const status = (host: Bench) => {
  const found = host.record.host?.status;
  if (found === undefined) throw new Error('a host has a status');
  return found;
};
const stepNames = (host: Bench) => status(host).run?.steps.map(({ name }) => name);
const faults = (host: Bench) => status(host).faults.map(({ type }) => type);
const explained = (host: Bench) =>
  explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });

function refusal(host: Bench, request: HostRequest, actor = 'user:test'): string {
  const before = host.record;
  const outcome = host.try({ kind: 'request', request, by: { actor: readActor(actor) } });
  expect(host.record).toBe(before);
  if (outcome.kind !== 'refused') throw new Error(`${request.kind} was accepted`);
  return outcome.refusal.message;
}

/** A verified host at its goal. */
function manageable(): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  return host;
}

/** Runs an image; tests that do not cover the way there begin here. */
function provisioned(poweredOn = true): Bench {
  const host = manageable();
  host.request({ kind: 'adopt', to: HostState.PROVISIONED, reason: '' });
  host.report(verified());
  Object.assign(status(host), { poweredOn, image: first });
  return offer(host);
}

function available(): Bench {
  const host = manageable();
  makeAvailable(host);
  const { spec } = host.record.host ?? {};
  if (spec !== undefined) spec.goal = HostGoal.AVAILABLE;
  return offer(host);
}

/** Completes steps until the one of this name is in progress. */
function driveTo(host: Bench, name: string): void {
  for (let count = 0; count < stepsMax && stepAt(host) !== name; count++) completeStep(host);
  expect(stepAt(host)).toBe(name);
}

/** Completes every step of the present run. */
function finish(host: Bench): void {
  const number = status(host).run?.number;
  const goesOn = () => status(host).run?.number === number && stepAt(host) !== undefined;
  for (let count = 0; count < stepsMax && goesOn(); count++) completeStep(host);
  expect(status(host).run?.outcome).toBe(RunOutcome.SUCCEEDED);
}

const stepsMax = 20;

function stepAt(host: Bench): string | undefined {
  const { run } = status(host);
  return run?.phase === RunPhase.ENDED ? undefined : run?.steps[run.currentStep]?.name;
}

function completeStep(host: Bench): void {
  const at = stepAt(host) ?? '';
  if (at === 'runner.await') host.runnerReady();
  else host.report(at.startsWith('runner.inspect') ? inspected() : done);
}

/** The steps of the runner of a host under test, besides erasing. */
function offer(host: Bench): Bench {
  const reshape = create(agent.StepDescriptionSchema, {
    name: inBand.step,
    rerunClass: RerunClass.SAFE,
    destructive: true,
  });
  const runnerSteps = [harmless('deploy.look'), reshape];
  host.snapshot = { ...host.snapshot, facts: { ...host.snapshot.facts, runnerSteps } };
  return host;
}

function harmless(name: string): agent.StepDescription {
  return create(agent.StepDescriptionSchema, {
    name,
    rerunClass: RerunClass.SAFE,
    destructive: false,
  });
}

const inBand = { step: 'deploy.reshape', arguments: {} };
const first = `registry.example/os@sha256:${'1'.repeat(64)}`;
const second = `registry.example/os@sha256:${'2'.repeat(64)}`;
const provision = { kind: 'provision', image: second } as const;
const reimage = { kind: 'reimage', image: second } as const;
const release = { kind: 'release', reason: 'no longer needed' } as const;

test('a service of a provisioned host that is on ends with it on again, from its disk', () => {
  const host = provisioned();
  const epoch = status(host).useEpoch;
  host.request({ kind: 'service', steps: [inBand] });
  expect(stepNames(host)).toEqual([
    'power.off',
    'power.bootRunner',
    'runner.await',
    inBand.step,
    'power.off',
    'power.on',
  ]);
  driveTo(host, 'power.on');
  const { kind } = host.operation();
  expect(kind.case === 'setPower' && kind.value.bootFrom).toBe(agent.BootTarget.DISK);
  finish(host);
  expect(status(host)).toMatchObject({ state: HostState.PROVISIONED, poweredOn: true });
  expect(status(host).useEpoch).toBe(epoch + 1n);
});

test('a service of a host that is off leaves it off', () => {
  const host = provisioned(false);
  host.request({ kind: 'service', steps: [inBand] });
  expect(stepNames(host)?.at(-1)).toBe('power.off');
});

test('a service whose steps are the agent’s boots nothing', () => {
  const host = provisioned();
  const agentSteps = [harmless('management.reset_bmc')];
  host.snapshot = { ...host.snapshot, agentSteps };
  host.request({ kind: 'service', steps: [{ step: 'management.reset_bmc', arguments: {} }] });
  expect(stepNames(host)).toEqual(['management.reset_bmc']);
});

test('a service does not erase: that is a clean', () => {
  const steps = [inBand, { step: 'deploy.erase_devices', arguments: {} }];
  const by = { actor: userActor('test') };
  const outcome = provisioned().try({ kind: 'request', request: { kind: 'service', steps }, by });
  expect(outcome.kind === 'refused' && outcome.refusal.fieldViolations).toEqual([
    { field: 'steps[1].step', description: expect.stringContaining('release it first') },
  ]);
});

test('a destructive service takes an available host out of its state before it begins', () => {
  const host = available();
  host.request({ kind: 'service', steps: [inBand] });
  expect(status(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
});

test('a service that destroys nothing keeps an available host, and its certificates', () => {
  const host = available();
  const epoch = status(host).useEpoch;
  host.request({ kind: 'service', steps: [{ step: 'deploy.look', arguments: {} }] });
  finish(host);
  expect(status(host)).toMatchObject({ state: HostState.AVAILABLE, dirty: false });
  expect(status(host).useEpoch).toBe(epoch);
  expect(status(host).poweredOn).toBe(false);
});

test('a failed service switches an available host off, and one in use on again', () => {
  for (const host of [available(), provisioned()]) {
    const { state } = status(host);
    host.request({ kind: 'service', steps: [{ step: 'deploy.look', arguments: {} }] });
    driveTo(host, 'deploy.look');
    host.report(failed('internal', 'the step broke'));
    expect(status(host).run).toMatchObject({ kind: RunKind.POWER, requestedBy: 'system' });
    expect(stepNames(host)).toEqual(
      state === HostState.AVAILABLE ? ['power.off'] : ['power.off', 'power.on'],
    );
    finish(host);
    expect(status(host).state).toBe(state);
    expect(faults(host)).toEqual(['serviceFailed']);
    expect(status(host).faults[0]?.severity).toBe(FaultSeverity.ERROR);
  }
});

test('an available host that is on after a failed service, and not by us, is cleaned again', () => {
  const host = available();
  host.request({ kind: 'service', steps: [{ step: 'deploy.look', arguments: {} }] });
  driveTo(host, 'deploy.look');
  host.report(failed('internal', 'the step broke'));
  const observations = create(agent.ObservationsSchema, { poweredOn: true });
  const value = create(agent.HostUpdatedSchema, { observations });
  const result = { case: 'hostUpdated' as const, value };
  const report = create(agent.ReportSchema, { hostUid: 'u1', result });
  host.apply({ kind: 'report', report });
  expect(status(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
});

test('an available host that stays on after a failed service is no longer available', () => {
  for (const why of ['held', 'agentAway', 'refused']) {
    const host = available();
    host.request({ kind: 'service', steps: [{ step: 'deploy.look', arguments: {} }] });
    driveTo(host, 'deploy.look');
    if (why === 'held') {
      host.request({ kind: 'hold', scope: 2, reason: 'no switching', untilMs: undefined });
    }
    host.report(failed('internal', 'the step broke'));
    if (why === 'refused') host.report(failed('notApplied', 'power stayed on'));
    if (why === 'agentAway') {
      host.nowMs += 10 * 60_000;
      host.report(done);
    }
    expect(status(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  }
});

test('a release switches off, gives up the claim of who asked, and leaves the host dirty', () => {
  const host = provisioned();
  host.request({ kind: 'claim', reason: 'database' });
  host.request(release);
  expect(stepNames(host)).toEqual(['power.off']);
  host.report(done);
  expect(status(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  expect(status(host).claim).toBeUndefined();
});

test('after a release the goal has the host cleaned', () => {
  const host = provisioned();
  const { spec } = host.record.host ?? {};
  if (spec !== undefined) spec.goal = HostGoal.AVAILABLE;
  host.request(release);
  host.report(done);
  expect(status(host).run?.kind).toBe(RunKind.INSPECT);
});

test('a release that fails leaves the host provisioned with a fault and its claim', () => {
  const host = provisioned();
  host.request({ kind: 'claim', reason: 'database' });
  host.request(release);
  host.report(failed('notApplied', 'power stayed on'));
  expect(status(host)).toMatchObject({ state: HostState.PROVISIONED });
  expect(faults(host)).toEqual(['releaseFailed']);
  expect(status(host).claim?.by).toBe('user:test');
  expect(explained(host).unblock.at(-1)).toContain('rackwright host release h1');
  host.request(release);
  host.report(done);
  expect(faults(host)).toEqual([]);
});

test('a release is refused while somebody else claims the host, and by a hold on it', () => {
  const host = provisioned();
  host.request({ kind: 'claim', reason: 'database' });
  expect(refusal(host, release, 'user:other')).toContain('claimed by user:test since 2026-01-01T');
  const hold = { kind: 'hold', scope: 3, reason: 'audit', untilMs: undefined } as const;
  host.request(hold);
  expect(refusal(host, release)).toContain('audit');
  expect(refusal(host, { kind: 'delete', reason: '' })).toContain('busy: claimed by user:test');
  host.request({ kind: 'unclaim', reason: '' });
  expect(refusal(host, { kind: 'delete', reason: '' })).toContain('audit');
});

test('rescue boots the runner by a grant of its own, and no certificate survives it', () => {
  const host = provisioned();
  const epoch = status(host).useEpoch;
  host.request({ kind: 'rescue', reason: 'lost its root file system' });
  driveTo(host, 'power.bootRescue');
  const { kind } = host.operation();
  expect(kind.case === 'setPower' && kind.value.bootFrom).toBe(agent.BootTarget.RESCUE);
  expect(status(host).useEpoch).toBe(epoch + 1n);
  host.report(done);
  host.runnerReady();
  expect(status(host).run?.outcome).toBe(RunOutcome.SUCCEEDED);
  expect(displayOf(status(host))).toBe('provisioned, in rescue');
  expect(explained(host).headline).toContain(`it runs the runner, and not ${first}`);
  expect(explained(host).unblock[0]).toContain('rackwright host power reset h1');
});

test('a host that is being rescued is not erased by the goal, also when the boot fails', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  host.report(verified());
  host.request({ kind: 'abort', reason: 'wait' });
  host.report(failed('cancelled'));
  host.request({ kind: 'rescue', reason: 'data' });
  host.report(failed('notApplied', 'power stayed on'));
  host.nowMs += 3_600_000;
  host.apply({ kind: 'tick' });
  expect(status(host).run?.phase).toBe(RunPhase.ENDED);
  expect(explained(host).unblock[0]).toContain('rackwright host retry h1');
  host.request({ kind: 'retry' });
  expect(status(host).run).toMatchObject({ kind: RunKind.INSPECT, phase: RunPhase.RUNNING });
});

test('a rescue after a failed clean lasts, and that clean is not gone on with', () => {
  const host = bench();
  driveToErase(host);
  host.report(failed('internal', 'broke'));
  host.request({ kind: 'rescue', reason: 'save the data' });
  host.report(done);
  host.report(done);
  host.runnerReady();
  host.nowMs += 48 * 3_600_000;
  host.apply({ kind: 'tick' });
  expect(displayOf(status(host))).toBe('manageable, in rescue');
  expect(refusal(host, { kind: 'resume', reason: '' })).toContain('no failed clean');
});

test('after another machine answered, its identity is proved again before anything boots', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  host.report(verified());
  host.report(failed('identityMismatch', 'another BMC answers at 10.0.0.1'));
  host.nowMs += 48 * 3_600_000;
  host.apply({ kind: 'tick' });
  expect(status(host).run?.phase).toBe(RunPhase.ENDED);
  host.request({ kind: 'retry' });
  expect(status(host).run?.kind).toBe(RunKind.VERIFY);
  host.report(verified());
  expect(status(host).run).toMatchObject({ kind: RunKind.INSPECT, phase: RunPhase.RUNNING });
});

test('a power command that met another machine does not make it this host’s by itself', () => {
  const host = provisioned();
  host.request({ kind: 'powerOff' });
  host.report(failed('identityMismatch', 'another BMC answers at 10.0.0.1'));
  host.nowMs += 48 * 3_600_000;
  host.apply({ kind: 'tick' });
  expect(status(host).run).toMatchObject({ kind: RunKind.POWER, phase: RunPhase.ENDED });
  expect(explained(host).unblock.at(-1)).toBe('then: rackwright host verify h1');
});

test('an adopted host is only verified, and then it is what the person said', () => {
  for (const to of [HostState.EXTERNAL, HostState.PROVISIONED]) {
    const host = manageable();
    host.request({ kind: 'adopt', to, reason: 'runs already' });
    expect(stepNames(host)).toEqual(['bmc.verifyAccess']);
    host.report(verified());
    expect(status(host)).toMatchObject({ state: to, dirty: true });
    host.apply({ kind: 'tick' });
    expect(status(host).run?.phase).toBe(RunPhase.ENDED);
  }
});

test('an adoption asked for during the first verify keeps the goal from the host', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  host.request({ kind: 'adopt', to: HostState.EXTERNAL, reason: '' });
  host.report(verified());
  expect(status(host).run?.kind).toBe(RunKind.ADOPT);
  host.report(failed('authentication', 'wrong password'));
  expect(status(host).state).toBe(HostState.MANAGEABLE);
  expect(faults(host)).toEqual(['bmcAuthentication', 'adoptFailed']);
  expect(explained(host).headline).toContain('Rackwright has stopped trying to adopt it');
  host.snapshot = { ...host.snapshot, credentialVersion: 2n };
  host.apply({ kind: 'tick' });
  expect(status(host).run?.kind).toBe(RunKind.ADOPT);
  host.report(verified());
  expect(status(host).state).toBe(HostState.EXTERNAL);
  expect(faults(host)).toEqual([]);
  expect(explained(host).headline).toContain('someone else’s care');
});

test('an external host is never booted, written, wiped or switched off by a delete', () => {
  const host = manageable();
  host.request({ kind: 'adopt', to: HostState.EXTERNAL, reason: '' });
  host.report(verified());
  status(host).poweredOn = true;
  for (const request of [
    { kind: 'clean', steps: [] },
    { kind: 'inspect' },
    { kind: 'service', steps: [inBand] },
    { kind: 'rescue', reason: '' },
    provision,
  ] satisfies HostRequest[]) {
    expect(refusal(host, request)).toContain('external');
  }
  host.request({ kind: 'delete', reason: 'not ours' });
  expect(stepNames(host)).toEqual(['host.forget']);
});

test('provision is refused by an agent that knows no deployments; else it writes', () => {
  const host = available();
  host.snapshot = { ...host.snapshot, agentSteps: [] };
  expect(refusal(host, provision)).toContain('does not know deploy.fetch_image; update it first');
  const agentSteps = [harmless('deploy.fetch_image'), harmless('deploy.await_image')];
  host.snapshot = { ...host.snapshot, agentSteps };
  const epoch = status(host).useEpoch;
  host.request(provision);
  driveTo(host, 'runner.inspect');
  expect(status(host)).toMatchObject({ state: HostState.AVAILABLE, dirty: false });
  driveTo(host, 'deploy.write_image');
  expect(status(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  const { kind } = host.operation();
  expect(kind.case === 'runStep' && kind.value).toMatchObject({
    step: 'deploy.write_image',
    destructive: true,
    arguments: { image: provision.image },
  });
  finish(host);
  expect(status(host).useEpoch).toBeGreaterThan(epoch);
  expect(status(host)).toMatchObject({ state: HostState.PROVISIONED, image: provision.image });
  expect(status(host).poweredOn).toBe(true);
});

test('no image is written onto a machine that is not the one whose BMC was switched on', () => {
  const host = available();
  host.request(provision);
  driveTo(host, 'runner.inspect');
  host.report(inspected([virtioDisk], { uuid: new Uint8Array(16).fill(9), serial: 'SN-9' }));
  expect(status(host).run?.error?.type).toBe(FailureType.IDENTITY_MISMATCH);
});

test('a power-on that was cut short and happened is done; one of a host that is on fails', () => {
  const onAlready: agent.Report['result'] = {
    case: 'retryAfter',
    value: create(agent.RetryAfterSchema, {
      reason: agent.ConflictReason.INVALID_STATE,
      message: 'the host is on',
      delay: durationFromMs(10_000),
    }),
  };
  const host = provisioned();
  host.request({ kind: 'powerReset', bootOldDiskReason: '' });
  host.report(done);
  host.report(failed('interrupted'));
  host.report(onAlready);
  expect(status(host).run?.outcome).toBe(RunOutcome.SUCCEEDED);
  const other = provisioned();
  other.request({ kind: 'powerOn', bootOldDiskReason: '' });
  other.report(onAlready);
  expect(status(other).lastError?.failure?.message).toContain('ask for a reset');
  expect(explained(other).unblock.at(-1)).toContain('rackwright host power reset h1');
});

test('a failed provision leaves the host manageable and dirty, to be cleaned after a pause', () => {
  const host = available();
  host.request(provision);
  driveTo(host, 'deploy.write_image');
  host.report(failed('ioError', 'the disk is full'));
  expect(status(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  expect(faults(host)).toEqual(['provisionFailed']);
  host.nowMs += 3_600_000;
  host.apply({ kind: 'tick' });
  expect(status(host).run?.kind).toBe(RunKind.CLEAN);
});

test('only who claims a host reimages it, and a failure names what is on its disk', () => {
  const host = provisioned();
  expect(refusal(host, reimage)).toContain('claim it first');
  host.request({ kind: 'claim', reason: 'mine' });
  expect(refusal(host, reimage, 'user:other')).toContain('claimed by user:test');
  host.request(reimage);
  driveTo(host, 'runner.inspect');
  host.report(failed('internal', 'no inventory'));
  expect(status(host).faults[0]?.message).toContain(`on the disk: ${first}, untouched`);
  expect(stepNames(host)).toEqual(['power.off', 'power.on']);
  finish(host);
  host.request(reimage);
  driveTo(host, 'deploy.write_image');
  host.report(failed('ioError', 'write error'));
  expect(status(host).faults[0]?.message).toContain(`a part of ${reimage.image}`);
  expect(status(host)).toMatchObject({ state: HostState.PROVISIONED, image: '' });
  expect(stepNames(host)).toEqual(['power.off']);
  finish(host);
  host.request(reimage);
  finish(host);
  expect(faults(host)).toEqual([]);
});

test('a claimed host is neither inspected nor cleaned by its goal', () => {
  const host = bench();
  host.request({ kind: 'claim', reason: 'forensics' });
  host.report(verified());
  expect(status(host).run).toMatchObject({ kind: RunKind.VERIFY, phase: RunPhase.ENDED });
  expect(refusal(host, { kind: 'clean', steps: [] }, 'user:other')).toContain('forensics');
  expect(explained(host).unblock[0]).toContain('rackwright host unclaim h1');
  host.request({ kind: 'unclaim', reason: 'done' });
  expect(status(host).run?.kind).toBe(RunKind.INSPECT);
});
