/**
 * An agent's refusal of a store, as Hello and the agent's journal carry it; and the rule for every
 * refusal that a message carries as a kind and a text. Pure.
 *
 * S1 A kind is a refusal, also one that is not known here: a newer version may have further ones.
 * S2 A text without a kind is a refusal: an older version writes no kind.
 */
import type { StoreRefusalKind } from './gen/rackwright/agent/v1/session_pb.ts';

/** The zero of each enum, as its proto file writes it (UNSPECIFIED). */
const noKind = 0;

export interface StoreRefusal {
  readonly kind: StoreRefusalKind;
  /** For people. */
  readonly text: string;
}

/** The refusal that a kind and its text make; undefined: the agent works for the store. */
export function storeRefusalOf(kind: StoreRefusalKind, text: string): StoreRefusal | undefined {
  if (!isRefusal(kind, text)) return undefined;
  return { kind, text: text === '' ? 'the store is refused' : text };
}

/** Whether a kind of any enum of refusals, and its text, are one (S1, S2). */
export function isRefusal(kind: number, text: string): boolean {
  return kind !== noKind || text !== '';
}
