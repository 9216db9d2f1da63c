/** Faults of a BMC: each has its own recovery, and keeps its start time. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  type FailureName,
  FaultSeverity,
  HostGoal,
  RunPhase,
  store,
  type TransientName,
  transientCauseOf,
} from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import { explainHost } from '../explain/explain.ts';
import { explainRack } from '../explain/rack.ts';
import { nextWakeMs } from '../shell/wake.ts';
import { type Bench, bench, done, failed, startMs, verified } from '../testing/bench.ts';
import { silenceErrorMs } from './health.ts';

type Health = MessageInitShape<typeof agent.BmcHealthSchema>;

/** A verified host without further goals. */
function resting(): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  return host;
}

/** The result of a poll, `agoMs` after it became true. The agent's clock is an hour ahead. */
function see(host: Bench, bmcHealth: Health, agoMs = 0): void {
  const agentNowMs = host.nowMs + 3_600_000;
  const since = timestampFromMs(agentNowMs - agoMs);
  const observations = { bmcHealth: { ...bmcHealth, since } };
  const value = create(agent.HostUpdatedSchema, { observations });
  const report = create(agent.ReportSchema, {
    hostUid: 'u1',
    time: timestampFromMs(agentNowMs),
    result: { case: 'hostUpdated', value },
  });
  host.apply({ kind: 'report', report });
}

const faults = (host: Bench) => host.record.host?.status?.faults ?? [];
const types = (host: Bench) => faults(host).map(({ type }) => type);
const explain = (host: Bench) => explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
const { UNREACHABLE, AUTHENTICATION } = agent.BmcTrouble;
const silent = { reachable: false, trouble: UNREACHABLE, message: 'no answer' };
const refused = { reachable: true, trouble: AUTHENTICATION, message: 'wrong password' };
const well = { reachable: true };
const transient = (cause: TransientName, message = 'no answer'): agent.Report['result'] => ({
  case: 'transientError',
  value: create(agent.TransientErrorSchema, { cause: transientCauseOf(cause), message }),
});

/** The operation in the slot gets no answer, and time passes to its next attempt. */
function meetSilence(host: Bench, times: number, cause: TransientName = 'unreachable'): void {
  for (let n = 0; n < times; n++) {
    host.report(transient(cause));
    host.nowMs += 60_000;
    host.apply({ kind: 'tick' });
  }
}

describe('what a look finds', () => {
  test('a silent BMC is a warning since it fell silent, and an error once that lasts', () => {
    const host = resting();
    see(host, silent, 120_000);
    const sinceMs = startMs - 120_000;
    expect(faults(host)).toMatchObject([{ severity: FaultSeverity.WARNING }]);
    expect(types(host)).toEqual(['bmcUnreachable']);
    expect(timestampMs(faults(host)[0]?.since ?? timestampFromMs(0))).toBe(sinceMs);
    expect(nextWakeMs(host.record, host.nowMs)).toBe(sinceMs + silenceErrorMs);
    host.nowMs = sinceMs + silenceErrorMs;
    host.apply({ kind: 'tick' });
    expect(faults(host)).toMatchObject([{ severity: FaultSeverity.ERROR }]);
    expect(nextWakeMs(host.record, host.nowMs)).toBeUndefined();
  });

  test('a silence that is told again changes nothing, not even since when', () => {
    const host = resting();
    see(host, silent, 120_000);
    const before = host.record;
    host.nowMs += 300_000;
    see(host, silent, 420_000);
    expect(host.record).toEqual(before);
  });

  test.each([
    ['silence', silent, 'bmcUnreachable'],
    ['a refused password', refused, 'bmcAuthentication'],
    ['a locked account', { ...refused, trouble: agent.BmcTrouble.LOCKED_OUT }, 'bmcLockedOut'],
    [
      'another machine',
      { ...refused, trouble: agent.BmcTrouble.IDENTITY_MISMATCH },
      'bmcIdentityMismatch',
    ],
    ['nonsense', { ...refused, trouble: agent.BmcTrouble.PROTOCOL }, 'bmcProtocol'],
    ['a missing right', { ...refused, trouble: agent.BmcTrouble.PRIVILEGE }, 'bmcPrivilege'],
    ['a bad address', { ...refused, trouble: agent.BmcTrouble.ACCESS }, 'bmcAccess'],
    ['a missing program', { ...refused, trouble: agent.BmcTrouble.TOOL_MISSING }, 'bmcToolMissing'],
    ['a new certificate', { ...refused, trouble: agent.BmcTrouble.CERTIFICATE }, 'bmcCertificate'],
    [
      'a trouble of a newer agent',
      { ...refused, trouble: 9_999 as agent.BmcTrouble },
      'bmcProtocol',
    ],
  ])('%s is a fault, explained, and over with a look that works', (_text, health, type) => {
    const host = resting();
    see(host, health);
    expect(types(host)).toEqual([type]);
    const told = explain(host);
    expect(told.blocker).toBe('the BMC');
    expect(told.causes.map(({ text }) => text)).toContain(health.message);
    expect(told.unblock.length).toBeGreaterThan(0);
    see(host, well);
    expect(types(host)).toEqual([]);
    expect(host.record.change?.cause).toBe(`${type} is over`);
    expect(explain(host).blocker).toBe('');
  });

  test('a refused password is not cured by silence, nor silence left standing by an answer', () => {
    const host = resting();
    see(host, refused);
    see(host, silent);
    expect(types(host)).toEqual(['bmcAuthentication', 'bmcUnreachable']);
    see(host, refused);
    expect(types(host)).toEqual(['bmcAuthentication']);
  });

  test('a rack names the hosts whose BMC is in trouble', () => {
    const host = resting();
    const record = create(store.RackRecordSchema, { rack: { name: 'racks/r1' } });
    expect(explainRack(record, true, [host.record]).causes).toEqual([]);
    see(host, silent);
    const told = explainRack(record, true, [host.record]);
    expect(told.causes.map(({ text }) => text)).toEqual(['h1: its BMC does not answer']);
  });

  test('a message that says nothing of the BMC is no recovery', () => {
    const host = resting();
    see(host, silent);
    see(host, {});
    expect(types(host)).toEqual(['bmcUnreachable']);
  });
});

