/**
 * A branded type (`string & { readonly __brand: 'Digest' }`) says that a text was checked, or what
 * a number counts. Only the file that declares the type may assert it. So each value of the type
 * comes from a function of that file.
 */
import { codeOf } from './code-text.ts';
import type { Finding, SourceFile } from './sources.ts';

const declaration = /\btype (\w+) = (?:string|bigint) & \{ readonly __brand\b/g;

/** Files that declare a brand, by the brand's name. */
export function brandsOf(files: readonly SourceFile[]): ReadonlyMap<string, string> {
  const found = files.flatMap(({ path, text }) =>
    [...codeOf(text).matchAll(declaration)].map(([, name = '']) => [name, path] as const),
  );
  return new Map(found);
}

/** Assertions of a brand outside the file that declares it, tests included. */
export function findForgedBrands(file: SourceFile, brands: ReadonlyMap<string, string>): Finding[] {
  const lines = codeOf(file.text).split('\n');
  return lines.flatMap((line, index) =>
    [...line.matchAll(/\bas (\w+)\b/g)].flatMap(([, name = '']) => {
      const home = brands.get(name);
      if (home === undefined || home === file.path || /^(import|export)\b/.test(line)) return [];
      const message = `asserts a ${name}; take a function of ${home} that checks`;
      return [{ path: file.path, line: index + 1, message }];
    }),
  );
}
