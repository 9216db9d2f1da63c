/** Each host of a pool as shown to people, and the hosts that it does not get. */
import { HostState, userActor } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { image, Rollout, seen } from '../decide/rollout.fixture.ts';
import { shownHosts, shownPool } from './view.ts';

const viewed = ({ record, hosts, nowMs }: Rollout) => ({ record, hosts, nowMs, ledger: [] });
const two = { amount: { case: 'count' as const, value: 2 } };

const statesOf = (pool: Rollout) =>
  shownHosts(viewed(pool), pool.others).map(({ host, state }) => [host, state]);

test('a host is shown on its image, at work, and with what it waits for', () => {
  const pool = new Rollout(3).push('A');
  expect(statesOf(pool)).toEqual([1, 2, 3].map((n) => [`hosts/h${n}`, 'current']));
  pool.push('B');
  const shown = shownHosts(viewed(pool), []);
  const out = shown.find(({ host }) => host === `hosts/${pool.out}`);
  expect(out).toMatchObject({ state: 'out', healthy: false, wantedImage: image('B') });
  const waits = shown.filter(({ state }) => state === 'waiting');
  expect(waits).toHaveLength(2);
  for (const { healthy, image: now, wantedImage, message } of waits) {
    expect([healthy, now, wantedImage]).toEqual([true, image('A'), image('B')]);
    expect(message).toContain('the first host goes alone');
  }
});

test('a host at the gate serves still; one that was written serves again', () => {
  const gated = new Rollout(1, { rollout: { gate: { approval: true } } }).push('A').push('B');
  const [atGate] = shownHosts(viewed(gated), []);
  expect(atGate).toMatchObject({ state: 'atGate', healthy: true });
  expect(shownPool(viewed(gated)).status).toMatchObject({ unavailableCount: 0, currentCount: 0 });
  const soak = { seconds: 600n, nanos: 0 };
  const soaking = new Rollout(1, { rollout: { soak } }).push('A').push('B');
  expect(shownHosts(viewed(soaking), [])[0]).toMatchObject({ state: 'out', healthy: false });
  soaking.end('h1');
  expect(shownHosts(viewed(soaking), [])[0]).toMatchObject({ state: 'out', healthy: true });
});

test('hosts that the pool cannot take are shown with the reason and their image', () => {
  const pool = new Rollout(1).push('A');
  pool.hosts.push(
    seen(2, { claimedBy: userActor('ann') }),
    seen(3, {
      state: HostState.MANAGEABLE,
      image: '',
      digest: '',
      goalStopped: { kind: 'givenUp', text: 'it is held' },
    }),
    seen(4, { labels: {} }),
  );
  pool.spec.pins = { 'hosts/h9': image('B') };
  const [, contested, notReady, missing, ...more] = shownHosts(viewed(pool), []);
  expect(contested).toMatchObject({
    ...{ host: 'hosts/h2', rack: 'racks/r1', image: image('A') },
    ...{ state: 'contested', message: 'claimed by user:ann' },
  });
  expect(notReady).toMatchObject({
    ...{ host: 'hosts/h3', rack: 'racks/r2', state: 'notReady' },
    message: 'it is manageable: it is held',
  });
  expect(missing).toMatchObject({
    ...{ host: 'hosts/h9', state: 'missing', message: 'there is no such host' },
  });
  expect(more).toEqual([]);
});

test('a pool is shown with how many are current, failed and out', () => {
  const pool = new Rollout(6, { rollout: { maxUnavailable: two } }).push('A').push('B');
  pool.end(pool.out);
  const [first = '', second = ''] = pool.out.split(' ');
  pool.end(first, 'failedWriting');
  expect(pool.out).toContain(second);
  const shown = shownPool(viewed(pool));
  expect(shown.status).toMatchObject({
    ...{ hostCount: 6, currentCount: 1, failedCount: 1, unavailableMax: 2 },
    ...{ unavailableCount: 2, deleting: false },
  });
  // The shown pool is a copy.
  expect(pool.record.pool?.status?.hostCount).toBe(0);
});
