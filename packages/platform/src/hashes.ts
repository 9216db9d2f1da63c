/** SHA-256 of content that arrives piece by piece, computed where it delays other work least. */

/** One SHA-256 that is being made. */
export interface RunningHash {
  /**
   * Takes the next piece; need not wait for the one before. When it resolves the piece has been
   * hashed, and its memory is the caller's again. Rejects no later than `digest` does, so that it
   * may be left alone.
   */
  update(bytes: Uint8Array): Promise<unknown>;
  /** In lower-case hex; once, at the end. */
  digest(): Promise<string>;
  /** Releases its resources; to be called at each end, as often as one likes. */
  close(): void;
}

export interface Hashes {
  /** `bytesMax`: the expected maximum of bytes. */
  start(bytesMax: number): RunningHash;
}
