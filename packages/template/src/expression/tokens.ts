/** Splits the text of an expression into tokens. */
import { quoted } from '../problems.ts';
import type { ExpressionProblem } from './syntax.ts';

export interface Token {
  readonly kind: 'name' | 'text' | 'number' | 'sign' | 'end';
  /** The content of a text; of every other token its source. */
  readonly text: string;
  readonly at: number;
}

const patterns: readonly (readonly [Token['kind'], RegExp])[] = [
  ['name', /[A-Za-z_][A-Za-z0-9_-]*/y],
  ['number', /-?\d+(?![A-Za-z0-9_.])/y],
  ['sign', /==|!=|<=|>=|[<>().,[\]]/y],
];

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r' };

/** The tokens, the last of kind "end"; or the first invalid one. */
export function tokensOf(text: string): readonly Token[] | ExpressionProblem {
  const tokens: Token[] = [];
  let at = 0;
  while (at < text.length) {
    if (/\s/.test(text[at] ?? '')) {
      at += 1;
      continue;
    }
    const found = tokenAt(text, at);
    if ('message' in found) return found;
    tokens.push(found.token);
    at = found.next;
  }
  return [...tokens, { kind: 'end', text: '', at: text.length }];
}

function tokenAt(text: string, at: number): { token: Token; next: number } | ExpressionProblem {
  const first = text[at] ?? '';
  if (first === '"' || first === "'") return textAt(text, at, first);
  for (const [kind, pattern] of patterns) {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) return { token: { kind, text: found, at }, next: at + found.length };
  }
  return { at, message: `${quoted(first)} is not understood here${hintOf(text.slice(at))}` };
}

function hintOf(rest: string): string {
  if (rest.startsWith('=')) return '; to compare write ==';
  if (rest.startsWith('&')) return '; write and';
  if (rest.startsWith('|')) return '; write or';
  if (rest.startsWith('!')) return '; write not';
  if (/^-?\d/.test(rest)) return '; a number is whole, a text stands in quotes';
  if (/^[{}]/.test(rest)) return '; an expression has no braces inside';
  return '';
}

function textAt(
  text: string,
  start: number,
  quote: string,
): { token: Token; next: number } | ExpressionProblem {
  let value = '';
  for (let at = start + 1; at < text.length; at += 1) {
    const character = text[at] ?? '';
    if (character === quote) {
      return { token: { kind: 'text', text: value, at: start }, next: at + 1 };
    }
    if (character === '\\') {
      at += 1;
      const escaped = text[at] ?? '';
      value += escapes[escaped] ?? escaped;
    } else {
      value += character;
    }
  }
  return { at: start, message: `the text that begins here has no closing ${quote}` };
}
