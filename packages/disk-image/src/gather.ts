/**
 * Makes large pieces of small ones, so that each is worth its transfer to a decoder and back.
 *
 * G1 While one piece is used the next is gathered; the memory of both is reused.
 * G2 A reader that stops early waits for the read under way: nobody reads from the same source
 *    meanwhile.
 */
import { copyInto, giveBack } from '@rackwright/bytes';

/** Memory for two pieces of one size. */
export type PieceMemory = readonly [Uint8Array, Uint8Array];

/**
 * The piece size that is worth its transfer to a decoder, bytes. A decoder works beside the
 * program; with smaller pieces it waits for the next one as long as it works.
 */
const pieceBytes = 1024 * 1024;

/** Memory for pieces of a mebibyte, which other threads can be shown. */
export function pieceMemory(): PieceMemory {
  const half = (): Uint8Array => new Uint8Array(new SharedArrayBuffer(pieceBytes));
  return [half(), half()];
}

const nothing: Uint8Array = new Uint8Array();

/**
 * Pieces as large as each half of `memory`, which holds them; only the last one is smaller. Each is
 * valid until the next is requested.
 */
export async function* gathered(
  chunks: AsyncIterable<Uint8Array>,
  memory: PieceMemory,
): AsyncGenerator<Uint8Array, void, undefined> {
  let [spare, used] = memory;
  const input = chunks[Symbol.asyncIterator]();
  let chunk = nothing;
  let taken = 0;
  let isStopped = false;
  const fill = async (piece: Uint8Array): Promise<Uint8Array> => {
    let filled = 0;
    while (filled < piece.length && !isStopped) {
      if (taken === chunk.length) {
        giveBack(chunk);
        [chunk, taken] = [nothing, 0];
        const next = await input.next();
        if (next.done === true) break;
        chunk = next.value;
      }
      const part = chunk.subarray(taken, taken + piece.length - filled);
      copyInto(piece, filled, part);
      filled += part.length;
      taken += part.length;
    }
    return piece.subarray(0, filled);
  };
  let filling = fill(spare);
  try {
    for (;;) {
      const piece = await filling;
      if (piece.length === 0) return;
      [spare, used] = [used, spare];
      filling = fill(spare);
      // The next request for a piece gets the error.
      filling.catch(() => {});
      yield piece;
    }
  } finally {
    isStopped = true;
    // The reader has left: the error of the next piece has no recipient.
    await filling.catch(() => {});
    await input.return?.();
  }
}
