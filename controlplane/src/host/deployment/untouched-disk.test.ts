/** What a host that was not reimaged after all says of that, and when it is over. */
import { create } from '@bufbuild/protobuf';
import {
  agent,
  FaultSchema,
  FaultSeverity,
  HostGoal,
  HostState,
  RunKind,
  RunPhase,
} from '@rackwright/api';
import { expect, test } from 'vitest';
import { type Bench, bench, done, failed, inspected, verified } from '../testing/bench.ts';

const image = (digit: string) => `registry.example/os@sha256:${digit.repeat(64)}`;
const first = image('1');
const second = image('2');
const unavailable = untouched('imageNotFound');

function status({ record }: Bench) {
  const found = record.host?.status;
  if (found === undefined) throw new Error('a host has a status');
  return found;
}

function untouched(type: string): agent.Report['result'] {
  const value = create(agent.FailedSchema, { type, message: type, disksUntouched: true });
  return { case: 'failed', value };
}

function inService(): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  Object.assign(status(host), { state: HostState.PROVISIONED, image: first, poweredOn: true });
  host.request({ kind: 'claim', reason: 'mine' });
  return host;
}

/** Until nothing runs. */
function finish(host: Bench): void {
  for (let count = 0; count < 20 && status(host).run?.phase !== RunPhase.ENDED; count++) {
    host.report(done);
  }
  expect(status(host).run?.phase).toBe(RunPhase.ENDED);
}

/** A reimage of which the step that writes ends so, and whatever follows by itself. */
function reimage(host: Bench, to: string, end: agent.Report['result']): void {
  host.request({ kind: 'reimage', image: to });
  const stepAt = () => {
    const { run } = status(host);
    return run?.steps[run.currentStep]?.name;
  };
  for (let count = 0; count < 20 && stepAt() !== 'deploy.write_image'; count++) {
    if (stepAt() === 'runner.await') host.runnerReady();
    else host.report(stepAt() === 'runner.inspect' ? inspected() : done);
  }
  host.report(end);
  finish(host);
}

function faults(host: Bench) {
  return status(host).faults.map(({ type, severity }) => [type, severity]);
}

test('a host that was not written is warned of, back in service on what it ran', () => {
  const host = inService();
  reimage(host, second, unavailable);
  expect(status(host)).toMatchObject({ state: HostState.PROVISIONED, image: first });
  expect(status(host).run).toMatchObject({ kind: RunKind.POWER, requestedBy: 'system' });
  expect(status(host).poweredOn).toBe(true);
  expect(faults(host)).toEqual([['reimageFailed', FaultSeverity.WARNING]]);
  expect(status(host).faults[0]?.message).toContain(`on the disk: ${first}, untouched`);
  expect(status(host).faults[0]?.clearedBy).toBe('the next run that succeeds, whatever it does');
});

test('the warning of a host that was not written goes with the next run that succeeds', () => {
  for (const kind of ['verify', 'powerReset'] as const) {
    const host = inService();
    reimage(host, second, unavailable);
    const reset = { kind: 'powerReset', bootOldDiskReason: '' } as const;
    host.request(kind === 'verify' ? { kind } : reset);
    if (kind === 'verify') host.report(verified());
    finish(host);
    expect(faults(host), kind).toEqual([]);
  }
});

test('a host whose disk is lost stays ill, whatever a later reimage has not touched', () => {
  const host = inService();
  reimage(host, second, failed('writeError'));
  const ill = [['reimageFailed', FaultSeverity.ERROR]];
  expect(faults(host)).toEqual(ill);
  reimage(host, second, unavailable);
  expect(faults(host)).toEqual(ill);
  host.request({ kind: 'powerReset', bootOldDiskReason: '' });
  finish(host);
  expect(faults(host)).toEqual(ill);
});

test('a host that was warned of and then lost is ill until an image stands there whole', () => {
  const host = inService();
  reimage(host, second, unavailable);
  reimage(host, second, failed('writeError'));
  expect(faults(host)).toEqual([['reimageFailed', FaultSeverity.ERROR]]);
  expect(status(host).faults[0]?.clearedBy).toBe('a reimage or release run that succeeds');
  host.request({ kind: 'powerReset', bootOldDiskReason: '' });
  finish(host);
  expect(faults(host)).toEqual([['reimageFailed', FaultSeverity.ERROR]]);
  reimage(host, second, done);
  expect(faults(host)).toEqual([]);
});

test('what had failed beside is over once a reimage has succeeded', () => {
  const host = inService();
  const message = 'it has failed';
  for (const type of ['powerFailed', 'rescueFailed', 'serviceFailed', 'workflowFailed']) {
    status(host).faults.push(create(FaultSchema, { type, message, severity: FaultSeverity.ERROR }));
  }
  status(host).faults.push(create(FaultSchema, { type: 'bmcTrouble', message }));
  reimage(host, second, done);
  expect(status(host)).toMatchObject({ state: HostState.PROVISIONED, image: second });
  expect(status(host).faults.map(({ type }) => type)).toEqual(['bmcTrouble']);
});

test('under a freeze a reimage begins with nothing: its host stays on until the thaw', () => {
  const host = inService();
  const freeze = { of: 'racks/r1', by: 'user:ann', reason: 'a drill', at: undefined };
  host.context = { ...host.context, freeze };
  host.request({ kind: 'reimage', image: second });
  expect(status(host)).toMatchObject({ poweredOn: true, image: first });
  expect(status(host).run).toMatchObject({ currentStep: 0, waiting: { reason: 'freeze' } });
  expect(host.record.operation?.sentTo).toBeUndefined();
  host.context = { ...host.context, freeze: undefined };
  host.apply({ kind: 'tick' });
  expect(status(host).run?.phase).toBe(RunPhase.RUNNING);
});
