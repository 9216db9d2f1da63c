/**
 * Looks names up for connections whose target an untrusted party may set. The address is judged as
 * the connection is made, so a name whose answer changes meanwhile gains nothing.
 */
import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { internalAddress, mayBeReached } from '../internal-address.ts';

/** All that the name resolves to is internal, and not listed. Nothing was sent. */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused';
}

/** "127.0.0.1 is a loopback address, which is not listed" */
export function refusedText(host: string, address: string): string {
  const kind = internalAddress(address) ?? 'no address that may be reached';
  const whose = host === address ? address : `${host} is at ${address}, which`;
  return `${whose} is ${kind} and not listed among the internal addresses`;
}

type ResolveAll = (
  name: string,
  options: LookupOptions & { readonly all: true },
  answer: (error: NodeJS.ErrnoException | null, found: LookupAddress[]) => void,
) => void;

/**
 * Finds only addresses that may be reached at `port`. Tests give another `resolve`.
 */
export function guardedLookup(
  port: number,
  listed: readonly string[],
  resolve: ResolveAll = lookup,
): LookupFunction {
  return (name, options, answer) => {
    resolve(name, { ...options, all: true }, (error, found) => {
      if (error !== null) {
        answer(error, '', 0);
        return;
      }
      const reached = found.filter(({ address }) => mayBeReached(address, port, listed));
      const [first] = reached;
      if (first === undefined) {
        answer(new AddressRefused(refusedText(name, found[0]?.address ?? '')), '', 0);
      } else if (options.all === true) answer(null, reached);
      else answer(null, first.address, first.family);
    });
  };
}
