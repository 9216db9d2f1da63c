/** Chance, injected so that a seed reproduces a run. */
export interface Random {
  /** `count` random bytes; cryptographically strong on the real platform. */
  bytes(count: number): Uint8Array;
  /** A uniform number in [0, 1). */
  fraction(): number;
}

const hexOfByte = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/** A random identifier of 16 bytes as 32 lower-case hex digits. */
export function randomId(random: Random): string {
  let id = '';
  for (const byte of random.bytes(16)) id += hexOfByte[byte];
  return id;
}
