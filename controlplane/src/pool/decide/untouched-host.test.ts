/** A pool and one of its hosts whose reimage has failed, with the host's real record. */
import { create } from '@bufbuild/protobuf';
import {
  agent,
  asRunNumber,
  FailureType,
  HoldScope,
  HostGoal,
  HostState,
  type HostStatus,
  RerunClass,
  RolloutSlotState,
  type Run,
  RunKind,
  type RunNumber,
  readActor,
  userActor,
  store as wire,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { type Bench, bench, done, failed, inspected, verified } from '../../host/testing/bench.ts';
import { isHealthyOn, type SeenHost, seenHost } from '../facts/seen.ts';
import { decidePool } from './decide.ts';
import { failRun, stepAt } from './failed-run.fixture.ts';
import { SlotCapacity, survey } from './survey.ts';

const digest = (digit: string) => `sha256:${digit.repeat(64)}`;
const image = (digit: string) => `registry.example/os@${digest(digit)}`;
const value = { type: FailureType.IMAGE_NOT_FOUND, message: '404', disksUntouched: true };
const ofPool = { actor: readActor('pools/p') };
const untouched = { case: 'failed', value: create(agent.FailedSchema, value) } as const;

test('a host that was not written is in service, and current once its image is wanted', () => {
  const host = reimaged(untouched);
  expect(host.illness).toBeUndefined();
  expect(isHealthyOn(host, digest('1'))).toBe(true);
  expect(poolWith(host, '2')).toEqual({ out: 0, status: 'waiting' });
  expect(poolWith(host, '1')).toEqual({ out: 0, status: 'current' });
});

test('a host whose image is lost is out of service, whatever is wanted of it', () => {
  const host = reimaged(failed('writeError'));
  expect(host.illness?.text).toContain('reimageFailed: ');
  expect(poolWith(host, '2')).toEqual({ out: 1, status: 'waiting' });
  expect(poolWith(host, '1')).toEqual({ out: 1, status: 'waiting' });
});

test('a host whose reimage was aborted in mid-write is out, also once it is switched on', () => {
  const host = reimaging();
  const begun = create(agent.ContinuingSchema, { begun: true, percent: 40 });
  host.report({ case: 'continuing', value: begun });
  host.request({ kind: 'abort', reason: 'not that one' });
  host.report(failed('cancelled'));
  host.report(done);
  expect(stepAt(host)).toBe('');
  expect(seenOf(host).illness?.text).toContain('on the disk: a part of');
  host.apply({
    kind: 'request',
    request: { kind: 'powerOn', bootOldDiskReason: '' },
    by: { actor: userActor('test') },
  });
  host.report(done);
  expect([statusOf(host).poweredOn, seenOf(host).service]).toEqual([true, 'out']);
  expect(poolWith(seenOf(host), '2')).toEqual({ out: 1, status: 'waiting' });
});

test('a host that was aborted before its disk was touched has no fault', () => {
  const host = inUse();
  host.apply({ kind: 'request', request: { kind: 'reimage', image: image('2') }, by: ofPool });
  for (let at = stepAt(host); at !== 'runner.inspect'; at = stepAt(host)) advance(host, at);
  host.request({ kind: 'abort', reason: 'not that one' });
  host.report(failed('cancelled'));
  for (let at = stepAt(host); at !== ''; at = stepAt(host)) advance(host, at);
  expect(statusOf(host).faults).toEqual([]);
  expect(seenOf(host).service).toBe('in');
});

test('a host is out until its power is as it was, and keeps its slot: no other host goes', () => {
  const host = reimaging();
  const { number = 0n } = statusOf(host).run ?? {};
  const second = { ...seenOf(inUse()), name: 'hosts/h2', uid: 'u2' };
  let record = poolOf(asRunNumber(number));
  const look = (run: Run | undefined) => {
    if (run === undefined) throw new Error('the host has a run');
    const hosts = [seenOf(host), second];
    const news = new Map([[1n, { kind: 'run', run } as const]]);
    ({ record } = decidePool(record, { hosts, others: [], news, nowMs: host.nowMs }));
    const slots = record.pool?.status?.slots.map((slot) => slot.host).join();
    return [stepAt(host), seenOf(host).service, slots];
  };
  expect(look(statusOf(host).run)).toEqual(['deploy.write_image', 'out', 'hosts/h1']);
  const run = failRun(host, value);
  expect(look(run)).toEqual(['power.off', 'out', 'hosts/h1']);
  host.report(done);
  expect(look(run)).toEqual(['power.on', 'out', 'hosts/h1']);
  host.report(done);
  expect(look(run)).toEqual(['', 'in', 'hosts/h2']);
});

test('a host that was not switched back is not known to serve', () => {
  const host = reimaging();
  host.report(untouched);
  host.request({ kind: 'abort', reason: 'I look at it' });
  host.report(failed('cancelled'));
  expect([stepAt(host), statusOf(host).poweredOn]).toEqual(['', true]);
  expect(seenOf(host).service).toBe('unseen');
});

test('a host left in the runner for a person may serve again once that has booted it', () => {
  const host = reimaging();
  const hold = { kind: 'hold', scope: HoldScope.WORK, untilMs: undefined } as const;
  host.request({ ...hold, reason: 'a look' });
  host.report(untouched);
  expect(seenOf(host).isComingBack).toBe(true);
  host.request({ ...hold, reason: 'a longer look' });
  host.request({ kind: 'releaseHold', hold: '', reason: 'seen' });
  expect([stepAt(host), host.record.pendingPower]).toEqual(['', undefined]);
  expect([statusOf(host).poweredOn, seenOf(host).service]).toEqual([true, 'unseen']);
  expect(poolWith(seenOf(host), '2')).toEqual({ out: 1, status: 'waiting' });
  const request = { kind: 'powerOn', bootOldDiskReason: '' } as const;
  host.apply({ kind: 'request', request, by: { actor: readActor('pools/p') } });
  expect(stepAt(host), 'it is on, and not of its disk').toBe('power.off');
  for (let at = stepAt(host); at !== ''; at = stepAt(host)) advance(host, at);
  expect([statusOf(host).poweredOn, seenOf(host).service]).toEqual([true, 'in']);
});

test('a host in use is out as well while a person has work done on it in the runner', () => {
  const host = inUse();
  const known = { name: 'bios.set', rerunClass: RerunClass.SAFE };
  const runnerSteps = [create(agent.StepDescriptionSchema, known)];
  host.snapshot = { ...host.snapshot, facts: { ...host.snapshot.facts, runnerSteps } };
  const steps = [{ step: 'bios.set', arguments: {} }];
  host.apply({ kind: 'request', request: { kind: 'service', steps }, by: ofPool });
  for (let at = stepAt(host); at !== 'bios.set'; at = stepAt(host)) advance(host, at);
  expect([statusOf(host).poweredOn, seenOf(host).service]).toEqual([true, 'out']);
});

/** Two hosts, one of which may be out; this is the first one's run. */
function poolOf(run: RunNumber): wire.PoolRecord {
  const target = { image: image('2'), reference: image('2'), digest: digest('2') };
  const slot = { number: 1n, host: 'hosts/h1', hostUid: 'u1', image: target.image, run };
  const names = ['hosts/h1', 'hosts/h2'];
  return create(wire.PoolRecordSchema, {
    pool: {
      ...{ name: 'pools/p', uid: 'p', spec: { image: target.image, hosts: { names } } },
      status: {
        target,
        slots: [{ ...slot, kind: RunKind.REIMAGE, state: RolloutSlotState.RUNNING }],
      },
    },
    members: names.map((host) => ({ host, hostUid: host.replace('hosts/h', 'u') })),
    slotCount: 1n,
  });
}

/** At the step that writes the second image. */
function reimaging(): Bench {
  const host = inUse();
  host.apply({ kind: 'request', request: { kind: 'reimage', image: image('2') }, by: ofPool });
  for (let at = stepAt(host); at !== 'deploy.write_image'; at = stepAt(host)) advance(host, at);
  return host;
}

/** From the first image towards the second one, until nothing runs any more. */
function reimaged(end: agent.Report['result']): SeenHost {
  const host = reimaging();
  host.report(end);
  for (let at = stepAt(host); at !== ''; at = stepAt(host)) advance(host, at);
  return seenOf(host);
}

function advance(host: Bench, at: string): void {
  if (at === 'runner.await') host.runnerReady();
  else host.report(at === 'runner.inspect' ? inspected() : done);
}

/** A host of the pool that runs the first image. */
function inUse(): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const status = { state: HostState.PROVISIONED, image: image('1'), poweredOn: true };
  Object.assign(statusOf(host), status);
  host.apply({ kind: 'request', request: { kind: 'claim', reason: 'its own' }, by: ofPool });
  return host;
}

function statusOf({ record }: Bench): HostStatus {
  if (record.host?.status === undefined) throw new Error('a host has a status');
  return record.host.status;
}

function seenOf({ record }: Bench): SeenHost {
  const seen = seenHost(record);
  if (seen === undefined) throw new Error('the host is seen');
  return seen;
}

/** The status of the host in a pool with this image, and how many hosts are out there. */
function poolWith(host: SeenHost, digit: string) {
  const target = { image: image(digit), reference: image(digit), digest: digest(digit) };
  const record = create(wire.PoolRecordSchema, {
    pool: { name: 'pools/p', uid: 'p', spec: { image: target.image }, status: { target } },
    members: [{ host: host.name, hostUid: host.uid }],
  });
  const surveyed = survey(record, new Map([[host.uid, host]]), 0);
  return { out: new SlotCapacity(surveyed).count, status: surveyed.surveyedHosts[0]?.status };
}
