/**
 * DESIGN §5, Scope: *present* is the union of the devices that the runner sees, other signs of
 * storage, and the list of the plan or the BMC. A difference fails the clean, since a disk that
 * nobody looked at is a disk with data. Pure.
 */
import { type DeviceFacts, deviceIdentity } from './facts.ts';
import { describeGap, type SignGap } from './signs.ts';

export type PresenceDifference =
  | { readonly kind: 'gap'; readonly gap: SignGap }
  | { readonly kind: 'missing'; readonly identity: string }
  | { readonly kind: 'unexpected'; readonly identity: string; readonly name: string };

/**
 * Differences between the seen and the expected devices. `expected` holds identities
 * (`deviceIdentity`); undefined means that nobody made a list, and then only gaps count. Devices
 * outside the scope are left out by the caller; gaps come from all of them (`signGaps`).
 */
export function presenceDifferences(
  seen: readonly DeviceFacts[],
  gaps: readonly SignGap[],
  expected: readonly string[] | undefined,
): PresenceDifference[] {
  const differences: PresenceDifference[] = gaps.map((gap) => ({ kind: 'gap', gap }));
  if (expected === undefined) return differences;
  const seenIdentities = new Set(seen.map((device) => deviceIdentity(device)));
  for (const identity of expected) {
    if (!seenIdentities.has(identity)) differences.push({ kind: 'missing', identity });
  }
  for (const device of seen) {
    const identity = deviceIdentity(device);
    if (!expected.includes(identity)) {
      differences.push({ kind: 'unexpected', identity, name: device.name });
    }
  }
  return differences;
}

/** One sentence per difference, for the step's message. */
export function describePresence(difference: PresenceDifference): string {
  switch (difference.kind) {
    case 'gap':
      return describeGap(difference.gap);
    case 'missing':
      return `disk ${difference.identity} of the plan is not there`;
    case 'unexpected':
      return `disk ${difference.identity} (${difference.name}) is not in the plan`;
  }
}
