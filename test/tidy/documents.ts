/** Checks of documents: links and citations lead somewhere, the diagram is the machine's own. */
import { posix } from 'node:path';
import type { Finding, SourceFile } from './sources.ts';

/** Relative links of a Markdown file that lead to no file or folder of the repository. */
export function findBrokenLinks(file: SourceFile, paths: readonly string[]): Finding[] {
  return file.text.split('\n').flatMap((line, index) =>
    [...line.matchAll(/\]\(([^)\s]+)\)/g)].flatMap((found) => {
      const link = (found[1] ?? '').replace(/#.*$/, '');
      if (link === '' || /^[a-z]+:/.test(link)) return [];
      const target = posix.join(posix.dirname(file.path), link).replace(/\/$/, '');
      const resolves = paths.some((path) => path === target || path.startsWith(`${target}/`));
      if (resolves) return [];
      return [{ path: file.path, line: index + 1, message: `"${link}" leads nowhere` }];
    }),
  );
}

/** As GitHub names the anchors of headings. */
function anchorOf(heading: string): string {
  const text = heading.toLowerCase().replaceAll(/[^\p{L}\p{N}_\- ]/gu, '');
  return text.replaceAll(' ', '-');
}

/** Headings of a text outside of its code, of this depth or any. */
function headingsOf(text: string, depth = '#{1,6}'): string[] {
  const prose = text.replaceAll(/^```[^]*?^```$/gm, '').replaceAll(/^ {4}.*$/gm, '');
  return [...prose.matchAll(new RegExp(`^${depth} (.+)$`, 'gm'))].map(([, text = '']) => text);
}

/** Links to a section, of this file or of another of `files`, that there is none of. */
export function findLooseAnchors(file: SourceFile, files: readonly SourceFile[]): Finding[] {
  return file.text.split('\n').flatMap((line, index) =>
    [...line.matchAll(/\]\(([^)\s#:]*)#([^)\s]+)\)/g)].flatMap(([, link = '', anchor = '']) => {
      const path = link === '' ? file.path : posix.join(posix.dirname(file.path), link);
      const target = files.find((each) => each.path === path);
      if (target === undefined || headingsOf(target.text).map(anchorOf).includes(anchor)) return [];
      return [{ path: file.path, line: index + 1, message: `${path} has no section #${anchor}` }];
    }),
  );
}

/** Sections that the list at the beginning of a manual does not lead to. */
export function findUnlistedSections({ path, text }: SourceFile): Finding[] {
  const list = text.slice(0, text.indexOf('\n## '));
  return headingsOf(text, '##')
    .filter((heading) => !list.includes(`- [${heading}](#${anchorOf(heading)})\n`))
    .map((heading) => ({ path, line: 0, message: `"${heading}" is not in the list at the top` }));
}

/** Citations as "DESIGN §5, §7" or "DESIGN R4, R9" of what `design` has no section or rule for. */
export function findLooseCitations(file: SourceFile, design: string): Finding[] {
  const defined = new Set([
    ...[...design.matchAll(/^## (\d+)\. /gm)].map(([, section]) => `§${section}`),
    ...[...design.matchAll(/^- \*\*(R\d+)\*\* /gm)].map(([, rule]) => rule),
  ]);
  return file.text.split('\n').flatMap((line, index) =>
    [...line.matchAll(/DESIGN ((?:§|R)\d+(?:, (?:§|R)\d+)*)/g)].flatMap(([, cited = '']) => {
      const loose = cited.split(', ').filter((name) => !defined.has(name));
      const message = `DESIGN.md defines no ${loose.join(' and no ')}`;
      return loose.length === 0 ? [] : [{ path: file.path, line: index + 1, message }];
    }),
  );
}

export const diagramStart = '<!-- generated: state diagram -->';
export const diagramEnd = '<!-- end of generated -->';

/** What stands between the markers of `text`, or undefined when they are missing. */
export function diagramIn(text: string): string | undefined {
  const start = text.indexOf(diagramStart);
  const end = text.indexOf(diagramEnd);
  if (start === -1 || end < start) return undefined;
  return text.slice(start + diagramStart.length, end).trim();
}

/** The README's form of a diagram. */
export function diagramBlock(diagram: string): string {
  return `\`\`\`mermaid\n${diagram.trim()}\n\`\`\``;
}
