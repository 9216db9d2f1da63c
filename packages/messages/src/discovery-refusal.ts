/**
 * Why a discovered machine is not listed, as the answer to its agent carries it. Pure.
 *
 * 1. A kind is a refusal, also one that is not known here: a newer version may have further ones.
 * 2. A text without a kind is a refusal: an older version writes no kind.
 */
import { DiscoveryRefusalKind } from './gen/rackwright/agent/v1/session_pb.ts';

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
  if (cause === DiscoveryRefusalKind.UNSPECIFIED && text === '') return undefined;
  return { cause, text: text === '' ? 'the machine is refused' : text };
}
