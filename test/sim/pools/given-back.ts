/** When the slot of a deployment may be given back. Pure. */
import { type RolloutSlot, type Run, RunKind, RunPhase } from '@rackwright/messages';
import type { BegunDeployments } from './begun.ts';
import { digestOf } from './untouched.ts';

export function isDeployment({ kind }: Run): boolean {
  return kind === RunKind.PROVISION || kind === RunKind.REIMAGE;
}

/**
 * Whether the run of the host is that of the slot of `pool`, and keeps the slot. `begun` tells
 * whether anything of it stands on the disk.
 */
export function isUnderWay(
  { hostUid, image, run: ofSlot, runsBefore }: RolloutSlot,
  run: Run | undefined,
  pool: string,
  begun: BegunDeployments,
): boolean {
  if (run === undefined || run.phase === RunPhase.ENDED || run.requestedBy !== pool) return false;
  const isOwn = ofSlot === 0n ? run.number > runsBefore : run.number === ofSlot;
  if (!isOwn || !isDeployment(run)) return false;
  // Called off while the host stood as it was: who has to say that it ended may be away for long.
  return run.abort?.by !== pool || begun.hasBegun(hostUid, run.number, digestOf(image));
}
