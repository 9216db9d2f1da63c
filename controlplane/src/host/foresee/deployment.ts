/** Which disk a deployment would overwrite, and which it leaves, by the last inventory. Pure. */

import { chooseTarget, isKeptDisk } from '@rackwright/disk-image';
import type { ScopeDecision } from '@rackwright/erasure';
import { type DeploySpec, type RootDiskHints, writeImageStep } from '@rackwright/messages';

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

/** The prefix of the fate of a disk whose data an image overwrites. */
const writtenOver = 'written over by ';

export function isWrittenOver({ fate }: { readonly fate: string }): boolean {
  return fate.startsWith(writtenOver);
}

/** The fate of one of the host's own disks. */
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
      // Not "kept": a later plan with the same request may select this disk.
      return 'not known: no disk is chosen, and the run would fail';
    case 'disk':
      return root.device === device ? `${writtenOver}${writeImageStep}` : 'kept';
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
