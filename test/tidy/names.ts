/** Names that say nothing, in file names and in what a file declares, and names used twice. */
import { codeOf } from './code-text.ts';
import { type Finding, isTestCode, type SourceFile } from './sources.ts';

const banned = new Set(['manager', 'helper', 'helpers', 'util', 'utils', 'common', 'data', 'info']);

/** Where a banned word is the term of a standard. */
const standardTerms: readonly { place: RegExp; words: readonly string[] }[] = [
  // RFC 1350 calls its packet DATA.
  { place: /^(packages\/(tftp|sim)|agent\/src\/boot|test)\//, words: ['data'] },
  // JetStream's own words: its manager, a stream's info, a message's data.
  { place: /^packages\/store\/src\/nats\//, words: ['manager', 'info', 'data'] },
  // google.rpc calls its details ErrorInfo and RetryInfo.
  { place: /^packages\/rpc\/src\/wire\/status\.ts$/, words: ['info'] },
];

const declarations = [
  /\b(?:const|let|function\*?|class|interface|type)\s+([A-Za-z_$][\w$]*)/g,
  /^[ \t]*(?:readonly\s+)?#([A-Za-z_$][\w$]*)/gm,
];

/** A text that is declared under the name of a list: `words` are several single words. */
const textCalledWords =
  /\b(words|[a-z]\w*Words)\b(?:\??(?:\([^()]*\))?: string\b(?!\[)|(?: =|:) ['"`])/g;

/** Banned words among the names of a file. */
export function findNames(file: SourceFile): Finding[] {
  const code = codeOf(file.text);
  const allowed = standardTerms.flatMap(({ place, words }) => (place.test(file.path) ? words : []));
  const judge = (name: string, line: number): Finding[] => {
    const word = wordsOf(name).find((part) => banned.has(part) && !allowed.includes(part));
    if (word === undefined) return [];
    return [{ path: file.path, line, message: `"${name}" says "${word}"; say what it is` }];
  };
  const stem = file.path.replace(/\.[a-z]+$/, '').split('/');
  return [
    ...stem.flatMap((part) => judge(part, 0)),
    ...declaredNames(withoutImports(code)).flatMap(({ name, line }) => judge(name, line)),
    ...[...code.matchAll(textCalledWords)].map(({ index, 1: name = '' }) => {
      const line = code.slice(0, index).split('\n').length;
      return { path: file.path, line, message: `"${name}" is one text; call it text` };
    }),
  ];
}

/** The names of imports were chosen elsewhere; line numbers stay. */
function withoutImports(code: string): string {
  return code.replace(/^import [^;]*;/gm, (found) => found.replace(/[^\n]/g, ' '));
}

function declaredNames(code: string): { name: string; line: number }[] {
  return declarations.flatMap((declaration) =>
    [...code.matchAll(declaration)].map((found) => ({
      name: found[1] ?? '',
      line: code.slice(0, found.index).split('\n').length,
    })),
  );
}

/** `hostInfo`, `HOST_INFO` and `host-info` are host and info. */
function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1-$2')
    .toLowerCase()
    .split(/[^a-z0-9]+/);
}

const exportedType =
  /^export (?:declare )?(?:abstract )?(?:interface|type|class|enum) ([A-Za-z_]\w*)/gm;

/**
 * Types of the product that share their name with another one of the repository: a reader who
 * searches for the name finds the wrong one, and an import of either compiles by chance.
 */
export function findSharedNames(files: readonly SourceFile[]): Finding[] {
  const owners = new Map<string, string>();
  return files
    .filter(({ path }) => !isTestCode(path) && !path.includes('/gen/'))
    .flatMap(({ path, text }) => {
      const code = codeOf(text);
      return [...code.matchAll(exportedType)].flatMap(({ index, 1: name = '' }) => {
        const owner = owners.get(name) ?? path;
        owners.set(name, owner);
        if (owner === path) return [];
        const line = code.slice(0, index).split('\n').length;
        return [{ path, line, message: `exports the type ${name}, as ${owner} does; rename one` }];
      });
    });
}
