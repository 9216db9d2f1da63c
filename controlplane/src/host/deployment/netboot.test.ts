/** Hosts that run their image without a disk: the way of that into service, and out of it early. */
import { clone, create } from '@bufbuild/protobuf';
import { agent, DeploySpecSchema, HostState, RunStepSchema, StepState } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { availableHost, type Bench, done, failed, statusOf, stepAt } from '../testing/bench.ts';
import { netbootOf } from './deployment.ts';

const first = `registry.example/os@sha256:${'1'.repeat(64)}`;
const second = `registry.example/os@sha256:${'2'.repeat(64)}`;
const deploy = create(DeploySpecSchema, { netboot: true });
const provision = { kind: 'provision', image: first, deploy } as const;

function driveTo(host: Bench, name: string): void {
  for (let count = 0; count < 5 && stepAt(host) !== name; count++) host.report(done);
  expect(stepAt(host)).toBe(name);
}

function inService(): Bench {
  const host = availableHost();
  host.request(provision);
  driveTo(host, 'deploy.await_image');
  host.report(done);
  host.request({ kind: 'claim', reason: 'mine' });
  return host;
}

const named = ({ record }: Bench) => netbootOf(record, undefined, new Map());

test('a host without a disk boots its image over the network while it is in service', () => {
  const host = availableHost();
  host.request(provision);
  const names = statusOf(host).run?.steps.map(({ name }) => name);
  expect(names).toEqual([
    'deploy.fetch_image',
    'power.off',
    'power.bootImage',
    'deploy.await_image',
  ]);
  const fetching = host.operation().kind;
  expect(fetching.case === 'runStep' && fetching.value.deployment?.image?.reference).toBe(first);
  host.report(done);
  expect(named(host)).toBeUndefined();
  host.report(done);
  expect(named(host)).toMatchObject({ id: `u1/${statusOf(host).run?.number}`, hostName: 'h1' });
  const { kind } = host.operation();
  expect(kind).toMatchObject({ case: 'setPower', value: { on: true, bootFrom: 4 } });
  driveTo(host, 'deploy.await_image');
  host.report(done);
  expect(statusOf(host)).toMatchObject({ state: HostState.PROVISIONED, image: first });
  host.request({ kind: 'powerReset', bootOldDiskReason: '' });
  host.report(done);
  const again = host.operation().kind;
  expect(again).toMatchObject({ value: { on: true, bootFrom: agent.BootTarget.IMAGE } });
  host.report(done);
  host.request({ kind: 'release', reason: 'over' });
  host.report(done);
  expect(statusOf(host).state).toBe(HostState.MANAGEABLE);
  expect(named(host)).toBeUndefined();
});

test.each(['deploy.fetch_image', 'power.off'])(
  'a reimage that fails at %s leaves the host to what it booted before',
  (step) => {
    const host = inService();
    const before = named(host);
    host.request({ kind: 'reimage', image: second });
    driveTo(host, step);
    host.report(failed('badImage'));
    expect(statusOf(host)).toMatchObject({ state: HostState.PROVISIONED, image: first });
    expect(named(host)).toEqual(before);
    const { message } = statusOf(host).faults[0] ?? {};
    expect(message).toContain(`; it boots ${first} over the network, as before`);
    if (step !== 'power.off') return;
    // It was being switched off: it comes back by itself, from where it came.
    host.report(done);
    expect(host.operation().kind).toMatchObject({
      value: { on: true, bootFrom: agent.BootTarget.IMAGE },
    });
  },
);

test('an agent that fetches for a netboot only with the host off is to be updated first', () => {
  const host = availableHost();
  const agentSteps = ['deploy.prepare_netboot', 'deploy.await_image'].map((name) =>
    create(agent.StepDescriptionSchema, { name }),
  );
  host.context = { ...host.context, agentSteps };
  const outcome = host.try({ kind: 'request', request: provision, by: { actor: 'user:test' } });
  expect(outcome.kind === 'refused' && outcome.refusal.message).toContain(
    'the agent of racks/r1 does not know deploy.fetch_image; update it first',
  );
  expect(host.record.deploy).toBeUndefined();
});

test.each([StepState.PENDING, StepState.RUNNING])(
  'a netboot that an earlier version began goes on past the step it knew, in state %s',
  (state) => {
    const host = availableHost();
    host.request(provision);
    driveTo(host, 'power.off');
    const { run } = statusOf(host);
    const off = run?.steps[1];
    if (run === undefined || off === undefined) throw new Error('the host is being switched off');
    const old = { name: 'deploy.prepare_netboot', rerunClass: off.rerunClass, abortable: true };
    run.steps.splice(2, 0, create(RunStepSchema, { ...old, state: StepState.PENDING }));
    if (state === StepState.PENDING) host.report(done);
    else {
      // As it was written: the order of that step is under way at its agent.
      Object.assign(off, { state: StepState.SUCCEEDED });
      Object.assign(run.steps[2] ?? {}, { state, attempt: 1 });
      run.currentStep = 2;
      const { operation } = host.record.operation ?? {};
      if (operation === undefined || host.record.operation === undefined) throw new Error('none');
      const id = operation.id.replace(/\/1\/1$/, '/2/1');
      const ordered = clone(agent.OperationSchema, operation);
      host.record.operation.operation = Object.assign(ordered, { id });
      host.report(done);
    }
    expect(stepAt(host)).toBe('power.bootImage');
    expect(named(host)).toMatchObject({ image: { reference: first } });
    driveTo(host, 'deploy.await_image');
    host.report(done);
    expect(statusOf(host)).toMatchObject({ state: HostState.PROVISIONED, image: first });
  },
);

test('an order of the step that the version before knew is stopped, for the host to boot', () => {
  const host = availableHost();
  host.request(provision);
  driveTo(host, 'power.bootImage');
  const { run } = statusOf(host);
  const boot = run?.steps[2];
  const { operation } = host.record.operation ?? {};
  if (boot === undefined || operation === undefined) throw new Error('the host is being booted');
  const old = { name: 'deploy.prepare_netboot', rerunClass: boot.rerunClass, abortable: true };
  Object.assign(boot, { state: StepState.PENDING, attempt: 0 });
  run?.steps.splice(2, 0, create(RunStepSchema, { ...old, state: StepState.RUNNING, attempt: 1 }));
  const effects = host.apply({ kind: 'tick' });
  const cancelId = `${operation.id}/cancel`;
  expect(effects).toContainEqual({ kind: 'cancel', operationId: operation.id, cancelId });
  expect(stepAt(host)).toBe('power.bootImage');
  expect(host.record.openOperations).toEqual([operation.id]);
  host.report(failed('cancelled'), operation.id);
  expect(stepAt(host)).toBe('power.bootImage');
  driveTo(host, 'deploy.await_image');
});
