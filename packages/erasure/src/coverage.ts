/** Which bytes of some spans have been handed over, each exactly once. Pure. */
import type { ByteSpan } from './challenge.ts';

/** Separate pieces at once: reads in flight return out of order, but not far. */
export const gapsMax = 1024;

export interface Coverage {
  /** Takes a piece; why it does not count, or undefined. */
  take(offset: number, length: number): string | undefined;
  /** Bytes that have not been taken. */
  missing(): number;
}

/** Starts with nothing taken. Spans are ascending and do not overlap. */
export function startCoverage(spans: readonly ByteSpan[]): Coverage {
  const total = spans.reduce((sum, span) => sum + span.length, 0);
  /** Taken ranges, ascending and apart. */
  const taken: { start: number; end: number }[] = [];
  let bytes = 0;

  function insert(start: number, end: number): string | undefined {
    let at = taken.length;
    while (at > 0 && (taken[at - 1]?.start ?? 0) > start) at -= 1;
    const before = taken[at - 1];
    const after = taken[at];
    const overlaps =
      (before !== undefined && before.end > start) || (after !== undefined && after.start < end);
    if (overlaps) return `bytes from ${start} on were read twice`;
    const joinsBefore = before?.end === start;
    const joinsAfter = after?.start === end;
    if (joinsBefore && joinsAfter) {
      before.end = after.end;
      taken.splice(at, 1);
    } else if (joinsBefore) before.end = end;
    else if (joinsAfter) after.start = start;
    else if (taken.length >= gapsMax) return `more than ${gapsMax} pieces came out of order`;
    else taken.splice(at, 0, { start, end });
    bytes += end - start;
    return undefined;
  }

  return {
    take(offset, length) {
      const end = offset + length;
      const inside = spans.some((span) => {
        return offset >= span.offset && end <= span.offset + span.length;
      });
      if (!inside || length <= 0) return `${length} bytes at ${offset} are not in the plan`;
      return insert(offset, end);
    },
    missing: () => total - bytes,
  };
}
