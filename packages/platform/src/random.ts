/** Chance, injected so that a seed reproduces a run. */
export interface Random {
  /** `count` random bytes; cryptographically strong on the real platform. */
  bytes(count: number): Uint8Array;
  /** A uniform number in [0, 1). */
  fraction(): number;
}

/** A random identifier of 16 bytes as 32 lower-case hex digits. */
export function randomId(random: Random): string {
  const { buffer, byteOffset, length } = random.bytes(16);
  return Buffer.from(buffer, byteOffset, length).toString('hex');
}
