/**
 * The position in the source of a character of a scalar's text, for each kind of quotes and
 * folding.
 */
import type { ScalarNode } from './document.ts';

const escapeCharacters: Readonly<Record<string, number>> = { x: 4, u: 6, U: 10 };

/**
 * The offset in the source of the character at `index` of the scalar's text. Where the two cannot
 * be brought together, the last place up to which they can.
 */
export function sourceOffset(source: string, scalar: ScalarNode, index: number): number {
  let at = bodyStart(source, scalar);
  for (let each = 0; each <= index; each += 1) {
    const character = scalar.text[each];
    if (character === undefined) return Math.min(at, scalar.end);
    const found = find(source, scalar, at, character);
    if (found === undefined) return Math.min(at, scalar.end);
    if (each === index) return found.at;
    at = found.next;
  }
  return at;
}

function bodyStart(source: string, { at, end, style }: ScalarNode): number {
  if (style === 'plain') return at;
  if (style !== 'block') return at + 1;
  const lineEnd = source.indexOf('\n', at);
  return lineEnd < 0 || lineEnd >= end ? at : lineEnd + 1;
}

/** The next position whose source means `character`. */
function find(
  source: string,
  { style, end }: ScalarNode,
  from: number,
  character: string,
): { readonly at: number; readonly next: number } | undefined {
  for (let at = from; at < end; at += 1) {
    const written = source[at] ?? '';
    const following = source[at + 1] ?? '';
    if (style === 'double' && written === '\\') {
      if (/[\r\n]/.test(following)) {
        at += 1;
        continue;
      }
      return { at, next: at + (escapeCharacters[following] ?? 2) };
    }
    if (style === 'single' && written === "'" && following === "'") return { at, next: at + 2 };
    // Line breaks fold to spaces.
    if (written === character || (isSpace(written) && isSpace(character))) {
      return { at, next: at + 1 };
    }
    if (!isSpace(written)) return undefined;
  }
  return undefined;
}

function isSpace(character: string): boolean {
  return character === ' ' || character === '\n' || character === '\r' || character === '\t';
}
