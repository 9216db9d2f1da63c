/** Addresses that are literal: no name is ever looked up on the way of a datagram. */
import { isIPv4, isIPv6 } from 'node:net';

type Answer = (cause: null, address: string, family: 4 | 6) => void;

/** A resolver for addresses that are literal: Node asks one even for those, a tick per datagram. */
export function resolveLiteral(address: string, _options: object, answer: Answer): void {
  answer(null, address, familyOf(address));
}

/**
 * The family of a literal address; 4 for anything else. IPv4 is asked for first: the pattern of
 * IPv6 takes milliseconds to compile, and a start on an IPv4 network does without it.
 */
export function familyOf(address: string): 4 | 6 {
  return !isIPv4(address) && isIPv6(address) ? 6 : 4;
}
