/**
 * Boots as agents report them: stored within bounds, shown to people, without effect on decisions.
 */
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  type BootTrace,
  BootTraceSchema,
  HostState,
  BootStepKind as Kind,
  RackFaultSchema,
  RackFaultType,
  RunPhase,
  store,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { explainHost } from '../explain/explain.ts';
import { defaultTiming } from '../pass/timing.ts';
import { type Bench, bench, bootOfRunner, done, statusOf, verified } from '../testing/bench.ts';

type BootTraceInit = MessageInitShape<typeof BootTraceSchema>;

/** Facts without an operation; they are in the context of the next pass. */
function tell(
  host: Bench,
  told: Exclude<BootTraceInit, BootTrace>,
  hostUid = 'u1',
): readonly BootTrace[] {
  const observations = { bootTrace: { operationId: boot(host), ...told } };
  const value = create(agent.HostUpdatedSchema, { observations });
  const result = { case: 'hostUpdated', value } as const;
  const report = create(agent.ReportSchema, { hostUid, result });
  for (const effect of host.apply({ kind: 'report', report })) {
    if (effect.kind !== 'facts') continue;
    const facts = create(store.HostFactsSchema, { ...host.snapshot.facts, ...effect.facts });
    host.snapshot = { ...host.snapshot, facts };
  }
  return host.snapshot.facts.boots;
}

const boot = (host: Bench) => bootOfRunner(statusOf(host).run);

/** A host that waits for its runner. */
function waiting(): Bench {
  const host = bench();
  host.apply({ kind: 'tick' });
  host.report(verified());
  host.report(done);
  host.report(done);
  return host;
}

const step = (kind: Kind, more = {}) => ({ kind, count: 1, ...more });
const at = timestampFromMs(Date.UTC(2026, 0, 1));
const upToScript = [step(Kind.DISCOVER), step(Kind.OFFER), step(Kind.SCRIPT, { endTime: at })];

function timeOut(host: Bench): void {
  host.nowMs += defaultTiming.bootTimeoutMs + 1_000;
  const { session } = host.snapshot;
  if (session === undefined) throw new Error('no session');
  const seen = { ...session, lastMessageMs: host.nowMs };
  host.snapshot = { ...host.snapshot, session: seen };
  host.apply({ kind: 'tick' });
  host.nowMs += 60_000;
  host.snapshot = { ...host.snapshot, session: { ...seen, lastMessageMs: host.nowMs } };
  host.apply({ kind: 'tick' });
}

const explain = (host: Bench) => explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });

test('a boot whose runner never comes fails with the step that never came, and what helps', () => {
  const host = waiting();
  tell(host, { steps: upToScript });
  timeOut(host);
  const failure = statusOf(host).lastError?.failure;
  expect(failure?.message).toMatch(/got as far as the boot script; the kernel never came/);
  expect(failure?.detail.split('\n').at(-1)).toContain('the kernel: never came');
  expect(failure?.details?.kind).toMatchObject({
    case: 'bootStalled',
    value: { missing: Kind.KERNEL },
  });
  expect(explain(host).unblock[0]).toMatch(/how the download ends/);
});

test('while it is waited for, the step at which it stands is told', () => {
  const host = waiting();
  tell(host, { steps: upToScript });
  host.apply({ kind: 'tick' });
  const texts = explain(host).causes.map(({ text }) => text);
  expect(texts.join()).toContain('the kernel never came');
});

test('each step that can be missing has advice that names the host or its rack', () => {
  for (const missing of Object.values(Kind)) {
    const host = waiting();
    tell(host, { steps: upToScript });
    timeOut(host);
    const details = statusOf(host).lastError?.failure?.details;
    if (details?.kind.case === 'bootStalled') details.kind.value.missing = missing;
    expect(explain(host).unblock.join('\n')).toMatch(/h1|r1/);
  }
});

test('the last boot is kept, and the last other one whose runner did not come', () => {
  const host = waiting();
  const latest = { ...host.record, runCount: 9n };
  host.record = create(store.HostRecordSchema, latest);
  const runner = [step(Kind.RUNNER, { endTime: at })];
  tell(host, { operationId: 'u1/1/1/1', steps: upToScript });
  tell(host, { operationId: 'u1/2/1/1', steps: runner });
  const kept = tell(host, { operationId: 'u1/3/1/1', steps: runner });
  expect(kept.map(({ operationId }) => operationId)).toEqual(['u1/3/1/1', 'u1/1/1/1']);
  expect(kept.map(({ missing }) => missing)).toEqual([Kind.UNSPECIFIED, Kind.KERNEL]);
});

