/** Who is at the other end of the cables of a host, kept over inspections. Pure. */
import { clone, toBinary } from '@bufbuild/protobuf';
import { type Inventory, InventorySchema, type NetworkInterface } from '@rackwright/messages';

/**
 * How long somebody has to be listened for, before silence says that nobody is there: switches
 * speak every 30 s (IEEE 802.1AB §9.2.5.7).
 */
export const listeningEnoughSeconds = 35;

/** An inspection that was too short to hear anybody does not say that nobody is there. */
export function isSilenceKnown({ neighbors, listenedSeconds }: NetworkInterface): boolean {
  return neighbors.length > 0 || listenedSeconds >= listeningEnoughSeconds;
}

/** The inventory with those who were heard before, where it does not say otherwise. */
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
  // Facts are one bounded record, and an inspection never fails for this.
  return toBinary(InventorySchema, kept).length > bytesMax ? now : kept;
}
