/**
 * Networks of BMCs, as a person wrote them. Pure.
 *
 * A machine reports its own BMC address, and anyone who can netboot can report any address. A
 * credential is sent to such an address only when it lies in one of these networks.
 */
import { type Address, readAddress } from '@rackwright/platform';

/** Why this is not a valid network; undefined when it is. */
export function networkProblem(text: string): string | undefined {
  const network = networkOf(text);
  const wanted = 'must be a network with its prefix, as "10.0.8.0/24" or "fd00:8::/64"';
  if (network === undefined) return `is ${JSON.stringify(text)}; it ${wanted}`;
  if (network.prefix > 0) return undefined;
  return `is ${JSON.stringify(text)}, which is every address; name the networks of your BMCs`;
}

/**
 * Whether an address lies in one of the networks; a host name never does, whatever it resolves to.
 */
export function liesWithin(text: string, networks: readonly string[]): boolean {
  const address = addressOf(text);
  if (address === undefined) return false;
  return networks.map(networkOf).some((network) => {
    if (network === undefined || network.prefix === 0 || network.bits !== address.bits)
      return false;
    const rest = BigInt(network.bits - network.prefix);
    return network.value >> rest === address.value >> rest;
  });
}

function networkOf(text: string): (Address & { readonly prefix: number }) | undefined {
  const [written = '', digits = '', ...more] = text.split('/');
  const address = addressOf(written);
  if (address === undefined || more.length > 0 || !/^(0|[1-9]\d{0,2})$/.test(digits)) return;
  const prefix = Number(digits);
  return prefix > address.bits ? undefined : { ...address, prefix };
}

/** Excludes addresses of a single interface, and those that stand for the other family. */
function addressOf(text: string): Address | undefined {
  const read = readAddress(text);
  if (read?.bits !== 128) return read;
  return /[.%]/.test(text) || read.value >> 32n === mappedPrefix ? undefined : read;
}

/** "::ffff:0:0/96": an IPv4 address written as an IPv6 one. */
const mappedPrefix = 0xffffn;
