/**
 * Byte ranges of HTTP requests (RFC 9110 §14), one at a time, as firmware and curl request them;
 * and whether the client has the file already (§13.1.2).
 */

/** Inclusive positions of a file of `sizeBytes` bytes. */
export type RangeDecision =
  | { readonly kind: 'whole' }
  | { readonly kind: 'part'; readonly start: number; readonly end: number }
  | { readonly kind: 'unsatisfiable' };

/**
 * The range of a Range header. A header that is malformed, has another unit, or lists several
 * ranges is ignored, which the RFC allows: the whole file is always a right answer.
 */
export function decideRange(header: string | undefined, sizeBytes: number): RangeDecision {
  const found = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? '');
  const [, first = '', last = ''] = found ?? [];
  if (first === '' && last === '') return { kind: 'whole' };
  if (first === '') {
    const count = Math.min(Number(last), sizeBytes);
    if (count === 0) return { kind: 'unsatisfiable' };
    return { kind: 'part', start: sizeBytes - count, end: sizeBytes - 1 };
  }
  const start = Number(first);
  if (last !== '' && Number(last) < start) return { kind: 'whole' };
  if (start >= sizeBytes) return { kind: 'unsatisfiable' };
  const end = last === '' ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1);
  return { kind: 'part', start, end };
}

/** Whether If-None-Match names this entity tag; a weak one of it counts too. */
export function isUnchanged(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  return [...ifNoneMatch.matchAll(/"[^"]*"/g)].some(([tag]) => tag === etag);
}
