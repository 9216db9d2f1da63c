/** Pages as HTML for print: one file, no script, nothing loaded from elsewhere. */
import type { PageSection, PrintedPage } from './page.ts';

const style = `
  body { font: 9pt/1.35 Helvetica, Arial, sans-serif; color: #111; margin: 0; }
  section.page { break-after: page; max-width: 182mm; margin: 0 auto 10mm; }
  section.page:last-child { break-after: auto; }
  h1 { font-size: 15pt; margin: 0 0 2mm; }
  h2 { font-size: 9.5pt; margin: 3mm 0 1mm; border-bottom: 0.3mm solid #888; }
  p.result { border: 0.4mm solid #111; padding: 1.5mm 2mm; margin: 0; font-weight: bold; }
  p.bad { border-width: 1mm; }
  table { border-collapse: collapse; width: 100%; table-layout: fixed; }
  td, th { text-align: left; vertical-align: top; padding: 0.3mm 2mm 0.3mm 0; }
  td, th { overflow-wrap: anywhere; }
  table.fields th { width: 46mm; font-weight: normal; color: #444; }
  table.signatures { width: 140mm; }
  table.signatures th { width: 46mm; height: 9mm; }
  table.signatures th { font-weight: normal; vertical-align: bottom; }
  table.signatures td { border-bottom: 0.3mm solid #111; }
  footer { margin-top: 3mm; padding-top: 1mm; border-top: 0.3mm solid #888; }
  footer { color: #444; font-size: 7.5pt; }
  @page { size: A4; margin: 11mm 14mm; }
  @media print {
    body { font-size: 7pt; line-height: 1.15; }
    h1 { font-size: 13pt; margin: 0 0 1mm; }
    h2 { font-size: 7.5pt; margin: 1.4mm 0 0.4mm; break-after: avoid; }
    td, th { padding: 0.1mm 2mm 0.1mm 0; }
    section.page { margin: 0 auto; }
    footer { margin-top: 2mm; font-size: 6.5pt; }
  }
`;

/** One HTML document with all pages. */
export function htmlOf(title: string, pages: readonly PrintedPage[]): string {
  const body = pages.map(pageHtml).join('\n');
  const head = `<meta charset="utf-8"><title>${escape(title)}</title><style>${style}</style>`;
  return `<!doctype html>\n<html lang="en"><head>${head}</head><body>\n${body}\n</body></html>\n`;
}

function pageHtml({ title, result, sections, footer }: PrintedPage): string {
  return [
    '<section class="page">',
    `<h1>${escape(title)}</h1>`,
    `<p class="result${result.good ? '' : ' bad'}">${escape(result.text)}</p>`,
    ...sections.map(sectionHtml),
    `<footer>${escape(footer)}</footer>`,
    '</section>',
  ].join('\n');
}

function sectionHtml(section: PageSection): string {
  const heading = `<h2>${escape(section.heading)}</h2>`;
  if (section.kind === 'fields') {
    const rows = section.fields.map(([label, value]) => {
      return `<tr><th scope="row">${escape(label)}</th><td>${escape(value)}</td></tr>`;
    });
    return `${heading}\n<table class="fields">${rows.join('\n')}</table>`;
  }
  if (section.kind === 'signatures') {
    const lines = section.labels.map((label) => {
      return `<tr><th scope="row">${escape(label)}</th><td></td></tr>`;
    });
    return `${heading}\n<table class="signatures">${lines.join('\n')}</table>`;
  }
  const columns = section.widths.map((width) => `<col style="width:${width * 100}%">`).join('');
  const titles = section.columns.map((column) => `<th scope="col">${escape(column)}</th>`).join('');
  const rows = section.rows.map((row) => {
    return `<tr>${row.map((cell) => `<td>${escape(cell)}</td>`).join('')}</tr>`;
  });
  return `${heading}\n<table>${columns}<tr>${titles}</tr>${rows.join('\n')}</table>`;
}

function escape(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
