/**
 * Whom limits count as one caller, where nothing but an address is known of it: an IPv4 address,
 * or an IPv6 network of 64 bits, since any host in such a network has all of its addresses.
 */

/** IPv4 as IPv6 sockets show it. */
const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;
const groupsInNetwork = 4;
const groupsInAddress = 8;

/** The network of an address, by which its callers are counted. */
export function networkOf(address: string): string {
  const [, ipv4] = mapped.exec(address) ?? [];
  if (ipv4 !== undefined) return ipv4;
  if (!address.includes(':')) return address;
  const [plain = ''] = address.split('%');
  const [head = '', tail] = plain.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const missing =
    tail === undefined ? 0 : Math.max(0, groupsInAddress - before.length - after.length);
  const groups = [...before, ...Array<string>(missing).fill('0'), ...after];
  const network = groups.slice(0, groupsInNetwork).map((group) => group.toLowerCase());
  return `${network.join(':')}::/64`;
}
