/**
 * The number of values in a JSON text, found by walking its bytes before any object is made of
 * them: the counterpart of `survey.ts` for JSON.
 *
 * J1 Nothing is allocated per value; the walk ends at the first limit that is passed.
 * J2 A text that passes may still be no JSON. A JSON text is never counted for less than it holds:
 *    each value but the first follows a comma or an opening bracket.
 */
import type { SurveyLimits } from './survey.ts';

/** Why a JSON text is refused; `found` is at least this. */
export interface JsonExcess {
  readonly limit: 'bytes' | 'elements' | 'depth';
  readonly found: number;
  readonly most: number;
}

/** Objects and lists in each other; messages of protobuf have the same bound. */
export const jsonDepthMax = 64;

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const openers: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const closers: ReadonlySet<number> = new Set([0x5d, 0x7d]);

/** The elements of the text, or the first limit that it passes. */
export function surveyJson(
  bytes: Uint8Array,
  { bytesMax, elementsMax }: Pick<SurveyLimits, 'bytesMax' | 'elementsMax'>,
): number | JsonExcess {
  if (bytes.length > bytesMax) return { limit: 'bytes', found: bytes.length, most: bytesMax };
  let elements = 0;
  let depth = 0;
  let isInText = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] as number;
    if (isInText) {
      if (byte === backslash) at += 1;
      else if (byte === quote) isInText = false;
      continue;
    }
    if (byte === quote) isInText = true;
    else if (closers.has(byte)) depth -= 1;
    else if (openers.has(byte)) {
      depth += 1;
      elements += 1;
      if (depth > jsonDepthMax) return { limit: 'depth', found: depth, most: jsonDepthMax };
    } else if (byte === comma) elements += 1;
    if (elements > elementsMax) return { limit: 'elements', found: elements, most: elementsMax };
  }
  return elements;
}
