/** Below this, memory is rarely a piece's own, and not worth the call. Bytes. */
const ownBytesMin = 16 * 1024;

/**
 * Gives back the memory of a piece that came from a stream and was copied: it is empty afterwards.
 * Left to the collector, memory outside its heap makes it run dozens of times a second. Does
 * nothing when the piece is only a part of its memory.
 */
export function giveBack({ buffer, byteLength }: Uint8Array): void {
  if (byteLength < ownBytesMin || buffer.byteLength !== byteLength) return;
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}
