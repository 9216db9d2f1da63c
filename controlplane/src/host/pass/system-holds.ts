/**
 * Holds that the system sets itself, and takes back once what they are for is over. Pure.
 *
 * Invariant: no request sets one. Whoever asks is named by a word and a colon ("user:ann"), so that
 * a hold by `system` is none of a person's, whatever that says.
 */
import { create } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { type Hold, HoldKind, HoldSchema, HoldScope } from '@rackwright/messages';
import { now, type Pass, system } from './pass.ts';

/** Each with its word, by which people know it. */
const words = {
  [HoldKind.FENCE_PENDING]: 'fencePending',
  [HoldKind.RESTORED]: 'restored',
  [HoldKind.UNKNOWN_WORK]: 'unknownWork',
} as const;
export type SystemHold = keyof typeof words;

/** Of no kind, it is lifted by a person alone. */
export function holdBySystem(reason: string, since: Timestamp): Hold {
  return create(HoldSchema, { scope: HoldScope.WORK, by: system, reason, since });
}

/** `since`: when its cause began. */
export function systemHold(kind: SystemHold, text: string, since: Timestamp): Hold {
  const reason = `${words[kind]}: ${text}`;
  return create(HoldSchema, { scope: HoldScope.WORK, by: system, reason, since, kind });
}

export function isSystemHold(hold: Hold, kind: SystemHold): boolean {
  return hold.by === system && hold.kind === kind;
}

/**
 * The host's holds of this kind say these texts from here on, and nothing else; one that stays
 * keeps its beginning. Returns whether any is new.
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