test('a trace is bounded; one of an unknown or a later boot is dropped', () => {
  const host = waiting();
  const wrongTime = { seconds: -1n, nanos: 2_000_000_000 };
  const steps = Array.from({ length: 500 }, () =>
    step(Kind.KERNEL, { problem: 'x'.repeat(100_000), firstTime: wrongTime, lastTime: at }),
  );
  const [kept] = tell(host, { mac: 'y'.repeat(100_000), startTime: wrongTime, steps });
  expect(toBinary(BootTraceSchema, kept ?? create(BootTraceSchema)).length).toBeLessThan(8_192);
  expect(kept?.missing).toBe(Kind.DISCOVER);
  expect([kept?.startTime, kept?.steps[0]?.firstTime]).toEqual([undefined, undefined]);
  expect(kept?.steps[0]?.lastTime).toMatchObject({ seconds: at.seconds });
  for (const operationId of ['', 'u2/1/1/1', 'u1/99/1/1']) {
    expect(tell(host, { operationId, steps: upToScript })).toEqual([kept]);
  }
});

test('a trace that says that the runner came moves nothing', () => {
  const host = waiting();
  const before = host.record;
  tell(host, { steps: [step(Kind.RUNNER, { endTime: at })] });
  expect(host.record.host?.status?.run?.currentStep).toBe(before.host?.status?.run?.currentStep);
  expect(statusOf(host).state).not.toBe(HostState.AVAILABLE);
});

test('a fault of the rack is told of the hosts whose boot it keeps, and of no other', () => {
  const host = waiting();
  const fault = (type: RackFaultType, more = {}) =>
    create(RackFaultSchema, { type, message: `fault ${type}`, ...more });
  const rackFaults = [
    fault(RackFaultType.FOREIGN_DHCP_SERVER, { address: '10.0.0.9' }),
    fault(RackFaultType.BOOT_MAC_NOT_SEEN, { host: 'hosts/h1', mac: '52:54:00:00:00:01' }),
    fault(RackFaultType.BOOT_MAC_NOT_SEEN, { host: 'hosts/h2', mac: '52:54:00:00:00:02' }),
  ];
  host.snapshot = { ...host.snapshot, rackFaults };
  const said = () => explain(host).causes.filter(({ text }) => text.startsWith('fault'));
  expect(said()).toHaveLength(2);
  expect(explain(host).unblock.join('\n')).toContain('take the DHCP server 10.0.0.9 off');
  host.snapshot = { ...host.snapshot, rackFaults: rackFaults.slice(2) };
  expect(said()).toEqual([]);
});

test('the last screen is kept within bounds, without what acts on a terminal', () => {
  const host = waiting();
  const [kept] = tell(host, { steps: upToScript, lastScreen: ['a\x1b[31m\u202eb', 'panic'] });
  expect(kept?.lastScreen).toEqual(['a[31mb', 'panic']);
  const long = Array.from({ length: 10_000 }, (_, at) => `${at} ${'x'.repeat(10_000)}`);
  const [again] = tell(host, { steps: upToScript, lastScreen: long });
  expect(again?.lastScreen.at(-1)).toMatch(/^9999 x{127}$/);
  expect(again?.lastScreen.join('\n').length).toBeLessThanOrEqual(2_048);
});

test('the last screen is explained while the boot stands still, and after it has failed', () => {
  const host = waiting();
  tell(host, { steps: upToScript, lastScreen: ['Access Denied'] });
  expect(explain(host).lastScreen).toEqual(['Access Denied']);
  timeOut(host);
  expect(statusOf(host).run?.phase).not.toBe(RunPhase.WAITING);
  expect(explain(host).lastScreen).toEqual(['Access Denied']);
});

test('no screen of an earlier run is explained, nor one of a boot whose runner came', () => {
  const host = waiting();
  const operationId = 'u1/1/1/1';
  expect(boot(host).startsWith('u1/1/')).toBe(false);
  tell(host, { operationId, steps: upToScript, lastScreen: ['old'] });
  expect(explain(host).lastScreen).toEqual([]);
  const came = step(Kind.RUNNER, { endTime: at });
  tell(host, { steps: [...upToScript, came], lastScreen: ['login:'] });
  expect(explain(host).lastScreen).toEqual([]);
});
