/**
 * Which devices an erase step may touch: exactly those of its order that are there unchanged. Pure.
 *
 * Invariants:
 * T1 A difference between the order and the present devices ends the step before the first write.
 * T2 Every ordered device becomes a target; one that cannot be erased now is a target with a
 *    refusal, which becomes its outcome and fails the step.
 */
import {
  type DeviceFacts,
  decideScope,
  describePresence,
  deviceFactsOf,
  deviceIdentity,
  type ErasureMethod,
  hiddenBytes,
  methodOf,
  orderedScopePolicy,
  orderedVerification,
  presenceDifferences,
  signGaps,
  type Verification,
} from '@rackwright/erasure';
import type * as agent from '@rackwright/messages/agent';
import type { DeviceListing } from '../machine/block-devices.ts';

export interface Target {
  /** The device at present: kernel names are those of this boot. */
  readonly device: DeviceFacts;
  readonly identity: string;
  readonly decision: { readonly kind: 'erase'; readonly method: ErasureMethod } | RefusedPlan;
  /** The kind of its reading. */
  readonly verification: Verification;
  /** Its part of the order. */
  readonly devicePlan: agent.DevicePlan;
}

export interface RefusedPlan {
  readonly kind: 'refused';
  readonly reason: string;
}

export type Targets =
  | { readonly kind: 'targets'; readonly targets: readonly Target[] }
  | {
      readonly kind: 'changed';
      readonly differences: readonly string[];
      /** All that is wrong is that devices are not there. */
      readonly onlyMissing: boolean;
    }
  | { readonly kind: 'none' };

/** Matches the order's devices with the present ones. */
export function findTargets(
  ordered: readonly agent.DevicePlan[],
  listing: DeviceListing,
  /** The only method of this step, or undefined when the order says it per device. */
  onlyMethod?: ErasureMethod,
): Targets {
  const plans = ordered.map((plan) => ({
    facts: plan.device === undefined ? undefined : deviceFactsOf(plan.device),
    method: onlyMethod ?? methodOf(plan.method),
    verification: orderedVerification(plan),
    devicePlan: plan,
  }));
  const own = ownStorage(
    listing.devices,
    plans.map(({ facts }) => facts),
  );
  const expected = plans.map(({ facts }) => (facts === undefined ? '' : deviceIdentity(facts)));
  const gaps = signGaps(listing.signs, listing.devices);
  const presence = presenceDifferences(own, gaps, expected);
  const differences = presence.map(describePresence);
  const targets: Target[] = [];
  for (const { facts, method, verification, devicePlan } of plans) {
    const identity = facts === undefined ? '' : deviceIdentity(facts);
    const device = own.find((each) => deviceIdentity(each) === identity);
    if (facts === undefined || device === undefined) continue;
    differences.push(...changes(facts, device, devicePlan.removeHiddenArea === true));
    targets.push({
      device,
      identity,
      decision: planFor(device, own, method),
      verification,
      devicePlan,
    });
  }
  if (differences.length > 0) {
    const missing = presence.filter(({ kind }) => kind === 'missing');
    return { kind: 'changed', differences, onlyMissing: missing.length === differences.length };
  }
  return targets.length === 0 ? { kind: 'none' } : { kind: 'targets', targets };
}

/** Present devices that are the host's own, or that were ordered by name although they are not. */
function ownStorage(
  present: readonly DeviceFacts[],
  ordered: readonly (DeviceFacts | undefined)[],
): DeviceFacts[] {
  const wanted = new Set(ordered.flatMap((facts) => (facts ? [deviceIdentity(facts)] : [])));
  return decideScope(present, orderedScopePolicy)
    .filter((decision) => {
      if (decision.kind !== 'listed') return true;
      return decision.why !== 'emptyReader' && wanted.has(deviceIdentity(decision.device));
    })
    .map((decision) => decision.device);
}

function planFor(
  device: DeviceFacts,
  all: readonly DeviceFacts[],
  method: ErasureMethod | undefined,
): Target['decision'] {
  const policy = {
    // That the order names the device is the permission.
    usb: 'erase' as const,
    eraseRemoteWwns: [device.wwn],
    method: method ?? ('strongest' as const),
  };
  const decision = decideScope(all, policy)[all.indexOf(device)];
  if (decision === undefined || decision.kind !== 'inScope') {
    return { kind: 'refused', reason: decision?.reason ?? 'is not there' };
  }
  if (method === undefined) return { kind: 'refused', reason: 'the order names no known method' };
  return { kind: 'erase', method };
}

/**
 * Facts that identify a device as the planned one; names, holders and partitions may differ. A
 * device whose hidden area was to be removed has its native size, or hides a part of it still.
 */
function changes(ordered: DeviceFacts, found: DeviceFacts, removesHidden: boolean): string[] {
  const identity = deviceIdentity(ordered);
  const native = ordered.sizeBytes + hiddenBytes(ordered);
  const isGrown = removesHidden && found.sizeBytes + hiddenBytes(found) === native;
  const pairs: [string, string, string][] = [
    ['model', ordered.model, found.model],
    ['serial', ordered.serial, found.serial],
    ['WWN', ordered.wwn, found.wwn],
    ['transport', ordered.transport, found.transport],
    ['size', isGrown ? sizes(found) : sizes(ordered), sizes(found)],
  ];
  return pairs
    .filter(([, wanted, present]) => wanted !== present)
    .map(([name, wanted, present]) => {
      return `disk ${identity} has the ${name} "${present}", not "${wanted}" as planned`;
    });
}

function sizes(device: DeviceFacts): string {
  return device.regions.map((region) => region.sizeBytes).join('+');
}
