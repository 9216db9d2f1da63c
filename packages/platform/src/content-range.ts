/** Which bytes an answer with a part has (RFC 9110 §14.4). Pure. */

export interface ContentRange {
  /** The first, from 0 on. */
  readonly start: number;
  /** The size of the whole; undefined: unknown. */
  readonly sizeBytes: number | undefined;
}

/** Parses the header Content-Range; undefined when it is unusable. */
export function parseContentRange(text: string | undefined): ContentRange | undefined {
  const found = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/.exec(text ?? '');
  if (found === null) return undefined;
  const [, start, end, size] = found;
  const sizeBytes = size === '*' ? undefined : Number(size);
  if (Number(start) > Number(end) || Number(end) >= (sizeBytes ?? Infinity)) return undefined;
  return { start: Number(start), sizeBytes };
}
