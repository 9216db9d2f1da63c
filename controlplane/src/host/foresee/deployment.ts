/** Which disk a deployment would write over, and which it leaves, by the last inventory. Pure. */

import { chooseTarget, isKeptDisk } from '@rackwright/disk-image';
import type { ScopeDecision } from '@rackwright/erasure';
import { type DeploySpec, type RootDiskHints, writeImageStep } from '@rackwright/messages';

type Device = ScopeDecision['device'];

/** What is known beforehand of the disk that the image comes onto. */
export type RootForesight =
  | { readonly kind: 'disk'; readonly device: Device }
  /** The runner finds it by what no inventory has. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'none'; readonly problem: string };

/** The disk, by the very function by which the runner chooses it. */
export function foreseeRoot(
  decisions: readonly ScopeDecision[],
  hints: RootDiskHints | undefined,
  deploy: DeploySpec | undefined,
): RootForesight {
  if (hints !== undefined && hints.byPath !== '') return { kind: 'unknown' };
  const chosen = chooseTarget(decisions, hints, deploy?.keepDisks ?? []);
  return chosen.kind === 'disk' ? chosen : { kind: 'none', problem: chosen.message };
}

/** How a fate begins that loses what is on the disk to an image. */
const writtenOver = 'written over by ';

export function isWrittenOver({ fate }: { readonly fate: string }): boolean {
  return fate.startsWith(writtenOver);
}

/** What becomes of one disk that is the host's own. */
export function fateOf(
  device: Device,
  root: RootForesight,
  deploy: DeploySpec | undefined,
): string {
  if (deploy?.netboot === true) return 'kept: the host boots over the network';
  if (isKeptDisk(device, deploy?.keepDisks ?? [])) return 'kept: keep_disks names it';
  switch (root.kind) {
    case 'unknown':
      return `may be written by ${writeImageStep}`;
    case 'none':
      // No word of "kept": who asks again with the same may find it chosen.
      return 'not known: no disk is chosen, and the run would fail';
    case 'disk':
      return root.device === device ? `${writtenOver}${writeImageStep}` : 'kept';
  }
}

/** Why the run would fail by what is known of the disks; undefined: nothing is. */
export function problemOfRoot(
  root: RootForesight,
  deploy: DeploySpec | undefined,
): string | undefined {
  if (deploy?.netboot === true || root.kind !== 'none') return undefined;
  return `the run would fail: ${root.problem}`;
}
