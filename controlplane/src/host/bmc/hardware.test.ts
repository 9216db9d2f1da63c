import { create } from '@bufbuild/protobuf';
import { agent, FaultSeverity, HealthLevel, HostGoal } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { type Bench, bench, verified } from '../testing/bench.ts';

function see(host: Bench, level: HealthLevel, message = ''): void {
  const observations = { hardwareHealth: { level, message } };
  const value = create(agent.HostUpdatedSchema, {
    observations: create(agent.ObservationsSchema, observations),
  });
  const result = { case: 'hostUpdated', value } as const;
  const report = create(agent.ReportSchema, { hostUid: 'u1', result });
  host.apply({ kind: 'report', report });
}

const faults = (host: Bench) => host.record.host?.status?.faults ?? [];

test('critical hardware is a warning until the BMC says that it is well, and holds nothing', () => {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  see(host, HealthLevel.OK);
  expect(faults(host)).toEqual([]);
  see(host, HealthLevel.CRITICAL, 'drive fault');
  const text = 'its BMC says that its hardware is critical: drive fault';
  const fault = { type: 'hardwareCritical', message: text, severity: FaultSeverity.WARNING };
  expect(faults(host)).toMatchObject([fault]);
  const { since } = faults(host)[0] ?? {};
  host.nowMs += 60_000;
  see(host, HealthLevel.CRITICAL, 'drive fault, power fault');
  expect(faults(host)).toMatchObject([{ type: 'hardwareCritical', since }]);
  for (const unknown of [HealthLevel.UNSPECIFIED, 77 as HealthLevel]) see(host, unknown);
  expect(faults(host)).toHaveLength(1);
  expect(() => host.request({ kind: 'inspect' })).not.toThrow();
  see(host, HealthLevel.WARNING);
  expect(faults(host)).toEqual([]);
});
