import { expect, test } from 'vitest';
import { htmlOf } from './html.ts';
import { type PrintedPage, sizeText } from './page.ts';
import { pdfOf } from './pdf.ts';

function page(change: Partial<PrintedPage> = {}): PrintedPage {
  const row = ['Müller (Söhne)', 'C:\\disk', '日本 – 5'] as const;
  return {
    title: 'Certificate <of> erasure',
    result: { text: 'Erased & "clear"', good: true },
    sections: [
      { kind: 'fields', heading: 'Host', fields: [['Name', row[0]]] },
      { kind: 'table', heading: 'T', columns: ['A', 'B'], widths: [0.5, 0.5], rows: [row] },
    ],
    footer: 'f',
    ...change,
  };
}

function textOf(pdf: Uint8Array): string {
  return new TextDecoder().decode(pdf);
}

/** The object that each entry of the cross-reference table points at. */
function referenced(file: string): string[] {
  const at = Number(/startxref\n(\d+)\n/.exec(file)?.[1]);
  expect(file.slice(at, at + 4)).toBe('xref');
  const entries = [...file.slice(at).matchAll(/^(\d{10}) 00000 n $/gm)];
  return entries.map(([, offset]) => file.slice(Number(offset), Number(offset) + 8));
}

test('a printed PDF has the right references, lengths and page count', () => {
  const file = textOf(pdfOf('t', [page(), page()]));
  const objects = referenced(file);
  expect(objects).toEqual(objects.map((_object, index) => `${index + 1} 0 obj`.padEnd(8, '\n')));
  for (const [, length, content] of file.matchAll(/Length (\d+) >>\nstream\n([\s\S]*?)\nends/g)) {
    expect(content).toHaveLength(Number(length));
  }
  expect(file).toContain('/Count 2');
  expect([...file].every((character) => character <= '~')).toBe(true);
});

test('PDF syntax in texts is escaped; a character without a glyph becomes a question mark', () => {
  const file = textOf(pdfOf('t', [page()]));
  expect(file).toContain(String.raw`(M\374ller)`.replace(')', String.raw` \(S\366hne\))`));
  expect(file).toContain(String.raw`(C:\\disk)`);
  expect(file).not.toContain('日');
});

test('a page shrinks until it fits one sheet, and uses a second one only after that', () => {
  const rows = (count: number) => Array.from({ length: count }, (_row, at) => [`${at}`, 'value']);
  const table = (count: number): PrintedPage => {
    const heading = { heading: 'T', columns: ['A', 'B'], widths: [0.5, 0.5] };
    return page({ sections: [{ kind: 'table', ...heading, rows: rows(count) }] });
  };
  const sheets = (count: number) => /\/Count (\d+)/.exec(textOf(pdfOf('t', [table(count)])))?.[1];
  expect(sheets(20)).toBe('1');
  expect(sheets(75)).toBe('1');
  expect(sheets(300)).toBe('4');
});

test('the printer leaves room for a pen above each line for a signature', () => {
  const labels = ['Technician', 'Validator'];
  const signed = page({ sections: [{ kind: 'signatures', heading: 'Signatures', labels }] });
  const file = textOf(pdfOf('t', [signed]));
  const lines = [...file.matchAll(/w 170 ([\d.]+) m/g)].map(([, y]) => Number(y));
  expect(lines).toHaveLength(2);
  expect((lines[0] ?? 0) - (lines[1] ?? 0)).toBeGreaterThan(24);
  expect(htmlOf('t', [signed]).match(/<th scope="row">(Technician|Validator)/g)).toHaveLength(2);
});

test('printed HTML holds no markup of values', () => {
  const html = htmlOf('t', [page({ footer: '<script>alert(1)</script>' })]);
  expect(html).toContain('Certificate &lt;of&gt; erasure');
  expect(html).toContain('Erased &amp; &quot;clear&quot;');
  expect(html).toContain('日本 – 5');
  expect(html).not.toContain('<script');
});

test('a size is printed as people read it and exactly', () => {
  expect(sizeText(1_920_383_410_176)).toBe('1.92 TB (1,920,383,410,176 bytes)');
  expect(sizeText(512)).toBe('512 bytes');
});
