/** SHA-256 of what comes piece by piece, made where it hinders least. */
import { createHash } from 'node:crypto';

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
  /** Gives back what it holds; to be called however it ended, as often as one likes. */
  close(): void;
}

export interface Hashes {
  /** `bytesMax`: no more than so many will come, as far as is known. */
  start(bytesMax: number): RunningHash;
}

/** After so many bytes all else has its turn, if whoever asks waits for it. */
const bytesAtOnce = 16 * 1024 * 1024;

/** Hashes where it is called, and lets everything else wait meanwhile. */
export const callersHashes: Hashes = {
  start: () => {
    const hash = createHash('sha256');
    let bytesInTurn = 0;
    return {
      update: async (bytes) => {
        hash.update(bytes);
        bytesInTurn += bytes.length;
        if (bytesInTurn < bytesAtOnce) return;
        bytesInTurn = 0;
        await new Promise<void>((resolve) => setImmediate(resolve));
      },
      digest: async () => hash.digest('hex'),
      close: () => {},
    };
  },
};
