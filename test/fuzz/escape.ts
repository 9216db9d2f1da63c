/**
 * An input as one line of printable ASCII, and back: the corpus is read by people. A backslash
 * begins `\n`, `\r`, `\t`, `\\` or `\xNN`.
 */

const short: Readonly<Record<number, string>> = { 9: '\\t', 10: '\\n', 13: '\\r', 92: '\\\\' };
const shortBytes = new Map(Object.entries(short).map(([byte, text]) => [text, Number(byte)]));

export function escapeBytes(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => {
    if (short[byte] !== undefined) return short[byte];
    if (byte >= 0x20 && byte < 0x7f) return String.fromCharCode(byte);
    return `\\x${byte.toString(16).padStart(2, '0')}`;
  }).join('');
}

/** Throws where the line has a character that `escapeBytes` does not write. */
export function unescapeBytes(line: string): Uint8Array {
  const pieces = line.match(/\\x[0-9a-f]{2}|\\[nrt\\]|[\x20-\x5b\x5d-\x7e]/g) ?? [];
  if (pieces.join('') !== line) throw new Error(`not an escaped input: ${line.slice(0, 60)}`);
  return Uint8Array.from(pieces, (piece) => {
    if (piece.length === 1) return piece.charCodeAt(0);
    return shortBytes.get(piece) ?? Number.parseInt(piece.slice(2), 16);
  });
}
