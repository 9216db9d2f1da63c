/** Why a discovered machine is not listed, as the answer to its agent carries it. Pure. */
import type { DiscoveryRefusalKind } from './gen/rackwright/agent/v1/session_pb.ts';
import { isRefusal } from './store-refusal.ts';

export interface DiscoveryRefusal {
  readonly cause: DiscoveryRefusalKind;
  /** For people. */
  readonly text: string;
}

/** The refusal that a kind and its text make; undefined: the machine is listed, or known. */
export function discoveryRefusalOf(
  cause: DiscoveryRefusalKind,
  text: string,
): DiscoveryRefusal | undefined {
  if (!isRefusal(cause, text)) return undefined;
  return { cause, text: text === '' ? 'the machine is refused' : text };
}
