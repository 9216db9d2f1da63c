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
  const grips: HeldTarget[] = [];
  for (const target of targets) {
    if (target.plan.kind === 'refused') {
      grips.push({ kind: 'refused', target, reason: target.plan.reason });
      continue;
    }
    try {
      grips.push({ kind: 'held', target, held: await devices.hold(target.device, access) });
    } catch (error) {
      if (!(error instanceof DeviceError)) {
        await releaseTargets(grips);
        throw error;
      }
      grips.push({ kind: 'failed', target, error });
    }
  }
  return grips;
}

/** Closes the held devices. */
export async function releaseTargets(grips: readonly HeldTarget[]): Promise<void> {
  for (const grip of grips) {
    if (grip.kind === 'held') await grip.held.close();
  }
}