test('a host that is seen off while its runner is awaited waits for a host that is off', () => {
  const host = bench();
  host.apply({ kind: 'tick' });
  host.report(verified());
  host.report(done);
  host.report(done);
  expect(explain(host).causes[0]?.text).toContain('is booting');
  const off = create(agent.HostUpdatedSchema, { observations: { poweredOn: false } });
  const result = { case: 'hostUpdated' as const, value: off };
  host.apply({ kind: 'report', report: create(agent.ReportSchema, { hostUid: 'u1', result }) });
  expect(explain(host).causes[0]?.text).toContain('the host is off');
  expect(host.record.host?.status?.run?.phase).toBe(RunPhase.WAITING);
  host.runnerReady();
  expect(explain(host).causes[0]?.text ?? '').not.toContain('the host is off');
});

describe('what operations find', () => {
  test('results that cannot tell never fail the host at once, and become a visible fault', () => {
    const host = bench();
    host.apply({ kind: 'tick' });
    meetSilence(host, 4);
    expect(types(host)).toEqual([]);
    meetSilence(host, 1);
    expect(types(host)).toEqual(['bmcUnreachable']);
    expect(timestampMs(faults(host)[0]?.since ?? timestampFromMs(0))).toBe(startMs);
    expect(host.record.host?.status?.lastError).toBeUndefined();
    meetSilence(host, 200);
    expect(host.record.host?.status?.run?.phase).not.toBe(RunPhase.ENDED);
    expect(faults(host)).toMatchObject([{ severity: FaultSeverity.ERROR }]);
  });

  test('a silent BMC is waited for since it fell silent, also while it is asked again', () => {
    const host = bench();
    host.apply({ kind: 'tick' });
    const since: (number | undefined)[] = [];
    for (let n = 0; n < 6; n++) {
      host.report(transient('unreachable'));
      since.push(sinceMsOf(host));
      host.nowMs += 60_000;
      host.apply({ kind: 'tick' });
      expect(host.record.operation?.sentTo).toBeDefined();
      since.push(sinceMsOf(host));
    }
    expect(new Set(since)).toEqual(new Set([startMs]));
    expect(explain(host).blocker).toBe('the BMC');
    host.report(verified());
    expect(explain(host).blocker).not.toBe('the BMC');
  });

  test('a runner that is away is a fault of its own, and no word of its is the BMC’s', () => {
    const host = bench();
    host.apply({ kind: 'tick' });
    host.report(verified());
    see(host, silent);
    host.report(done);
    expect(types(host)).toEqual([]);
    host.report(done);
    host.runnerReady();
    see(host, silent);
    meetSilence(host, 6, 'runnerAway');
    expect(types(host)).toEqual(['bmcUnreachable', 'runnerAway']);
    host.report(failed('noDevices', 'no disks'));
    expect(types(host)).not.toContain('runnerAway');
    expect(types(host)).toContain('bmcUnreachable');
  });

  test.each<[FailureName, string[]]>([
    ['notApplied', []],
    ['identityMismatch', []],
    ['credentialUnusable', ['bmcUnreachable']],
    ['internal', ['bmcUnreachable']],
  ])('a failure by %s says of a silent BMC only what it shows', (type, left) => {
    const host = resting();
    see(host, silent);
    host.request({ kind: 'powerOff' });
    host.report(failed(type, 'as it is'));
    expect(types(host).filter((each) => each.startsWith('bmc'))).toEqual(left);
  });

  test('a busy BMC answers: it is busy, not unreachable', () => {
    const host = bench();
    host.apply({ kind: 'tick' });
    meetSilence(host, 6, 'busy');
    expect(types(host)).toEqual(['bmcBusy']);
    host.report(verified());
    expect(types(host)).toEqual([]);
  });

  test('a refused password is a fault that only a call that works clears', () => {
    const host = bench({ goal: HostGoal.MANAGEABLE });
    host.apply({ kind: 'tick' });
    host.report(failed('authentication', 'the BMC refused user admin'));
    expect(types(host)).toContain('bmcAuthentication');
    host.snapshot = { ...host.snapshot, credentialVersion: 2n };
    host.apply({ kind: 'tick' });
    expect(types(host)).toContain('bmcAuthentication');
    host.report(verified());
    expect(types(host)).toEqual([]);
  });
});

function sinceMsOf(host: Bench): number | undefined {
  const { since } = explain(host);
  return since === undefined ? undefined : timestampMs(since);
}
