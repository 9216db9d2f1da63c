/** Which disk a deployment would overwrite, and which it leaves, by the last inventory. Pure. */

import { chooseTarget, isKeptDisk } from '@rackwright/disk-image';
import type { ScopeDecision } from '@rackwright/erasure';
import {
  type DeploySpec,
  DeviceFate,
  type RootDiskHints,
  writeImageStep,
} from '@rackwright/messages';
import type { Fate } from './fate.ts';

type Device = ScopeDecision['device'];

/** What is known in advance of the image's disk. */
export type RootForesight =
  | { readonly kind: 'disk'; readonly device: Device }
  /** The runner selects it by a property that inventories lack. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'none'; readonly problem: string };

/** Selects the disk with the same function as the runner. */
export function foreseeRoot(
  decisions: readonly ScopeDecision[],
  hints: RootDiskHints | undefined,
  deploy: DeploySpec | undefined,
): RootForesight {
  if (hints !== undefined && hints.byPath !== '') return { kind: 'unknown' };
  const chosen = chooseTarget(decisions, hints, deploy?.keepDisks ?? []);
  return chosen.kind === 'disk' ? chosen : { kind: 'none', problem: chosen.message };
}

/** The fate of one of the host's own disks. */
export function fateOf(device: Device, root: RootForesight, deploy: DeploySpec | undefined): Fate {
  const { KEPT, MAY_BE_WRITTEN, NOT_CHOSEN, WRITTEN_OVER } = DeviceFate;
  if (deploy?.netboot === true) {
    return { deviceFate: KEPT, fate: 'kept: the host boots over the network' };
  }
  if (isKeptDisk(device, deploy?.keepDisks ?? [])) {
    return { deviceFate: KEPT, fate: 'kept: keep_disks names it' };
  }
  switch (root.kind) {
    case 'unknown':
      return { deviceFate: MAY_BE_WRITTEN, fate: `may be written by ${writeImageStep}` };
    case 'none': {
      // Not KEPT: a later plan with the same request may select this disk.
      const fate = 'not known: no disk is chosen, and the run would fail';
      return { deviceFate: NOT_CHOSEN, fate };
    }
    case 'disk':
      return root.device === device
        ? { deviceFate: WRITTEN_OVER, fate: `written over by ${writeImageStep}` }
        : { deviceFate: KEPT, fate: 'kept' };
  }
}

/** Why the run would fail, by the known disks; undefined: no reason is known. */
export function problemOfRoot(
  root: RootForesight,
  deploy: DeploySpec | undefined,
): string | undefined {
  if (deploy?.netboot === true || root.kind !== 'none') return undefined;
  return `the run would fail: ${root.problem}`;
}
