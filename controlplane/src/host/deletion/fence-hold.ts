/**
 * The hold of a host that is fenced off: one of its addresses belonged to a host that was removed
 * by force, and the agent may still act on that one (DESIGN §7). Pure; `fences.ts` finds the
 * present fences.
 */
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { actors, type Hold, HoldKind, type HostUid } from '@rackwright/messages';
import { type Pass, type PassView, recordCause, timeNow } from '../pass/pass.ts';
import { isSystemHold, systemHold } from '../pass/system-holds.ts';
import type { Refusal } from '../pass/types.ts';

/** The name of the hold; its reason has more details. */
export const fencePending = 'fencePending';
/** Hosts removed by force that the text of a hold names. */
const namedMax = 3;

/** The hold of a host that is fenced off by these forcibly removed hosts; `uids` is not empty. */
export function fenceHold(uids: readonly HostUid[], since: Timestamp): Hold {
  const names = uids.slice(0, namedMax).map((uid) => `abandonedResources/${uid}`);
  const more = uids.length > namedMax ? ` and ${uids.length - namedMax} more` : '';
  const text =
    `an agent has still to forget ${names.join(', ')}${more}, ` +
    'removed by force, which had an address of this host';
  return systemHold(HoldKind.FENCE_PENDING, { text }, since);
}

export function isFenceHold(hold: Hold): boolean {
  return isSystemHold(hold, HoldKind.FENCE_PENDING);
}

/** Only an explicit request lifts a fence: it confirms that the machine is isolated. */
export function refusalOfFence(
  { host }: PassView,
  lifted: boolean,
  physicallyDisconnected: boolean,
): Refusal | undefined {
  if (lifted === physicallyDisconnected) return undefined;
  const message = lifted
    ? 'fencePending is lifted once the agent has forgotten the host that was removed by force; ' +
      'if that machine can reach nothing any more, say so: physically_disconnected'
    : 'physically_disconnected is only for the hold fencePending, which is not among them';
  const reason = lifted ? 'fenced' : 'nothingToDo';
  return { code: 'failedPrecondition', reason, message: `${host.name}: ${message}` };
}

/** Sets exactly these fences. */
export function setFences(pass: Pass, uids: readonly HostUid[]): void {
  const { record, status } = pass;
  const since = status.holds.find(isFenceHold)?.since ?? timeNow(pass);
  record.fences = [...uids];
  status.holds = status.holds.filter((hold) => !isFenceHold(hold));
  if (uids.length > 0) status.holds.push(fenceHold(uids, since));
}

/** Removes the fences that no longer exist, and adds those around addresses that it is to take. */
export function foldFences(pass: Pass): void {
  const { fences } = pass.record;
  const { fencesPending, fencesFound = [] } = pass.snapshot;
  const lifted = fences.filter((uid) => !fencesPending.has(uid));
  const added = fencesFound.filter((uid) => !fences.includes(uid));
  if (lifted.length === 0 && added.length === 0) return;
  setFences(pass, [...fences.filter((uid) => fencesPending.has(uid)), ...added]);
  if (added.length > 0) {
    const whose = added.join(', ');
    recordCause(pass, actors.system, `an address belonged to what was removed by force (${whose})`);
    return;
  }
  const which = lifted.join(', ');
  recordCause(pass, actors.system, `the fence of what was removed by force is lifted (${which})`);
}
