/** A person approves a digest for the hosts that wait for it, and nothing else. */
import { create } from '@bufbuild/protobuf';
import { RolloutGateSchema, userActor } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { approve, gateWait } from './approval.ts';
import { digest, Rollout } from './rollout.fixture.ts';

const two = { amount: { case: 'count' as const, value: 2 } };

/** Three hosts, of which two wait for a person's approval of B. */
function waiting(): Rollout {
  const rollout = new Rollout(3, { rollout: { gate: { approval: true }, maxUnavailable: two } });
  rollout.push('A');
  rollout.push('B');
  // The first host of an image goes alone.
  const [first = ''] = rollout.out.split(' ');
  const asked = { hosts: [], digest: digest('B'), by: userActor('ann') };
  expect(approve(rollout.record, asked)).toBeUndefined();
  rollout.reconcile().end(first);
  expect(rollout.slots.map(({ approvedBy }) => approvedBy)).toEqual(['', '']);
  return rollout;
}

const approvers = ({ slots }: Rollout) => slots.map(({ approvedBy }) => approvedBy);

test('all that wait for the digest are approved together, or those that are named', () => {
  const all = waiting();
  expect(
    approve(all.record, { hosts: [], digest: digest('B'), by: userActor('ann') }),
  ).toBeUndefined();
  expect(approvers(all)).toEqual(['user:ann', 'user:ann']);
  const one = waiting();
  const [, last] = one.slots;
  const asked = { hosts: [last?.host ?? ''], digest: digest('B'), by: userActor('ann') };
  expect(approve(one.record, asked)).toBeUndefined();
  expect(approvers(one)).toEqual(['', 'user:ann']);
  // The first approval counts.
  expect(approve(one.record, { ...asked, hosts: [], by: userActor('bob') })).toBeUndefined();
  expect(approvers(one)).toEqual(['user:bob', 'user:ann']);
});

test('an approval of another digest, or of a host that does not wait, approves nobody', () => {
  const rollout = waiting();
  const [first, last] = rollout.slots;
  const names = [first?.host ?? '', last?.host ?? ''];
  const told = (hosts: readonly string[], of: string) =>
    approve(rollout.record, { hosts, digest: digest(of), by: userActor('ann') });
  const other = `${names[0]} waits for an approval of ${digest('B')}, not of ${digest('C')}`;
  expect(told([], 'C')).toBe(other);
  expect(told([names[0] ?? ''], 'C')).toBe(other);
  expect(told([names[1] ?? '', 'hosts/h9'], 'B')).toBe('hosts/h9 does not wait for an approval');
  expect(approvers(rollout)).toEqual(['', '']);
});

test('an approval is refused if no host waits, or if the gate asks no person', () => {
  const idle = new Rollout(2, { rollout: { gate: { approval: true } } }).push('A');
  const asked = { hosts: [], digest: digest('A'), by: userActor('ann') };
  expect(approve(idle.record, asked)).toBe('no host waits for an approval');
  const rollout = waiting();
  if (rollout.spec.rollout === undefined) throw new Error('it has a policy');
  rollout.spec.rollout.gate = create(RolloutGateSchema, { webhookUrl: 'https://h.example/' });
  expect(approve(rollout.record, { ...asked, digest: digest('B') })).toBe(
    'no host waits for an approval: its gate asks nobody for one',
  );
  expect(approvers(rollout)).toEqual(['', '']);
});

test('a slot at the gate waits for a person first, then others, a window, the webhook', () => {
  const rollout = waiting();
  const { record } = rollout;
  const [slot] = rollout.slots;
  if (slot === undefined || rollout.spec.rollout === undefined) throw new Error('one waits');
  expect(gateWait(record, slot, { isOpen: false })).toBe('approval');
  slot.approvedBy = 'user:ann';
  slot.waitsForOthers = true;
  expect(gateWait(record, slot, { isOpen: false })).toBe('others');
  slot.waitsForOthers = false;
  expect(gateWait(record, slot, { isOpen: false })).toBe('window');
  expect(gateWait(record, slot, { isOpen: true })).toBe('queue');
  rollout.spec.rollout.gate = create(RolloutGateSchema, { webhookUrl: 'https://h.example/' });
  expect(gateWait(record, slot, { isOpen: true })).toBe('webhook');
});
