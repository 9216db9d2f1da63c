/** A host that is on and cannot be switched off waits with its removal, and says for what. */
import { DeletionMode, HostGoal, RunKind } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { explainHost } from '../explain/explain.ts';
import { type Bench, bench, statusOf, verified } from '../testing/bench.ts';

/** A host that is known to be on, without a run. */
function on(): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  statusOf(host).poweredOn = true;
  return host;
}

const remove = { kind: 'delete', mode: DeletionMode.NORMAL, reason: 'sold' } as const;

test.each<[string, (host: Bench) => void]>([
  [
    'no agent has ever joined its rack',
    (host) => {
      host.snapshot = { ...host.snapshot, agentRegistered: false };
    },
  ],
  ['its BMC was never verified', (host) => void delete statusOf(host).bmcIdentity],
])('no request is made to switch a deleted host off where %s', (why, change) => {
  const host = on();
  change(host);
  host.request(remove);
  host.apply({ kind: 'tick' });
  expect(statusOf(host).run?.kind).not.toBe(RunKind.DELETE);
  expect(host.record.forgetting).toBe(false);
  const told = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
  expect(told.blocker).toBe(why);
});
