/** The neighbors at the other ends of a host's cables, kept across inspections. Pure. */
import { clone, toBinary } from '@bufbuild/protobuf';
import { type Inventory, InventorySchema, type NetworkInterface } from '@rackwright/messages';

/**
 * How long the runner has to listen before silence means that there is no neighbor: switches
 * announce themselves every 30 s (IEEE 802.1AB §9.2.5.7).
 */
export const listeningEnoughSeconds = 35;

/** Silence in a short inspection does not mean that there is no neighbor. */
export function isSilenceKnown({ neighbors, listenedSeconds }: NetworkInterface): boolean {
  return neighbors.length > 0 || listenedSeconds >= listeningEnoughSeconds;
}

/** The inventory with earlier neighbors, where it does not contradict them. */
export function withEarlierNeighbors(
  before: Inventory | undefined,
  now: Inventory,
  bytesMax: number,
): Inventory {
  const earlier = new Map(before?.interfaces.map((each) => [each.mac.toLowerCase(), each]));
  const isOpen = (each: NetworkInterface): boolean =>
    !isSilenceKnown(each) && (earlier.get(each.mac.toLowerCase())?.neighbors.length ?? 0) > 0;
  if (!now.interfaces.some(isOpen)) return now;
  const kept = clone(InventorySchema, now);
  for (const each of kept.interfaces) {
    if (isOpen(each)) each.neighbors = earlier.get(each.mac.toLowerCase())?.neighbors ?? [];
  }
  // Facts are one bounded record, and an inspection never fails because of this.
  return toBinary(InventorySchema, kept).length > bytesMax ? now : kept;
}
