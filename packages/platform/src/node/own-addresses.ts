/** The IPv4 addresses of this machine, by the interface that has them. */
import { networkInterfaces } from 'node:os';

/** The present addresses; interfaces without one are left out. */
export function nodeOwnAddresses(): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const [label, addresses = []] of Object.entries(networkInterfaces())) {
    // An address may have a label of its own, "eth1:0".
    const name = label.replace(/:.*$/, '');
    const own = addresses.filter(({ family }) => family === 'IPv4').map(({ address }) => address);
    if (own.length > 0) found.set(name, [...(found.get(name) ?? []), ...own]);
  }
  return found;
}
