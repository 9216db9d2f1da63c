/** spec.power against the observed power: a fault, or a run, and never against the guards. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  AfterFailureSchema,
  agent,
  faultOfType,
  HoldScope,
  HostGoal,
  HostPower,
  HostState,
  PowerMismatchPolicy,
  RunKind,
  RunPhase,
} from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import { explainHost } from '../explain/explain.ts';
import { nextWakeMs } from '../shell/wake.ts';
import { type Bench, bench, done, driveToErase, failed, verified } from '../testing/bench.ts';

const { ENFORCE, REPORT } = PowerMismatchPolicy;
const hourMs = 3_600_000;

interface RestingOptions {
  readonly power?: HostPower;
  readonly policy?: PowerMismatchPolicy;
  readonly state?: HostState;
  readonly dirty?: boolean;
}

/** A host without a run in a state, with a desired power. */
function resting({ power = HostPower.OFF, policy = REPORT, state, dirty }: RestingOptions): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE, power });
  host.snapshot = { ...host.snapshot, powerMismatch: policy };
  host.apply({ kind: 'tick' });
  host.report(verified());
  const { status } = host.record.host ?? {};
  if (status === undefined) throw new Error('a host has a status');
  if (state !== undefined) status.state = state;
  if (dirty !== undefined) status.dirty = dirty;
  return host;
}

function see(host: Bench, poweredOn: boolean): void {
  const observations: MessageInitShape<typeof agent.ObservationsSchema> = { poweredOn };
  const value = create(agent.HostUpdatedSchema, { observations });
  const result = { case: 'hostUpdated' as const, value };
  host.apply({ kind: 'report', report: create(agent.ReportSchema, { hostUid: 'u1', result }) });
}

const status = (host: Bench) => {
  const found = host.record.host?.status;
  if (found === undefined) throw new Error('a host has a status');
  return found;
};
const fault = (host: Bench) => faultOfType(status(host).faults, 'powerMismatch');
const running = (host: Bench) => {
  const { run } = status(host);
  return run === undefined || run.phase === RunPhase.ENDED ? undefined : run;
};
const explain = (host: Bench) => explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });

describe('a mismatch that is to be reported', () => {
  test('stands until the power is as the spec says, and says what is and what should be', () => {
    const host = resting({});
    expect(fault(host)).toBeUndefined();
    see(host, true);
    expect(fault(host)?.message).toBe('its power is on, and its spec wants it off');
    expect(running(host)).toBeUndefined();
    const before = host.record;
    host.nowMs += hourMs;
    see(host, true);
    expect(host.record).toEqual(before);
    see(host, false);
    expect(fault(host)).toBeUndefined();
  });

  test('is explained, and doing what is said there helps', () => {
    const host = resting({});
    see(host, true);
    const told = explain(host);
    expect(told.blocker).toBe('its power');
    expect(told.unblock.join('\n')).toContain('rackwright host power off h1');
    host.request({ kind: 'powerOff' });
    host.report(done);
    expect(fault(host)).toBeUndefined();
    expect(explain(host).blocker).toBe('');
  });

  test.each([
    ['that is dirty needs a reason', { dirty: true }, 'host power on h1 --boot-old-disk REASON'],
    ['that is clean needs none', { dirty: false }, 'rackwright host power on h1'],
    [
      'that is available stays off',
      { state: HostState.AVAILABLE, dirty: false },
      'rackwright host update h1 --power unmanaged',
    ],
  ])(
    'is explained by what would be accepted: a host %s',
    (_text, options: RestingOptions, line) => {
      const host = resting({ power: HostPower.ON, ...options });
      const { spec } = host.record.host ?? {};
      if (options.state !== undefined && spec !== undefined) spec.goal = HostGoal.AVAILABLE;
      see(host, false);
      expect(explain(host).unblock[0]).toContain(line);
    },
  );

  test('is over when nobody minds any more', () => {
    const host = resting({});
    see(host, true);
    const spec = { ...host.record.host?.spec, power: HostPower.UNMANAGED };
    host.request({ kind: 'update', spec: spec as never, labels: {} });
    expect(fault(host)).toBeUndefined();
  });

  test.each([HostPower.UNSPECIFIED, HostPower.UNMANAGED])('is none for power %i', (power) => {
    const host = resting({ power, policy: ENFORCE });
    see(host, true);
    see(host, false);
    expect(fault(host)).toBeUndefined();
    expect(running(host)).toBeUndefined();
  });

  test('is not judged while a run switches the host', () => {
    const host = bench({ power: HostPower.OFF });
    host.snapshot = { ...host.snapshot, powerMismatch: ENFORCE };
    driveToErase(host);
    see(host, true);
    expect(fault(host)).toBeUndefined();
    expect(running(host)?.kind).toBe(RunKind.CLEAN);
  });
});

