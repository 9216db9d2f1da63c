/**
 * Which hold a person means. A person names a hold by its reason, word for word: the requests have
 * no other name for it. Pure.
 *
 * Invariant: the words of a person never stand for a kind of hold. What a request does to a hold of
 * the system is decided by its kind.
 */
import { type Hold, HoldKind } from '@rackwright/messages';
import { fencePending, isFenceHold } from '../deletion/fence-hold.ts';

/** Whether a request to release this name means the hold; an empty name means each. */
export function isNamed(hold: Hold, name: string): boolean {
  return name === '' || name === hold.reason || (name === fencePending && isFenceHold(hold));
}

/** Whether a person sets the hold again, perhaps with another end. */
export function isSetAgain(
  hold: Hold,
  { scope, by, reason }: Pick<Hold, 'scope' | 'by' | 'reason'>,
): boolean {
  if (hold.kind !== HoldKind.UNSPECIFIED || hold.by !== by || hold.scope !== scope) return false;
  return hold.reason === reason;
}
