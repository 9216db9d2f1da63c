/**
 * Small pieces made into large ones, each of which is worth the way to a decoder and back.
 *
 * G1 While one piece is used the next is gathered; the memory of both is used again and again.
 * G2 Who stops early waits for what is under way: nobody reads from the same source meanwhile.
 */

/** Pieces of `pieceBytes`, only the last one smaller. Each is valid until the next is asked for. */
export async function* gathered(
  chunks: AsyncIterable<Uint8Array>,
  pieceBytes: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  const input = chunks[Symbol.asyncIterator]();
  let rest: Uint8Array = new Uint8Array();
  let isStopped = false;
  const fill = async (piece: Uint8Array): Promise<Uint8Array> => {
    let filled = 0;
    while (filled < pieceBytes && !isStopped) {
      if (rest.length === 0) {
        const next = await input.next();
        if (next.done === true) break;
        rest = next.value;
      }
      const part = rest.subarray(0, pieceBytes - filled);
      piece.set(part, filled);
      filled += part.length;
      rest = rest.subarray(part.length);
    }
    return piece.subarray(0, filled);
  };
  let spare = new Uint8Array(pieceBytes);
  let used = new Uint8Array(pieceBytes);
  let filling = fill(spare);
  try {
    for (;;) {
      const piece = await filling;
      if (piece.length === 0) return;
      [spare, used] = [used, spare];
      filling = fill(spare);
      // Whoever asks for the next piece gets the error.
      filling.catch(() => {});
      yield piece;
    }
  } finally {
    isStopped = true;
    await filling.catch(() => {});
    await input.return?.();
  }
}
