/**
 * Texts for a terminal.
 *
 * Invariant: no text from elsewhere can move the cursor, change colours or forge lines.
 */

/** East Asian wide and full-width blocks (UAX #11). */
const wide =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/;
const control = /\p{Cc}|\p{Cf}|\p{Zl}|\p{Zp}/gu;

/** The text without characters that a terminal would act on; each becomes "�". */
export function clean(text: string): string {
  return text.replaceAll(control, '�');
}

/** How many columns a text takes; wide East Asian characters take two. */
export function widthOf(text: string): number {
  let width = 0;
  for (const character of text) width += isWide(character) ? 2 : 1;
  return width;
}

/** The text, cut to `width` columns with "…" when it is longer. */
export function fit(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = '';
  let used = 1;
  for (const character of text) {
    used += widthOf(character);
    if (used > width) break;
    kept += character;
  }
  return `${kept}…`;
}

/** The same with "…" in the middle: of names that differ at their ends, as digests do. */
export function fitEnds(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  const characters = [...text];
  // Two thirds are the end's.
  const tail: string[] = [];
  let used = 1;
  for (const character of characters.toReversed()) {
    if (used + widthOf(character) > 1 + Math.ceil(((width - 1) * 2) / 3)) break;
    used += widthOf(character);
    tail.unshift(character);
  }
  const head: string[] = [];
  for (const character of characters) {
    used += widthOf(character);
    if (used > width) break;
    head.push(character);
  }
  return `${head.join('')}…${tail.join('')}`;
}

/** The text filled with blanks to `width` columns. */
export function pad(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - widthOf(text)));
}

/** "a=1 b=2" */
export function labelText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(' ');
}

function isWide(character: string): boolean {
  return wide.test(character) || /\p{Emoji_Presentation}/u.test(character);
}
