/** When boots are reported, and how often. */
import { asMac } from '@rackwright/dhcp';
import { BootStepKind, type BootTrace, type HostUid } from '@rackwright/messages';
import { beforeEach, expect, test } from 'vitest';
import type { BootEvent } from '../boot/index.ts';
import { TestClock } from '../session/testing/clock.ts';
import { BootTracer, defaultBootTracerLimits, type TracedGrant } from './tracer.ts';

const bootMs = 900_000;
let time: TestClock;
let told: { readonly hostUid: HostUid; readonly trace: BootTrace }[];
let unseen: string[];
let known: TracedGrant[];
let tracer: BootTracer;
let screen: string[];

beforeEach(() => {
  time = new TestClock();
  [told, unseen, known, screen] = [[], [], [], []];
  tracer = tracerOf();
});

function tracerOf(): BootTracer {
  return new BootTracer({
    clock: time.open().clock,
    grantOf: (operationId) => known.find((grant) => grant.operationId === operationId),
    tell: (hostUid, trace) => told.push({ hostUid, trace }),
    screenOf: () => screen,
    onUnseen: ({ hostUid }) => unseen.push(hostUid),
    limits: { ...defaultBootTracerLimits, bootsMax: 3 },
  });
}

function opened(n: number): TracedGrant {
  const openedAtMs = time.nowMs + time.wallAheadMs;
  const grant = { hostUid: `u${n}`, operationId: `u${n}/1/1/1`, macs: [`52:54:00:00:00:0${n}`] };
  return { ...grant, openedAtMs, expiresAtMs: openedAtMs + bootMs };
}

function bootEvent(n: number, stage: BootEvent['stage']): BootEvent {
  const whose = {
    hostUid: `u${n}`,
    operationId: `u${n}/1/1/1`,
    mac: asMac(`52:54:00:00:00:0${n}`),
  };
  return { ...whose, stage, program: 'firmware', kind: 'came', bytes: 0, problem: '' };
}

const kindsOf = ({ steps }: BootTrace) => steps.map(({ kind }) => kind);

test('a boot whose runner comes is reported when it comes, and at no other time', async () => {
  tracer.beginTrace(opened(1));
  for (let seconds = 0; seconds < 170; seconds += 10) {
    tracer.addEvent(bootEvent(1, 'discover'));
    await time.run(10_000);
  }
  const trace = tracer.finish('u1/1/1/1');
  expect(trace && kindsOf(trace)).toEqual([BootStepKind.DISCOVER, BootStepKind.RUNNER]);
  expect(trace?.steps[0]).toMatchObject({ count: 17 });
  tracer.addEvent(bootEvent(1, 'request'));
  expect(tracer.finish('u1/1/1/1')).toBeUndefined();
  await time.run(2 * bootMs);
  expect([told, unseen]).toEqual([[], []]);
});

test('a boot that stands still is reported once, and before its end if more came', async () => {
  tracer.beginTrace(opened(1));
  tracer.addEvent(bootEvent(1, 'discover'));
  await time.run(300_000);
  expect(told.map(({ trace }) => kindsOf(trace))).toEqual([[BootStepKind.DISCOVER]]);
  for (let n = 0; n < 1_000; n += 1) tracer.addEvent(bootEvent(1, 'offer'));
  await time.run(bootMs);
  expect(told).toHaveLength(2);
  expect(told[1]?.trace.steps[1]).toMatchObject({ kind: BootStepKind.OFFER, count: 1_000 });
});

test('a boot without any request is reported as unseen before its grant ends', async () => {
  const grant = opened(1);
  tracer.beginTrace({ ...grant, expiresAtMs: grant.openedAtMs + 20_000 });
  await time.run(17_900);
  expect(unseen).toEqual([]);
  await time.run(200);
  expect([unseen, told.map(({ trace }) => kindsOf(trace))]).toEqual([['u1'], [[]]]);
  await time.run(bootMs);
  expect(told).toHaveLength(1);
});

test('the next boot of a host ends the one before, and a forgotten host has none', async () => {
  tracer.beginTrace(opened(1));
  tracer.beginTrace({ ...opened(1), operationId: 'u1/2/1/1' });
  expect(tracer.finish('u1/1/1/1')).toBeUndefined();
  tracer.forgetHost('u1');
  await time.run(2 * bootMs);
  expect([told, unseen]).toEqual([[], []]);
});

test('a boot of before this agent’s start is followed from its next step on', () => {
  known = [opened(1)];
  tracer.addEvent(bootEvent(1, 'script'));
  tracer.addEvent(bootEvent(2, 'script'));
  expect(tracer.finish('u1/1/1/1')?.steps).toHaveLength(2);
  expect(tracer.finish('u2/1/1/1')).toBeUndefined();
});

test('the number of followed boots is limited, and the oldest is dropped in silence', async () => {
  for (let n = 1; n <= 5; n += 1) tracer.beginTrace(opened(n));
  await time.run(2 * bootMs);
  expect(new Set(told.map(({ hostUid }) => hostUid))).toEqual(new Set(['u3', 'u4', 'u5']));
});

test('a runner that was refused is the last step of its boot', async () => {
  tracer.beginTrace(opened(1));
  tracer.addRefusal('u1/1/1/1', 'it is another machine');
  await time.run(300_000);
  const [step] = told[0]?.trace.steps ?? [];
  expect(step).toMatchObject({ kind: BootStepKind.RUNNER, problem: 'it is another machine' });
  expect(step?.endTime).toBeUndefined();
});

test('a stalled boot is reported with its last screen, and again before its end', async () => {
  tracer.beginTrace(opened(1));
  screen = ['loading'];
  await time.run(200_000);
  expect(told.map(({ trace }) => trace.lastScreen)).toEqual([['loading']]);
  screen = ['panic'];
  await time.run(bootMs);
  expect(told.map(({ trace }) => trace.lastScreen)).toEqual([['loading'], ['panic']]);
});
