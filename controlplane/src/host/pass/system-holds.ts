/**
 * Holds that the system sets itself, and removes once their cause is over. Pure.
 *
 * Invariants:
 * 1. No request sets one. Other actors have a word and a colon in their name ("user:ann"), so that
 *    a hold by `system` is never a person's, whatever its text.
 * 2. Kind and operation tell these holds apart, and no text does. A stored hold without a kind is
 *    lifted only by a person. One without the operation that its kind needs is of no operation: it
 *    stands until the next Hello puts the holds of the listed operations in its place.
 */
import { create } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import {
  actors,
  type Hold,
  HoldKind,
  HoldSchema,
  HoldScope,
  isBySystem,
  type OperationId,
} from '@rackwright/messages';
import { type Pass, timeNow } from './pass.ts';

/** Each kind with its word, by which people recognize it. */
const texts = {
  [HoldKind.FENCE_PENDING]: 'fencePending',
  [HoldKind.RESTORED]: 'restored',
  [HoldKind.UNKNOWN_WORK]: 'unknownWork',
} as const;
export type SystemHold = keyof typeof texts;

/** A hold without a kind: only a person lifts it. */
export function holdBySystem(reason: string, since: Timestamp): Hold {
  return create(HoldSchema, { scope: HoldScope.WORK, by: actors.system, reason, since });
}

/** The cause of a hold: its text for people, and the operation where the kind has one. */
export interface HoldCause {
  readonly text: string;
  readonly operationId?: OperationId;
}

/** `since`: the start of its cause. */
export function systemHold(
  kind: SystemHold,
  { text, operationId = '' }: HoldCause,
  since: Timestamp,
): Hold {
  const reason = `${texts[kind]}: ${text}`;
  return create(HoldSchema, {
    scope: HoldScope.WORK,
    by: actors.system,
    reason,
    since,
    kind,
    operationId,
  });
}

export function isSystemHold(hold: Hold, kind: SystemHold): boolean {
  return isBySystem(hold.by) && hold.kind === kind;
}

/**
 * Sets exactly these causes as the host's holds of this kind; a hold that stays keeps its start and
 * its text. True: one of them is new.
 */
export function keepSystemHolds(
  pass: Pass,
  kind: SystemHold,
  causes: readonly HoldCause[],
): boolean {
  const { status } = pass;
  const byId = new Map(causes.map((cause) => [cause.operationId ?? '', cause]));
  const wanted = [...byId.values()].map((cause) => systemHold(kind, cause, timeNow(pass)));
  const wantedIds = new Set(wanted.map(({ operationId }) => operationId));
  status.holds = status.holds.filter(
    (hold) => !isSystemHold(hold, kind) || wantedIds.has(hold.operationId),
  );
  const present = status.holds.filter((hold) => isSystemHold(hold, kind));
  const presentIds = new Set(present.map(({ operationId }) => operationId));
  const added = wanted.filter(({ operationId }) => !presentIds.has(operationId));
  status.holds.push(...added);
  return added.length > 0;
}
