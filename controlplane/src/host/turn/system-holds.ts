/**
 * Holds that the system sets itself, and takes back once what they are for is over. Pure.
 *
 * Invariant: no request sets one. Whoever asks is named by a word and a colon ("user:ann"), so that
 * a hold by `system` is none of a person's, whatever that says.
 */
import { create } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { type Hold, HoldSchema, HoldScope } from '@rackwright/api';
import { now, system, type Turn } from './turn.ts';

/** The first word of the reason, by which it is found again. */
export type SystemHold =
  /** An address of the host was another's, whom its agent has still to forget. */
  | 'fencePending'
  /** The store has lost something, which nobody has accepted yet. */
  | 'restored'
  /** Its agent works on what was never ordered from here. */
  | 'unknownWork';

/** Of no kind, it is lifted by a person alone. */
export function holdBySystem(reason: string, since: Timestamp): Hold {
  return create(HoldSchema, { scope: HoldScope.WORK, by: system, reason, since });
}

/** `since`: when its cause began. */
export function systemHold(kind: SystemHold, text: string, since: Timestamp): Hold {
  return holdBySystem(`${kind}: ${text}`, since);
}

export function isSystemHold({ by, reason }: Hold, kind: SystemHold): boolean {
  return by === system && reason.startsWith(`${kind}: `);
}

/**
 * The host's holds of this kind say these texts from here on, and nothing else; one that stays
 * keeps its beginning. Returns whether any is new.
 */
export function keepSystemHolds(turn: Turn, kind: SystemHold, texts: readonly string[]): boolean {
  const { status } = turn;
  const wanted = texts.map((text) => systemHold(kind, text, now(turn)));
  const isWanted = ({ reason }: Hold) => wanted.some((each) => each.reason === reason);
  status.holds = status.holds.filter((hold) => !isSystemHold(hold, kind) || isWanted(hold));
  const standing = status.holds.filter((hold) => isSystemHold(hold, kind));
  const added = wanted.filter((hold) => !standing.some(({ reason }) => reason === hold.reason));
  status.holds.push(...added);
  return added.length > 0;
}
