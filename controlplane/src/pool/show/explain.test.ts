/** The explanation of what a pool waits for, and what helps. */
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  type Explanation,
  ExplanationSchema,
  PoolAmountSchema,
  type RolloutPolicy,
  RolloutPolicySchema,
  userActor,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { approve } from '../decide/approval.ts';
import { digest, image, Rollout } from '../decide/rollout.fixture.ts';
import { explainPool, withPool } from './explain.ts';

const count = (value: number) => ({ amount: { case: 'count' as const, value } });
const windows = [{ cron: '0 2 * * *', duration: durationFromMs(3_600_000), timeZone: '' }];

function explained(
  { record, hosts, nowMs }: Rollout,
  contested: ReadonlyMap<string, string> = new Map(),
): Explanation {
  return explainPool(record, hosts, contested, nowMs);
}

const textsOf = ({ causes }: Explanation): string[] => causes.map(({ text }) => text);
const policy = (pool: Rollout, change: Partial<RolloutPolicy>): void => {
  pool.spec.rollout = Object.assign(pool.spec.rollout ?? create(RolloutPolicySchema), change);
  pool.reconcile();
};

test('a pool whose hosts all run its image waits for nothing', () => {
  const pool = new Rollout(2).push('A');
  expect(explained(pool)).toMatchObject({
    subject: 'pools/p',
    headline: '2 of 2 hosts are on their image',
    blocker: '',
    unblock: [],
    causes: [],
  });
  expect(explained(pool).since).toBeUndefined();
  expect(explained(pool).nextAttemptTime).toBeUndefined();
});

test('a pool that nobody has looked at yet says so', () => {
  const told = explained(new Rollout(0));
  expect(told.headline).toBe('it has not been looked at yet');
  expect(told.blocker).toBe('its image to be resolved');
  const text = 'registry.example/os:stable is not resolved: it is being looked up';
  expect(textsOf(told)).toEqual([text]);
});

test('a pause is shown with the command that ends it', () => {
  const pool = new Rollout(2).push('A');
  policy(pool, { paused: true });
  const told = explained(pool.push('B'));
  expect(told.blocker).toBe('a person to resume it');
  expect(textsOf(told)).toEqual(['it is paused']);
  expect(told.unblock).toEqual(['let it go on: rackwright pool resume p']);
  expect(told.since).toBeDefined();
});

test('a pool that may have nobody out is told how to let it', () => {
  const pool = new Rollout(2).push('A');
  policy(pool, { maxUnavailable: create(PoolAmountSchema, count(0)) });
  const told = explained(pool.push('B'));
  expect(told.blocker).toBe('a person to let hosts be out');
  expect(told.unblock).toEqual(['let hosts be out: rackwright pool update p --max-unavailable 1']);
});

test('a halt names who failed, another image, and the way to try again', () => {
  const pool = new Rollout(3, { rollout: { failureThreshold: count(1) } }).push('A').push('B');
  const name = pool.out;
  const told = explained(pool.end(name, 'failedWriting'));
  expect(told.blocker).toBe('another image, or a failed host to be well again');
  expect(textsOf(told)[0]).toContain(`1 host failed on ${image('B')}; 1 stops the rollout`);
  expect(textsOf(told)).toContain(`hosts/${name}: its run failed`);
  expect(told.unblock).toEqual([
    'give it another image: rackwright pool update p --image IMAGE',
    `once what made it fail is mended, try it again: rackwright host retry ${name}`,
    `see the host: rackwright host explain ${name}`,
  ]);
});

test('a failure that halts nothing leaves those that are out as what is waited for', () => {
  const pool = new Rollout(4, {
    rollout: { failureThreshold: count(3), maxUnavailable: count(2) },
  });
  pool.push('A').push('B');
  const first = pool.out;
  const told = explained(pool.end(first).end(pool.out.split(' ')[0] ?? '', 'failedWriting'));
  expect(told.blocker).toMatch(/^1 of its hosts that are out$/);
  expect(told.unblock.join()).toContain('give it another image');
  expect(told.unblock.join()).not.toContain('pool resume');
});

