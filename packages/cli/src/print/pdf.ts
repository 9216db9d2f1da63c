/**
 * Pages as PDF 1.4 (ISO 32000-1): text and rules on A4, in the two Helvetica fonts that every
 * reader has. A page that does not fit is set smaller; the rest of a longer one goes on a next
 * sheet. Characters outside of Windows-1252 are printed as "?"; the HTML form has them.
 */
import type { PageSection, PrintedPage } from './page.ts';
import { textWidth } from './pdf-font.ts';

const sheet = { width: 595, height: 842, margin: 42 };
const inner = sheet.width - 2 * sheet.margin;
const fullWidth = { left: sheet.margin, right: sheet.width - sheet.margin };
const labelWidth = 128;
/** A signature takes so much room, points. */
const signatureHeight = 26;
const signatureWidth = 280;
const sizeMin = 6;
const sizeMax = 9;

type Font = 'F1' | 'F2';

/** The position of the next line, and the drawn part. */
interface Cursor {
  y: number;
  readonly size: number;
  /** Content streams, one for each sheet. */
  readonly sheets: string[][];
}

/** One PDF document with all pages. */
export function pdfOf(title: string, pages: readonly PrintedPage[]): Uint8Array {
  return assemble(title, pages.flatMap(sheetsOf));
}

function sheetsOf(page: PrintedPage): string[] {
  for (let size = sizeMax; size > sizeMin; size -= 0.25) {
    const sheets = layOut(page, size);
    if (sheets.length === 1) return sheets;
  }
  return layOut(page, sizeMin);
}

function layOut(page: PrintedPage, size: number): string[] {
  const cursor: Cursor = { y: sheet.height - sheet.margin - 10, size, sheets: [[]] };
  draw(cursor, sheet.margin, cursor.y, page.title, 'F2', 15);
  cursor.y -= 14;
  drawResult(cursor, page);
  for (const section of page.sections) drawSection(cursor, section);
  const lines = wrap(page.footer, inner, size - 1, 'F1');
  room(cursor, lines.length * size * 1.3 + 8);
  cursor.y -= 6;
  rule(cursor, cursor.y + size, 0.5);
  for (const line of lines) step(cursor, [[sheet.margin, line, 'F1']], size - 1);
  return cursor.sheets.map((drawn) => drawn.join('\n'));
}

function drawResult(cursor: Cursor, { result }: PrintedPage): void {
  const size = cursor.size + 1;
  const lines = wrap(result.text, inner - 12, size, 'F2');
  const height = lines.length * size * 1.3 + 8;
  const bottom = cursor.y - height;
  const box = `${result.good ? 0.8 : 2} w ${sheet.margin} ${f(bottom)} ${inner} ${f(height)} re S`;
  cursor.sheets.at(-1)?.push(box);
  let y = cursor.y - size - 3.5;
  for (const line of lines) {
    draw(cursor, sheet.margin + 6, y, line, 'F2', size);
    y -= size * 1.3;
  }
  cursor.y = bottom - size;
}

function drawSection(cursor: Cursor, section: PageSection): void {
  const { size } = cursor;
  room(cursor, size * 5);
  cursor.y -= size * 0.7;
  step(cursor, [[sheet.margin, section.heading, 'F2']], size + 0.5);
  rule(cursor, cursor.y + size * 0.95, 0.5);
  cursor.y -= size * 0.15;
  if (section.kind === 'fields') {
    for (const [label, value] of section.fields) {
      drawRow(cursor, [label, value], [labelWidth, inner - labelWidth], 'F1');
    }
    return;
  }
  if (section.kind === 'signatures') {
    for (const label of section.labels) drawSignature(cursor, label);
    cursor.y -= cursor.size;
    return;
  }
  const widths = section.widths.map((share) => share * inner);
  drawRow(cursor, section.columns, widths, 'F2');
  for (const row of section.rows) drawRow(cursor, row, widths, 'F1');
}

function drawSignature(cursor: Cursor, label: string): void {
  room(cursor, signatureHeight);
  cursor.y -= signatureHeight - cursor.size * 1.3;
  const left = sheet.margin + labelWidth;
  rule(cursor, cursor.y - 2, 0.5, { left, right: left + signatureWidth });
  step(cursor, [[sheet.margin, label, 'F1']], cursor.size);
}

