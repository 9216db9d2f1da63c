/** Widths of Helvetica's characters, in thousandths of the size (Adobe Core 14 metrics). */

/** From the space (32) to the tilde (126). */
const widths = [
  278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556,
  556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
  611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667,
  667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500,
  222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];
/** Bold is about so much wider. */
const boldFactor = 1.12;
/** The width of characters that the table lacks: that of the widest letter. */
const otherWidth = 944;

/** Width of a text in points. */
export function textWidth(text: string, size: number, bold: boolean): number {
  let sum = 0;
  for (const character of text) sum += widths[(character.codePointAt(0) ?? 0) - 32] ?? otherWidth;
  return (sum * size * (bold ? boldFactor : 1)) / 1000;
}
