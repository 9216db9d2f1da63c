/**
 * Holds that the system sets itself, and removes once their cause is over. Pure.
 *
 * Invariant: no request sets one. Other actors have a word and a colon in their name ("user:ann"),
 * so that a hold by `system` is never a person's, whatever its text.
 */
import { create } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { type Hold, HoldKind, HoldSchema, HoldScope } from '@rackwright/messages';
import { now, type Pass, system } from './pass.ts';

/** Each kind with its word, by which people recognize it. */
const words = {
  [HoldKind.FENCE_PENDING]: 'fencePending',
  [HoldKind.RESTORED]: 'restored',
  [HoldKind.UNKNOWN_WORK]: 'unknownWork',
} as const;
export type SystemHold = keyof typeof words;

/** A hold without a kind: only a person lifts it. */
export function holdBySystem(reason: string, since: Timestamp): Hold {
  return create(HoldSchema, { scope: HoldScope.WORK, by: system, reason, since });
}

/** `since`: the start of its cause. */
export function systemHold(kind: SystemHold, text: string, since: Timestamp): Hold {
  const reason = `${words[kind]}: ${text}`;
  return create(HoldSchema, { scope: HoldScope.WORK, by: system, reason, since, kind });
}

export function isSystemHold(hold: Hold, kind: SystemHold): boolean {
  return hold.by === system && hold.kind === kind;
}

/**
 * Sets exactly these texts as the host's holds of this kind; a hold that stays keeps its start.
 * Returns whether any is new.
 */
export function keepSystemHolds(pass: Pass, kind: SystemHold, texts: readonly string[]): boolean {
  const { status } = pass;
  const wanted = texts.map((text) => systemHold(kind, text, now(pass)));
  const isWanted = ({ reason }: Hold) => wanted.some((each) => each.reason === reason);
  status.holds = status.holds.filter((hold) => !isSystemHold(hold, kind) || isWanted(hold));
  const standing = status.holds.filter((hold) => isSystemHold(hold, kind));
  const added = wanted.filter((hold) => !standing.some(({ reason }) => reason === hold.reason));
  status.holds.push(...added);
  return added.length > 0;
}
