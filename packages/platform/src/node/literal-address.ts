/** Addresses that are literal: no name is ever looked up on the way of a datagram. */
import { isIPv6 } from 'node:net';

type Answer = (cause: null, address: string, family: 4 | 6) => void;

/** A resolver for addresses that are literal: Node asks one even for those, a tick per datagram. */
export function resolveLiteral(address: string, _options: object, answer: Answer): void {
  answer(null, address, isIPv6(address) ? 6 : 4);
}
