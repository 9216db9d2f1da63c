/** The number of hosts for an amount in a rollout. Pure. */
import type { PoolAmount } from '@rackwright/messages';

/** Default percentage of failed hosts that stops a rollout, and the least number. */
const thresholdPercentDefault = 5;
const thresholdMin = 2;

/** A percentage is rounded down, but is at least one host; 0 is none. */
export function hostsOf(amount: PoolAmount | undefined, hosts: number, unset: number): number {
  const given = amount?.amount;
  switch (given?.case) {
    case 'count':
      return given.value;
    case 'percent':
      return given.value === 0 ? 0 : Math.max(1, Math.floor((hosts * given.value) / 100));
    default:
      return unset;
  }
}

/** How many hosts may be out at once. */
export function unavailableMax(amount: PoolAmount | undefined, hosts: number): number {
  return hostsOf(amount, hosts, 1);
}

/** How many failed hosts stop the rollout. */
export function failureThreshold(amount: PoolAmount | undefined, hosts: number): number {
  const unset = Math.max(thresholdMin, Math.floor((hosts * thresholdPercentDefault) / 100));
  return Math.max(1, hostsOf(amount, hosts, unset));
}