describe('a mismatch that is to be mended', () => {
  test('starts a power run, which ends with the power as the spec says', () => {
    const host = resting({ policy: ENFORCE });
    see(host, true);
    expect(running(host)).toMatchObject({ kind: RunKind.POWER, requestedBy: 'policy' });
    expect(host.operation().kind).toMatchObject({ case: 'setPower', value: { on: false } });
    host.report(done);
    expect(running(host)).toBeUndefined();
    expect(fault(host)).toBeUndefined();
  });

  test('is tried again later and later, and at once after long peace', () => {
    const host = resting({ policy: ENFORCE });
    const waits: number[] = [];
    see(host, true);
    for (let n = 0; n < 8; n++) {
      host.report(failed('notApplied', 'the BMC did nothing'));
      expect(running(host)).toBeUndefined();
      expect(fault(host)).toBeDefined();
      const atMs = nextWakeMs(host.record, host.nowMs) ?? 0;
      waits.push(atMs - host.nowMs);
      host.nowMs = atMs;
      host.apply({ kind: 'tick' });
      expect(running(host)?.kind).toBe(RunKind.POWER);
    }
    expect(waits[0]).toBeLessThanOrEqual(60_000);
    expect(waits.at(-1)).toBeGreaterThan(30 * 60_000);
    expect(Math.max(...waits)).toBeLessThanOrEqual(hourMs);
    host.report(done);
    host.nowMs += 3 * hourMs;
    see(host, true);
    expect(running(host)?.kind).toBe(RunKind.POWER);
    expect(host.record.powerEnforcement?.runs).toBe(1);
  });

  test('never boots a host that may hold data of its last use', () => {
    const host = resting({ policy: ENFORCE, power: HostPower.ON, dirty: true });
    see(host, false);
    expect(running(host)).toBeUndefined();
    expect(fault(host)?.message).toContain('may hold data of its last use');
  });

  test('never switches an available host on', () => {
    const host = bench({ power: HostPower.ON });
    host.snapshot = { ...host.snapshot, powerMismatch: ENFORCE };
    host.apply({ kind: 'tick' });
    host.report(verified());
    const asItIs = status(host);
    asItIs.state = HostState.AVAILABLE;
    asItIs.dirty = false;
    delete asItIs.run;
    delete host.record.operation;
    see(host, false);
    expect(running(host)).toBeUndefined();
    expect(status(host).state).toBe(HostState.AVAILABLE);
    expect(fault(host)?.message).toContain('an available host stays off');
  });

  test.each([HostState.PROVISIONED, HostState.EXTERNAL])(
    'boots what runs on a host in state %i',
    (state) => {
      const host = resting({ policy: ENFORCE, power: HostPower.ON, state, dirty: true });
      see(host, false);
      expect(host.operation().kind).toMatchObject({ case: 'setPower', value: { on: true } });
    },
  );

  test.each([HoldScope.POWER, HoldScope.WORK])('waits for a hold of scope %i', (scope) => {
    const host = resting({ policy: ENFORCE });
    host.request({ kind: 'hold', scope, reason: 'somebody works inside', untilMs: undefined });
    see(host, true);
    expect(running(host)).toBeUndefined();
    expect(fault(host)?.message).toContain('somebody works inside');
    host.request({ kind: 'releaseHold', hold: '', reason: 'done' });
    expect(running(host)?.kind).toBe(RunKind.POWER);
  });

  test('leaves a host in its runner that a failed clean keeps there', () => {
    const host = resting({ policy: ENFORCE });
    status(host).afterFailure = create(AfterFailureSchema, { bootOnly: 'runner' });
    see(host, true);
    expect(running(host)).toBeUndefined();
    expect(fault(host)?.message).toContain('a failed clean keeps it');
  });

  test('waits for an agent that is away', () => {
    const host = resting({ policy: ENFORCE });
    const { session } = host.snapshot;
    host.snapshot = { ...host.snapshot, session: undefined };
    see(host, true);
    expect(running(host)).toBeUndefined();
    host.snapshot = { ...host.snapshot, session };
    host.apply({ kind: 'tick' });
    expect(running(host)?.kind).toBe(RunKind.POWER);
  });
});

describe('power that is seen', () => {
  test.each([HostState.PROVISIONED, HostState.EXTERNAL])(
    'the power of a host in state %i is noted, and nothing else',
    (state) => {
      const host = resting({ power: HostPower.UNMANAGED, state, dirty: true });
      const { useEpoch } = status(host);
      see(host, false);
      see(host, true);
      expect(status(host)).toMatchObject({ state, poweredOn: true, useEpoch });
      expect(running(host)).toBeUndefined();
      expect(host.record.change?.cause).toBe('seen on');
    },
  );
});