test('an approval is asked for by digest; a webhook is named without its path', () => {
  const gate = { approval: true, webhookUrl: 'https://h.example/secret?token=t' };
  const pool = new Rollout(2, { rollout: { gate } }).push('A').push('B');
  const asked = explained(pool);
  expect(asked.blocker).toBe('an approval');
  expect(asked.unblock).toEqual([`approve them: rackwright pool approve p ${digest('B')}`]);
  expect(textsOf(asked)[0]).toBe(
    `${pool.slots[0]?.host} is at the gate for ${image('B')}: waits for an approval`,
  );
  approve(pool.record, { hosts: [], digest: digest('B'), by: userActor('ann') });
  const told = explained(pool.reconcile());
  expect(told.blocker).toBe('the webhook at https://h.example');
  expect(told.unblock).toEqual([
    'see what https://h.example wants, or ask nobody: rackwright pool update p --gate none',
  ]);
  expect(JSON.stringify(told.unblock)).not.toContain('secret');
});

test('a window that is shut is waited for until it opens', () => {
  const pool = new Rollout(2, { rollout: { windows } }).push('A').push('B');
  const told = explained(pool);
  expect(told.blocker).toBe('its window');
  expect(told.unblock).toContain('wait for its window, or change its windows');
  expect(told.nextAttemptTime?.seconds).toBe(BigInt(Date.UTC(2026, 10, 23, 2) / 1_000));
  const [waits = ''] = textsOf(told);
  expect(waits).toMatch(/^hosts\/h\d waits for a window, which opens at 2026-11-23T02:00:00Z$/);
});

test('a blocked slot is shown with its host, and a slot in a pause with its time', () => {
  const pool = new Rollout(1).push('A');
  pool.set(1, { keptBy: { kind: 'hold', text: 'its work is held by ann: disks' } });
  const kept = explained(pool.push('B'));
  expect(textsOf(kept)).toEqual(['hosts/h1: its work is held by ann: disks']);
  expect(kept.blocker).toBe('hosts/h1');
  expect(kept.unblock).toEqual(['see the host: rackwright host explain h1']);
  const again = new Rollout(1).push('A').push('B');
  again.end('h1', 'failedBefore');
  const told = explained(again);
  expect(told.nextAttemptTime?.seconds).toBe(BigInt((again.nowMs + 5 * 60_000) / 1_000));
  expect(textsOf(told)[0]).toContain('tried again after a pause');
});

test('hosts of others, and a selector that means none, are shown with what to look at', () => {
  const pool = new Rollout(0).push('A');
  const nobody = explained(pool);
  expect(nobody.blocker).toBe('hosts that it may hold');
  expect(nobody.unblock).toEqual([
    'let its selector mean hosts that are available, or provisioned and unclaimed',
  ]);
  const contested = new Map(
    Array.from({ length: 7 }, (_, at) => [`hosts/h${at}`, 'claimed by user:ann'] as const),
  );
  const told = explained(pool, contested);
  expect(told.unblock).toEqual(['see who has its hosts: rackwright pool hosts p']);
  expect(textsOf(told)).toHaveLength(6);
  expect(textsOf(told)[0]).toBe('hosts/h0 is claimed by user:ann');
  expect(textsOf(told).at(-1)).toBe('and 2 more that it does not get');
});

test('many slots are told as counts, with the one that has been out for longest', () => {
  const pool = new Rollout(12, { rollout: { maxUnavailable: count(8) } }).push('A').push('B');
  pool.end(pool.out);
  expect(pool.slots.length).toBeGreaterThan(5);
  const texts = textsOf(explained(pool));
  expect(texts[0]).toBe(`of ${pool.slots.length} slots ${pool.slots.length} at work; the oldest:`);
  expect(texts[1]).toBe(`${pool.slots[0]?.host} is out for ${image('B')}`);
});

test('a host is explained with its slot in the pool, unless it is on its image', () => {
  const pool = new Rollout(2).push('A').push('B');
  const out = `hosts/${pool.out}`;
  const waits = pool.hosts.find(({ name }) => name !== out)?.name ?? '';
  const of = (subject: string, blocker = '') => {
    const explanation = create(ExplanationSchema, { subject, blocker });
    return withPool(explanation, pool.record, pool.hosts, pool.nowMs);
  };
  expect(textsOf(of(out))).toEqual([`pools/p: it has a slot for ${image('B')}`]);
  const told = of(waits);
  expect(textsOf(told)[0]).toMatch(
    new RegExp(`^pools/p: it shall run ${image('B')}, and the first host goes alone`),
  );
  expect(told.blocker).toBe('a free slot in pools/p');
  expect(told.unblock).toEqual(['see what it waits for: rackwright pool explain p']);
  expect(of(waits, 'a person')).toMatchObject({ blocker: 'a person', unblock: [] });
  expect(of('hosts/h9').causes).toEqual([]);
  pool.finish();
  expect(of(out)).toMatchObject({ causes: [], blocker: '' });
});
