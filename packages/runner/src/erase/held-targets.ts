/** The targets of a step, each held open from before the first write to any until the end. */
import {
  type BlockDevices,
  type DeviceAccess,
  DeviceError,
  type HeldDevice,
} from '../machine/block-devices.ts';
import type { Target } from './targets.ts';

/** A target that is held, or is not to be, or could not be. */
export type HeldTarget =
  | { readonly kind: 'refused'; readonly target: Target; readonly reason: string }
  | { readonly kind: 'held'; readonly target: Target; readonly held: HeldDevice }
  | { readonly kind: 'failed'; readonly target: Target; readonly error: DeviceError };

/** Holds each target; a target that cannot be held stops no other. */
export async function holdTargets(
  devices: BlockDevices,
  targets: readonly Target[],
  access: DeviceAccess,
): Promise<HeldTarget[]> {
  const heldTargets: HeldTarget[] = [];
  for (const target of targets) {
    if (target.decision.kind === 'refused') {
      heldTargets.push({ kind: 'refused', target, reason: target.decision.reason });
      continue;
    }
    try {
      heldTargets.push({ kind: 'held', target, held: await devices.hold(target.device, access) });
    } catch (error) {
      if (!(error instanceof DeviceError)) {
        await releaseTargets(heldTargets);
        throw error;
      }
      heldTargets.push({ kind: 'failed', target, error });
    }
  }
  return heldTargets;
}

/** Closes the held devices. */
export async function releaseTargets(heldTargets: readonly HeldTarget[]): Promise<void> {
  for (const heldTarget of heldTargets) {
    if (heldTarget.kind === 'held') await heldTarget.held.close();
  }
}
