/**
 * An agent's refusal of a store, as Hello and the agent's journal carry it. Pure.
 *
 * S1 A kind is a refusal, also one that is not known here: a newer version may have further ones.
 * S2 A text without a kind is a refusal: an older version writes no kind.
 */
import { StoreRefusalKind } from './gen/rackwright/agent/v1/session_pb.ts';

export interface StoreRefusal {
  readonly kind: StoreRefusalKind;
  /** For people. */
  readonly text: string;
}

/** The refusal that a kind and its text make; undefined: the agent works for the store. */
export function storeRefusalOf(kind: StoreRefusalKind, text: string): StoreRefusal | undefined {
  if (kind === StoreRefusalKind.UNSPECIFIED && text === '') return undefined;
  return { kind, text: text === '' ? 'the store is refused' : text };
}
