/** Which disk a deployment would write over, and which it leaves, by the last inventory. Pure. */
import type { DeploySpec, RootDiskHints } from '@rackwright/api';
import { ImageError, rootDisk } from '@rackwright/disk-image';
import type { ScopeDecision } from '@rackwright/erasure';
import { writeImageStep } from '../deployment/deployment.ts';

type Device = ScopeDecision['device'];

/** What is known beforehand of the disk that the image comes onto. */
export type RootForesight =
  | { readonly kind: 'disk'; readonly device: Device }
  /** The runner finds it by what no inventory has. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'none'; readonly problem: string };

/** The disk, as the runner would choose it. */
export function foreseeRoot(
  decisions: readonly ScopeDecision[],
  hints: RootDiskHints | undefined,
): RootForesight {
  if (hints !== undefined && hints.byPath !== '') return { kind: 'unknown' };
  const disks = decisions.filter(({ kind }) => kind !== 'listed').map(({ device }) => device);
  try {
    return { kind: 'disk', device: rootDisk(disks, givenOf(hints)) };
  } catch (error) {
    if (!(error instanceof ImageError)) throw error;
    return { kind: 'none', problem: error.message };
  }
}

function givenOf(hints: RootDiskHints | undefined) {
  const { serial = '', wwn = '', model = '', rotational, sizeBytes = 0n } = hints ?? {};
  const { minSizeBytes = 0n } = hints ?? {};
  return {
    ...(serial === '' ? {} : { serial }),
    ...(wwn === '' ? {} : { wwn }),
    ...(model === '' ? {} : { model }),
    ...(rotational === undefined ? {} : { rotational }),
    ...(sizeBytes === 0n ? {} : { sizeBytes: Number(sizeBytes) }),
    ...(minSizeBytes === 0n ? {} : { minSizeBytes: Number(minSizeBytes) }),
  };
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
  const isNamed = isKept(device, deploy);
  if (root.kind === 'unknown') {
    return isNamed ? 'kept: keep_disks names it' : `may be written by ${writeImageStep}`;
  }
  if (root.kind === 'none') return 'kept: no disk is chosen, and the run would fail';
  if (root.device !== device) return isNamed ? 'kept: keep_disks names it' : 'kept';
  return isNamed
    ? 'kept: keep_disks names it, and the image would come onto it; the run would fail'
    : `${writtenOver}${writeImageStep}`;
}

function isKept({ serial, wwn }: Device, deploy: DeploySpec | undefined): boolean {
  const named = deploy?.keepDisks ?? [];
  return [serial, wwn].some((name) => name !== '' && named.includes(name));
}

/** Why the run would fail by what is known of the disks; undefined: nothing is. */
export function problemOfRoot(
  root: RootForesight,
  deploy: DeploySpec | undefined,
): string | undefined {
  if (deploy?.netboot === true || root.kind === 'unknown') return undefined;
  if (root.kind === 'none') return `the run would fail: ${root.problem}`;
  if (!isKept(root.device, deploy)) return undefined;
  const { serial, wwn } = root.device;
  return `the run would fail: the image would come onto disk ${serial || wwn}, which is kept`;
}
