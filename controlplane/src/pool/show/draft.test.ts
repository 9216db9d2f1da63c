import { clone } from '@bufbuild/protobuf';
import { HostState, userActor, store as wire } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { digest, image, Rollout } from '../decide/rollout.fixture.ts';
import { draftPoolPlan, needsLookup } from './draft.ts';
import { rolloutPlan } from './view.ts';

const available = { state: HostState.AVAILABLE, image: '', digest: '' };
const namesOf = ({ hosts }: { hosts: readonly { host: string }[] }) =>
  hosts.map(({ host }) => host).toSorted();

/** A pool that does not exist yet, with the image of a letter. */
function drafted(pool: Rollout, letter: string) {
  const { record, hosts, others, registries, nowMs } = pool;
  const draft = { record, before: undefined, digest: digest(letter) };
  return draftPoolPlan(draft, { hosts, others, registries }, nowMs);
}

test('before a pool is made, it shows the very hosts that it would write over', () => {
  const pool = new Rollout(4, {}, available);
  pool.set(1, { claimedBy: userActor('ann') });
  pool.set(2, { state: HostState.PROVISIONED, image: image('X'), digest: digest('X') });
  pool.set(3, { state: HostState.NEW });
  const plan = drafted(pool, 'A');
  expect(plan.heldBecause).toBe('');
  expect(namesOf(plan)).toEqual(['hosts/h2', 'hosts/h4']);
  expect(plan.hosts.map(({ toImage }) => toImage)).toEqual([image('A'), image('A')]);
  expect(plan.warnings).toEqual([
    'it would hold 2 hosts; in which order is settled when it is made',
    'hosts/h1 is claimed by user:ann, and not taken',
    'hosts/h3 is new: taken once it is ready',
  ]);
  // Nothing of it is stored; once created, it does exactly this.
  expect(pool.record.members).toEqual([]);
  pool.push('A').finish();
  expect(pool.record.members.map(({ host }) => host)).toEqual(namesOf(plan));
});

test('with a size, a new pool shows all that it may come to take', () => {
  const pool = new Rollout(5, { size: 2 }, available);
  const plan = drafted(pool, 'A');
  expect(plan.hosts).toHaveLength(5);
  const [first] = plan.warnings;
  expect(first).toBe('it would hold 2 hosts of these 5, which ones is settled when it is made');
});

test('with a size, a share of the hosts is one of those that a new pool takes', () => {
  const maxUnavailable = { amount: { case: 'percent' as const, value: 20 } };
  const pool = new Rollout(20, { size: 10, rollout: { maxUnavailable } });
  expect(drafted(pool, 'B').unavailableMax).toBe(2);
  pool.push('B');
  expect(pool.surveyed().unavailableMax).toBe(2);
  // For a pool that takes all hosts it is the same.
  expect(drafted(new Rollout(20, { rollout: { maxUnavailable } }), 'B').unavailableMax).toBe(4);
});

test('a change shows what it would do to the pool that is there, by its own rules', () => {
  const pool = new Rollout(4).push('A').finish();
  const before = pool.record;
  const record = clone(wire.PoolRecordSchema, before);
  const spec = record.pool?.spec;
  if (spec?.hosts === undefined) throw new Error('the pool has no selector');
  spec.hosts.names = ['hosts/h1', 'hosts/h2', 'hosts/h3'];
  expect(needsLookup(record)).toBe(false);
  spec.image = image('B');
  expect(needsLookup(record)).toBe(true);
  const { hosts, others, registries, nowMs } = pool;
  const draft = { record, before, digest: digest('B') };
  const plan = draftPoolPlan(draft, { hosts, others, registries }, nowMs);
  expect(plan.warnings).toEqual(['it would hold 3 hosts', 'given back, as they are: hosts/h4']);
  Object.assign(pool.spec, { hosts: spec.hosts, image: spec.image });
  pool.push('B');
  const real = rolloutPlan({ record: pool.record, hosts: pool.hosts, ledger: [], nowMs });
  const [gone, ...rest] = plan.hosts.map(({ host }) => host);
  expect(gone).toBe(`hosts/${pool.out}`);
  expect(rest).toEqual(real.hosts.map(({ host }) => host));
});

test('a pool that would get no host says so', () => {
  const pool = new Rollout(1, {}, { claimedBy: userActor('ann') });
  expect(drafted(pool, 'A').warnings[0]).toBe('it would hold no host');
});
