/**
 * Which places of a disk a burn-in writes: a share of it in stretches all over it, and in an order
 * of which every beginning is spread as well, for it may end early. Pure.
 */
import type { ByteSpan } from '@rackwright/erasure';

const mib = 1024 * 1024;
const stretchBytesMax = 1024 * mib;
/** Stretches of a small disk. */
const stretchesWanted = 256;
/** Nothing smaller is written; every logical block is a part of it. */
const stepBytes = 4_096;
/** Steps of this part of a circle repeat no place for long, and are spread evenly. */
const goldenPart = 0.618_033_988_75;

/** `share` in percent, 1–100. Spans do not overlap; each begins at a multiple of 4096. */
export function* spread(sizeBytes: number, share: number): Generator<ByteSpan> {
  if (sizeBytes <= 0) return;
  const wanted = Math.ceil(sizeBytes / stretchesWanted / mib) * mib;
  const stretchBytes = Math.min(stretchBytesMax, wanted);
  const count = Math.ceil(sizeBytes / stretchBytes);
  const step = stepFor(count);
  for (let index = 0; index < count; index += 1) {
    const offset = ((index * step) % count) * stretchBytes;
    const most = Math.min(stretchBytes, sizeBytes - offset);
    const length = Math.ceil((most * share) / 100 / stepBytes) * stepBytes;
    yield { offset, length: Math.min(most, length) };
  }
}

/** Bytes of all spans. */
export function spreadBytes(sizeBytes: number, share: number): number {
  let sum = 0;
  for (const { length } of spread(sizeBytes, share)) sum += length;
  return sum;
}

/** A step that reaches each of `count` places once. */
function stepFor(count: number): number {
  let step = Math.max(1, Math.round(count * goldenPart));
  while (divisor(step, count) !== 1) step += 1;
  return step;
}

function divisor(a: number, b: number): number {
  return b === 0 ? a : divisor(b, a % b);
}
