/** Hosts that run their image without a disk: their way into service, and out of it early. */
import { create } from '@bufbuild/protobuf';
import { agent, DeploySpecSchema, HostState, userActor } from '@rackwright/messages';
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
    // It was being switched off: it returns by itself to its earlier image.
    host.report(done);
    expect(host.operation().kind).toMatchObject({
      value: { on: true, bootFrom: agent.BootTarget.IMAGE },
    });
  },
);

test('an agent that cannot fetch images is to be updated first', () => {
  const host = availableHost();
  const agentSteps = [create(agent.StepDescriptionSchema, { name: 'deploy.await_image' })];
  host.snapshot = { ...host.snapshot, agentSteps };
  const outcome = host.try({
    kind: 'request',
    request: provision,
    by: { actor: userActor('test') },
  });
  expect(outcome.kind === 'refused' && outcome.refusal.message).toContain(
    'the agent of racks/r1 does not know deploy.fetch_image; update it first',
  );
  expect(host.record.deploy).toBeUndefined();
});
