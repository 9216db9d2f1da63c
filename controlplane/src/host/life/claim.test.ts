/** A host of a pool: its goal leads it, with pauses, bounds and texts of the goal. */
import { create } from '@bufbuild/protobuf';
import { agent, HostGoal, HostState, RunKind, RunPhase, readActor } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { explainHost } from '../explain/explain.ts';
import { nextWakeMs } from '../shell/wake.ts';
import {
  type Bench,
  bench,
  done,
  driveToErase,
  erased,
  failed,
  inspected,
  verified,
  virtioDisk,
} from '../testing/bench.ts';

const dayMs = 24 * 3_600_000;
const image = `registry.example/os@sha256:${'b'.repeat(64)}`;
const by = { actor: readActor('pools/p') };

const statusOf = ({ record }: Bench) => {
  const { status } = record.host ?? {};
  if (status === undefined) throw new Error('no status');
  return status;
};
const stepAt = (host: Bench) => {
  const { run } = statusOf(host);
  return run?.phase === RunPhase.ENDED ? '' : (run?.steps[run.currentStep]?.name ?? '');
};
const told = (host: Bench) => explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });

/** An available host of a pool that is being provisioned. */
function provisioning(): Bench {
  const host = bench();
  driveToErase(host);
  host.report(erasedWell(host));
  host.report(inspected());
  host.report(done);
  expect(statusOf(host).state).toBe(HostState.AVAILABLE);
  host.apply({ kind: 'request', request: { kind: 'claim', reason: 'a host of the pool' }, by });
  host.apply({ kind: 'request', request: { kind: 'provision', image }, by });
  return host;
}

/** Completes every step up to `last`. */
function driveTo(host: Bench, last: string): void {
  while (stepAt(host) !== last) {
    if (stepAt(host) === 'runner.await') host.runnerReady();
    else host.report(stepAt(host) === 'runner.inspect' ? inspected() : done);
  }
}

const erasedWell = (host: Bench): agent.Report['result'] => ({
  case: 'complete',
  value: create(agent.CompleteSchema, { evidence: host.evidence([erased(virtioDisk)]) }),
});

test('a host that its image has left dirty is cleaned at once, whatever failure it was', () => {
  const host = provisioning();
  driveTo(host, 'deploy.write_image');
  host.report(failed('noDevices', 'none is there'));
  expect(statusOf(host)).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
  expect(statusOf(host).run).toMatchObject({ kind: RunKind.CLEAN, requestedBy: 'goal' });
});

/** Advances the clock by a day, with this end of every clean in it; returns their number. */
function cleansOfADay(host: Bench, end: agent.Report['result']): number {
  const untilMs = host.nowMs + dayMs;
  let cleans = 0;
  for (;;) {
    if (statusOf(host).run?.kind === RunKind.CLEAN && stepAt(host) !== '') {
      driveTo(host, 'deploy.erase_devices');
      host.report(end);
      cleans += 1;
    } else if (stepAt(host) !== '') host.report(done);
    const nextMs = nextWakeMs(host.record, host.nowMs) ?? untilMs;
    if (nextMs >= untilMs) return cleans;
    host.nowMs = Math.max(nextMs, host.nowMs + 1_000);
    host.apply({ kind: 'tick' });
  }
}

test('a clean that fails is given up and the host switched off, as of any host', () => {
  const host = provisioning();
  driveTo(host, 'deploy.write_image');
  host.report(failed('writeError'));
  expect(cleansOfADay(host, failed('internal', 'it fell over'))).toBe(3);
  expect(statusOf(host).backoff?.givenUpReason).toBe('3 attempts in a row failed');
  expect(statusOf(host).poweredOn).toBe(false);
});

test('explain says of a host whose clean failed why it failed, and what helps', () => {
  const host = provisioning();
  driveTo(host, 'deploy.write_image');
  host.report(failed('writeError'));
  driveTo(host, 'deploy.erase_devices');
  host.report(failed('notErased', 'disk X holds old data'));
  const { headline, causes, unblock } = told(host);
  expect(headline).toContain('Rackwright has stopped trying to make it available: notErased');
  expect(causes.map(({ text }) => text)).toContain('disk X holds old data');
  expect(unblock).toContain('then: rackwright host retry h1');
  expect(unblock.join()).not.toMatch(/host (clean|unclaim)/);
  host.request({ kind: 'retry' });
  expect(statusOf(host).run).toMatchObject({ kind: RunKind.CLEAN, phase: RunPhase.RUNNING });
});

test('a deployment that touched nothing leaves the host available, to be repeated', () => {
  const host = provisioning();
  host.report(failed('imageNotFound', 'registry.example has no os'));
  expect(statusOf(host).state).toBe(HostState.AVAILABLE);
  expect(told(host).unblock).toContain('then: rackwright pool explain p');
  delete statusOf(host).claim;
  expect(told(host).unblock).toContain(`then: rackwright host provision h1 ${image}`);
});

test('a person’s claim keeps the goal off', () => {
  const host = provisioning();
  driveTo(host, 'deploy.write_image');
  host.report(failed('writeError'));
  host.request({ kind: 'abort', reason: 'a look' });
  host.report(failed('cancelled'));
  const { claim } = statusOf(host);
  if (claim !== undefined) claim.by = 'user:ann';
  host.request({ kind: 'retry' });
  expect(stepAt(host)).toBe('');
  expect(told(host).headline).toContain('claimed by user:ann, so that its goal');
});

test('a claim that is made while its user gives the host back is another one, and stays', () => {
  const releasing = (claimedBefore: string) => {
    const host = bench({ goal: HostGoal.MANAGEABLE });
    host.apply({ kind: 'tick' });
    host.report(verified());
    host.request({ kind: 'adopt', to: HostState.PROVISIONED, reason: 'it runs the shop' });
    host.report(verified());
    if (claimedBefore !== '') host.request({ kind: 'claim', reason: claimedBefore });
    host.request({ kind: 'release', reason: 'closed' });
    return host;
  };
  const own = releasing('the shop');
  own.report(done);
  expect(statusOf(own)).toMatchObject({ state: HostState.MANAGEABLE });
  expect(statusOf(own).claim).toBeUndefined();
  for (const actor of ['user:bob', 'user:test']) {
    const others = releasing('');
    others.nowMs += 1;
    const request = { kind: 'claim', reason: 'a database' } as const;
    others.apply({ kind: 'request', request, by: { actor: readActor(actor) } });
    others.report(done);
    expect(statusOf(others)).toMatchObject({
      state: HostState.MANAGEABLE,
      claim: { by: actor, reason: 'a database' },
    });
  }
});
