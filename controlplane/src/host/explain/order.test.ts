/** The order of explanations for a host with several blockers. */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { HoldSchema, HoldScope, store } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { fenceHold } from '../deletion/fence-hold.ts';
import { type Bench, bench } from '../testing/bench.ts';
import { manageable, statusOf } from '../testing/deleting.ts';
import { explainHost } from './explain.ts';

const explain = (host: Bench) => explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });

function hold(host: Bench, scope: HoldScope, by: string): void {
  const since = timestampFromMs(host.nowMs);
  statusOf(host).holds.push(create(HoldSchema, { scope, by, reason: `asked by ${by}`, since }));
}

/** Without its credential, which would be named if there were no other blocker. */
function withoutCredential(): Bench {
  const host = bench();
  host.snapshot = { ...host.snapshot, credentialVersion: undefined };
  expect(explain(host).blocker).toBe('the credential c1');
  return host;
}

test('a hold is told before a credential that is missing', () => {
  const host = withoutCredential();
  hold(host, HoldScope.WORK, 'user:ann');
  expect(explain(host)).toMatchObject({
    headline: 'held by user:ann: nothing new starts',
    blocker: 'the hold',
  });
});

test('a fence is told before a credential that is missing', () => {
  const host = withoutCredential();
  const since = timestampFromMs(host.nowMs);
  statusOf(host).holds.push(fenceHold(['u0'], since));
  expect(explain(host).headline).toContain('fenced off');
});

test('a hold on all work is told before one on power alone, in whatever order they stand', () => {
  for (const scopes of [
    [HoldScope.POWER, HoldScope.WORK],
    [HoldScope.WORK, HoldScope.POWER],
  ]) {
    const host = manageable();
    host.record.pendingPower = create(store.PendingPowerSchema, { by: 'user:bob' });
    for (const scope of scopes) {
      hold(host, scope, scope === HoldScope.WORK ? 'user:work' : 'user:power');
    }
    expect(explain(host).headline).toBe('held by user:work: nothing new starts');
  }
});

test('a hold on power alone is told only while a power command waits', () => {
  const host = manageable();
  hold(host, HoldScope.POWER, 'user:power');
  expect(explain(host).blocker).toBe('');
  host.record.pendingPower = create(store.PendingPowerSchema, { by: 'user:bob' });
  expect(explain(host).headline).toBe('held by user:power: its power is not switched');
});
