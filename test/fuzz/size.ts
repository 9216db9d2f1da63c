/** How large a value is that a parser gave, roughly: what its texts, bytes and members take. */

const wordBytes = 8;
const objectBytes = 16;

/** Stops counting at the limit. What stands in the value twice counts once. */
export function sizeOf(value: unknown, limit: number): number {
  const seen = new Set<object>();
  const open: unknown[] = [value];
  let size = 0;
  while (open.length > 0 && size <= limit) {
    const one = open.pop();
    size += wordBytes;
    if (typeof one === 'string') size += one.length;
    if (typeof one !== 'object' || one === null || seen.has(one)) continue;
    seen.add(one);
    size += objectBytes;
    // A view keeps all of its buffer alive, but the buffer is the input, or that of another view.
    if (ArrayBuffer.isView(one)) size += one.byteLength;
    else if (one instanceof Map) for (const [key, member] of one) open.push(key, member);
    else if (one instanceof Set || Array.isArray(one)) for (const member of one) open.push(member);
    else for (const key of Object.keys(one)) open.push(key, (one as Record<string, unknown>)[key]);
  }
  return size;
}
