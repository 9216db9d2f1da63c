/**
 * Copies `source` to `target`, from `at` on, as plain memory. Throws a RangeError when it does not
 * fit.
 *
 * `TypedArray.prototype.set` copies into shared memory word by word, and byte by byte where the
 * alignment of the two differs: that takes up to ten times as long. Node's copy of a part of a
 * Buffer does not. So a whole Buffer is copied in two parts.
 */
export function copyInto(target: Uint8Array, at: number, source: Uint8Array): void {
  const { byteOffset, length } = source;
  if (at + length > target.length) {
    throw new RangeError(`${length} bytes at ${at}: the target has ${target.length}`);
  }
  const whole = Buffer.from(source.buffer);
  const middle = byteOffset + (length >> 1);
  whole.copy(target, at, byteOffset, middle);
  whole.copy(target, at + middle - byteOffset, middle, byteOffset + length);
}