function drawRow(
  cursor: Cursor,
  cells: readonly string[],
  widths: readonly number[],
  font: Font,
): void {
  const wrapped = cells.map((cell, at) => wrap(cell, (widths[at] ?? 0) - 6, cursor.size, font));
  const count = Math.max(...wrapped.map((lines) => lines.length));
  for (let line = 0; line < count; line++) {
    let x = sheet.margin;
    const parts: [number, string, Font][] = [];
    for (const [at, lines] of wrapped.entries()) {
      parts.push([x, lines[line] ?? '', font]);
      x += widths[at] ?? 0;
    }
    room(cursor, cursor.size * 1.3);
    step(cursor, parts, cursor.size);
  }
}

/** Draws one line and moves below it. */
function step(cursor: Cursor, parts: readonly (readonly [number, string, Font])[], size: number) {
  for (const [x, text, font] of parts) draw(cursor, x, cursor.y, text, font, size);
  cursor.y -= size * 1.3;
}

/** Begins a new sheet when so much does not fit any more. */
function room(cursor: Cursor, height: number): void {
  if (cursor.y - height >= sheet.margin) return;
  cursor.sheets.push([]);
  cursor.y = sheet.height - sheet.margin - 10;
}

function rule({ sheets }: Cursor, y: number, width: number, { left, right } = fullWidth): void {
  sheets.at(-1)?.push(`${width} w ${left} ${f(y)} m ${right} ${f(y)} l S`);
}

function draw({ sheets }: Cursor, x: number, y: number, text: string, font: Font, size: number) {
  if (text === '') return;
  const origin = `/${font} ${f(size)} Tf ${f(x)} ${f(y)} Td`;
  sheets.at(-1)?.push(`BT ${origin} (${literal(text)}) Tj ET`);
}

/** Lines no wider than this; a word that is wider is cut. */
function wrap(text: string, width: number, size: number, font: Font): string[] {
  const bold = font === 'F2';
  const fits = (line: string) => textWidth(line, size, bold) <= width;
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (fits(longer)) {
      line = longer;
      continue;
    }
    if (line !== '') lines.push(line);
    line = '';
    for (const character of word) {
      if (fits(line + character)) line += character;
      else {
        lines.push(line);
        line = character;
      }
    }
  }
  return [...lines, line];
}

/** Windows-1252 beyond Latin-1, as far as our texts use it. */
const extra = new Map([
  ['–', 0x96],
  ['—', 0x97],
  ['‘', 0x91],
  ['’', 0x92],
  ['“', 0x93],
  ['”', 0x94],
  ['…', 0x85],
  ['€', 0x80],
]);

function literal(text: string): string {
  return Array.from(text, (character) => {
    const code = extra.get(character) ?? character.codePointAt(0) ?? 63;
    if ('()\\'.includes(character)) return `\\${character}`;
    if (code >= 32 && code < 127) return character;
    const known = extra.has(character) || (code >= 160 && code < 256);
    return known ? `\\${code.toString(8).padStart(3, '0')}` : '?';
  }).join('');
}

function f(value: number): string {
  return String(Math.round(value * 100) / 100);
}

function assemble(title: string, contents: readonly string[]): Uint8Array {
  const firstPage = 6;
  const pageIds = contents.map((_content, index) => firstPage + 2 * index);
  const kids = pageIds.map((id) => `${id} 0 R`).join(' ');
  const font = (name: string) =>
    `<< /Type /Font /Subtype /Type1 /BaseFont /${name} /Encoding /WinAnsiEncoding >>`;
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Kids [${kids}] /Count ${contents.length} >>`,
    font('Helvetica'),
    font('Helvetica-Bold'),
    `<< /Title (${literal(title)}) /Producer (Rackwright) >>`,
    ...contents.flatMap((content, index) => [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${sheet.width} ${sheet.height}] ` +
        '/Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> ' +
        `/Contents ${(pageIds[index] ?? 0) + 1} 0 R >>`,
      `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
    ]),
  ];
  // All of it is ASCII, so characters are bytes.
  let file = '%PDF-1.4\n';
  const offsets = objects.map((object, index) => {
    const at = file.length;
    file += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return `${String(at).padStart(10, '0')} 00000 n \n`;
  });
  const start = file.length;
  const size = objects.length + 1;
  file += `xref\n0 ${size}\n0000000000 65535 f \n${offsets.join('')}`;
  file += `trailer\n<< /Size ${size} /Root 1 0 R /Info 5 0 R >>\nstartxref\n${start}\n%%EOF\n`;
  return new TextEncoder().encode(file);
}
