/** An available host whose goal is lowered. */
import { HostGoal, HostState, RunPhase } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { availableHost, type Bench, statusOf } from '../testing/bench.ts';

function aim(host: Bench, goal: HostGoal): void {
  const { spec } = host.record.host ?? {};
  if (spec === undefined) throw new Error('a host has a spec');
  spec.goal = goal;
  host.apply({ kind: 'tick' });
}

test('a lesser goal begins another use: no earlier certificate counts after it', () => {
  const host = availableHost();
  const { useEpoch } = statusOf(host);
  aim(host, HostGoal.AVAILABLE);
  expect(statusOf(host)).toMatchObject({ state: HostState.AVAILABLE, useEpoch });
  aim(host, HostGoal.MANAGEABLE);
  expect(statusOf(host)).toMatchObject({
    ...{ state: HostState.MANAGEABLE, dirty: false, useEpoch: useEpoch + 1n },
  });
  aim(host, HostGoal.AVAILABLE);
  expect(statusOf(host)).toMatchObject({
    ...{ state: HostState.MANAGEABLE, run: { phase: RunPhase.RUNNING }, useEpoch: useEpoch + 1n },
  });
});
