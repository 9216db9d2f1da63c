/**
 * Configuration files: their text, and the positions of problems in it. A separate entry, because
 * it needs a reader of YAML.
 */
import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml';
import { ConfigError, pathParts, problemText } from '../config-reader.ts';

export { optional, readConfigText } from './text.ts';

/** A problem and the line that it is about, counted from 1. */
export interface LineProblem {
  readonly line: number;
  /** Begins with the path of its key. */
  readonly message: string;
}

/** With this a program ends whose configuration is wrong: its unit does not start it again. */
export const wrongConfigCode = 2;

/** The result of `parse` for a text, or its problems, by line. */
export type CheckedConfig<T> =
  | { readonly kind: 'good'; readonly config: T }
  | { readonly kind: 'bad'; readonly problems: readonly LineProblem[] };

/** Reads `text`, and lists all its problems. */
export function checkConfig<T>(text: string, parse: (text: string) => T): CheckedConfig<T> {
  try {
    return { kind: 'good', config: parse(text) };
  } catch (cause) {
    if (!(cause instanceof ConfigError)) throw cause;
    return { kind: 'bad', problems: problemsAt(text, cause).sort((a, b) => a.line - b.line) };
  }
}

/** One line for each problem, as compilers write them. */
export function problemLines(file: string, problems: readonly LineProblem[]): string {
  return problems.map(({ line, message }) => `${file}:${line}: ${message}\n`).join('');
}

function problemsAt(text: string, { problems }: ConfigError): LineProblem[] {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  if (document.errors.length > 0) {
    return document.errors.map(({ pos: [at], message }) => ({
      line: lines.linePos(at).line,
      message: message.split('\n', 1)[0] ?? '',
    }));
  }
  return problems.map((problem) => {
    const offset = offsetOf(document.contents, problem.key);
    return { line: lines.linePos(offset).line, message: problemText(problem) };
  });
}

/** The position of the key of this path; of a missing one, the nearest section above it. */
function offsetOf(root: unknown, path: string): number {
  let node = root;
  let offset = 0;
  for (const part of pathParts(path)) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === part);
      if (pair === undefined) return offset;
      offset = startOf(pair.key) ?? offset;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(part)];
      offset = startOf(node) ?? offset;
    } else return offset;
  }
  return offset;
}

function startOf(node: unknown): number | undefined {
  const hasRange = isMap(node) || isSeq(node) || isScalar(node) || isAlias(node);
  return hasRange ? node.range?.[0] : undefined;
}
