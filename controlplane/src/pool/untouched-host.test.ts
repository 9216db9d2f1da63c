/** A pool and a host of its own whose reimage has failed, by the host's real record. */
import { create } from '@bufbuild/protobuf';
import { agent, HostGoal, HostState, RunPhase, store as wire } from '@rackwright/api';
import { expect, test } from 'vitest';
import { type Bench, bench, done, failed, inspected, verified } from '../host/testing/bench.ts';
import { isHealthyOn, type SeenHost, seenHost } from './seen.ts';
import { Outage, survey } from './survey.ts';

const digest = (digit: string) => `sha256:${digit.repeat(64)}`;
const image = (digit: string) => `registry.example/os@${digest(digit)}`;
const value = { type: 'imageNotFound', message: '404', disksUntouched: true };
const untouched = { case: 'failed', value: create(agent.FailedSchema, value) } as const;

test('a host that was not written is in service, and current once its image is wanted', () => {
  const host = reimaged(untouched);
  expect(host.illness).toBeUndefined();
  expect(isHealthyOn(host, digest('1'))).toBe(true);
  expect(poolWith(host, '2')).toEqual({ out: 0, stand: 'waiting' });
  expect(poolWith(host, '1')).toEqual({ out: 0, stand: 'current' });
});

test('a host whose image is lost is out of service, whatever is wanted of it', () => {
  const host = reimaged(failed('writeError'));
  expect(host.illness).toContain('reimageFailed: ');
  expect(poolWith(host, '2')).toEqual({ out: 1, stand: 'waiting' });
  expect(poolWith(host, '1')).toEqual({ out: 1, stand: 'waiting' });
});

/** From the first image to the second one, as far as it comes; then nothing runs any more. */
function reimaged(end: agent.Report['result']): SeenHost {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const status = { state: HostState.PROVISIONED, image: image('1'), poweredOn: true };
  Object.assign(host.record.host?.status ?? {}, status);
  host.request({ kind: 'claim', reason: 'the pool’s' });
  host.request({ kind: 'reimage', image: image('2') });
  for (let at = stepAt(host); at !== ''; at = stepAt(host)) {
    if (at === 'runner.await') host.runnerReady();
    else if (at === 'deploy.write_image') host.report(end);
    else host.report(at === 'runner.inspect' ? inspected() : done);
  }
  const seen = seenHost(host.record);
  if (seen === undefined) throw new Error('the host is seen');
  return { ...seen, claimedBy: 'pools/p' };
}

function stepAt({ record }: Bench): string {
  const run = record.host?.status?.run;
  return run?.phase === RunPhase.ENDED ? '' : (run?.steps[run.currentStep]?.name ?? '');
}

/** Where the host stands in a pool of its own on this image, and how many are out there. */
function poolWith(host: SeenHost, digit: string) {
  const target = { image: image(digit), reference: image(digit), digest: digest(digit) };
  const record = create(wire.PoolRecordSchema, {
    pool: { name: 'pools/p', uid: 'p', spec: { image: target.image }, status: { target } },
    members: [{ host: host.name, hostUid: host.uid }],
  });
  const surveyed = survey(record, new Map([[host.uid, host]]), 0);
  return { out: new Outage(surveyed).count, stand: surveyed.standings[0]?.stand };
}
