/** Retry-After (RFC 9110 §10.2.3): seconds, or a date. */

/** The upper bound of a pause that a server asks for. */
export const retryAfterMsMax = 3_600_000;

/**
 * Milliseconds from the answer on; undefined when it says nothing that can be read. A date is
 * compared with the server's own ("Date"): no two clocks have to agree.
 */
export function retryAfterMs(headers: Readonly<Record<string, string>>): number | undefined {
  const text = headers['retry-after']?.trim() ?? '';
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1_000, retryAfterMsMax);
  // The other forms of dates are obsolete, and Node would read almost anything.
  if (!/^[A-Z][a-z]{2}, .{1,40} GMT$/.test(text)) return undefined;
  const wait = Date.parse(text) - Date.parse(headers['date'] ?? '');
  return Number.isNaN(wait) ? undefined : Math.min(Math.max(wait, 0), retryAfterMsMax);
}
