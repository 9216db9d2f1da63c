/** Chance that follows from names, so that two replicas derive the same (DESIGN §4). */

/** A number in [0, 1) that follows from `text` alone; spread evenly, not secret. */
export function hashFraction(text: string): number {
  // FNV-1a over UTF-16 units, then MurmurHash3's finalizer: FNV alone leaves the high bits, of
  // which a fraction is made, nearly equal for names that differ in their last character.
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  hash ^= hash >>> 16;
  return (hash >>> 0) / 2 ** 32;
}
