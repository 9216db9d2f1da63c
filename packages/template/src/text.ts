/** Texts with `{{ expressions }}` in them. */
import type { ScalarNode } from './document.ts';
import { typeOf } from './expression/check.ts';
import { evaluate, type Lookup } from './expression/evaluate.ts';
import { parseExpression } from './expression/parse.ts';
import type { Surroundings } from './expression/references.ts';
import { type Expression, pathText } from './expression/syntax.ts';
import { textOf, typeNames } from './expression/values.ts';
import { expressionCharsMax, renderedBytesMax } from './limits.ts';
import { sourceOffset } from './positions.ts';
import { type Problems, quoted } from './problems.ts';

/** The problem of a whole text; undefined when it is fine. */
export type TextCheck = (text: string) => string | undefined;

export interface TextTemplate {
  readonly pieces: readonly Piece[];
  /** The whole text when nothing in it depends on anything. */
  readonly constant: string | undefined;
  /** The source text. */
  readonly written: string;
  readonly check: TextCheck;
  readonly path: string;
  /** Its position in the source. */
  readonly at: number;
}

type Piece =
  | string
  | {
      readonly expression: Expression;
      /** The position in the source of an offset of the expression's text. */
      readonly at: (offset: number) => number;
    };

export interface TextSource {
  readonly source: string;
  readonly scalar: ScalarNode;
  readonly path: string;
  readonly around: Surroundings;
  readonly problems: Problems;
}

/** Reads and checks; a constant text also as a whole. */
export function textTemplate(textSource: TextSource, check: TextCheck): TextTemplate {
  const { scalar, path, problems } = textSource;
  const pieces: Piece[] = [];
  const { text } = scalar;
  let from = 0;
  for (let open = text.indexOf('{{'); open >= 0; open = text.indexOf('{{', from)) {
    if (problems.isFull) break;
    const close = closing(text, open + 2);
    if (close === undefined) {
      problems.add(sourceOffset(textSource.source, scalar, open), path, '{{ has no closing }}');
      break;
    }
    if (open > from) pieces.push(text.slice(from, open));
    const piece = expressionPiece(textSource, open + 2, close);
    if (piece !== undefined) pieces.push(piece);
    from = close + 2;
  }
  if (from < text.length) pieces.push(text.slice(from));
  const isConstant = !text.includes('{{');
  const whole = isConstant ? text : undefined;
  const template = { pieces, constant: whole, written: text, check, path, at: scalar.at };
  if (isConstant) {
    const problem = check(text);
    if (problem !== undefined) problems.add(scalar.at, path, problem);
  }
  return template;
}

/** The position of the "}}"; one inside quotes does not count, unless these stay open. */
function closing(text: string, from: number): number | undefined {
  let quote = '';
  const end = Math.min(text.length, from + expressionCharsMax);
  for (let at = from; at < end; at += 1) {
    const character = text[at] ?? '';
    if (quote !== '') {
      if (character === '\\') at += 1;
      else if (character === quote) quote = '';
    } else if (character === '"' || character === "'") {
      quote = character;
    } else if (character === '}' && text[at + 1] === '}') {
      return at;
    }
  }
  const plain = text.indexOf('}}', from);
  return plain < 0 ? undefined : plain;
}

function expressionPiece(textSource: TextSource, from: number, to: number): Piece | undefined {
  const { source, scalar, path, around, problems } = textSource;
  const at = (offset: number) => sourceOffset(source, scalar, from + offset);
  const parsed = parseExpression(scalar.text.slice(from, to));
  if (parsed.kind === 'bad') {
    problems.add(at(parsed.at), path, parsed.message);
    return undefined;
  }
  const { expression } = parsed;
  const report = (problem: { at: number; message: string }) =>
    problems.add(at(problem.at), path, problem.message);
  const type = typeOf(expression, around, report);
  if (type === 'texts' || type === 'integers' || type === 'records' || type === 'record') {
    const message = `${typeNames[type]} is no text; use join(…, " ") or json(…)`;
    report({ at: expression.at, message });
  }
  return { expression, at };
}

/** The parameters of a rendering. */
export interface RenderingParameters {
  readonly lookup: Lookup;
  readonly problems: Problems;
  /** Characters that may still be filled in, over all texts. */
  readonly room: { chars: number };
}

/** The same for one rendering as a whole. */
export function roomForAll(): RenderingParameters['room'] {
  return { chars: renderedBytesMax };
}

/** The text with everything filled in; undefined when something was missing or is wrong. */
export function renderText(
  { pieces, check, path, at }: TextTemplate,
  { lookup, problems, room }: RenderingParameters,
): string | undefined {
  // The excess has been reported at its place.
  if (problems.isFull || room.chars < 0) return undefined;
  const before = problems.count;
  let whole = '';
  for (const piece of pieces) {
    if (room.chars < 0) break;
    const text = typeof piece === 'string' ? piece : filledIn(piece, lookup);
    if (text === undefined) {
      const { expression, at: textSource } = piece as Exclude<Piece, string>;
      problems.add(textSource(expression.at), path, unknownMessage(expression));
      continue;
    }
    room.chars -= text.length;
    whole += text;
  }
  if (room.chars < 0) problems.add(at, path, `makes it too much: ${tooMuch}`);
  if (problems.count > before) return undefined;
  const problem = check(whole);
  if (problem === undefined) return whole;
  problems.add(at, path, `${problem}; filled in it is ${quoted(whole)}`);
  return undefined;
}

/** The message when all the texts together have become too long. */
export const tooMuch = `filled in, all steps together have at most ${renderedBytesMax} bytes`;

function filledIn({ expression }: Exclude<Piece, string>, lookup: Lookup): string | undefined {
  const evaluated = evaluate(expression, lookup);
  return 'value' in evaluated ? textOf(evaluated.value) : undefined;
}

function unknownMessage(expression: Expression): string {
  const so = expression.kind === 'reference' ? pathText(expression.path) : 'this';
  const instead = `default(${expression.kind === 'reference' ? so : '…'}, "…")`;
  return `${so} is not known of this host; write ${instead} if it may be missing`;
}

/** A text as people wrote it, its expressions included. */
export function textSource({ written }: TextTemplate): string {
  return written;
}

/** Everything that a text refers to. */
export function referencesOf({ pieces }: TextTemplate): (readonly (string | number)[])[] {
  return pieces.flatMap((piece) => (typeof piece === 'string' ? [] : paths(piece.expression)));
}

function paths(expression: Expression): (readonly (string | number)[])[] {
  switch (expression.kind) {
    case 'literal':
      return [];
    case 'reference':
      return [expression.path];
    case 'list':
      return expression.items.flatMap(paths);
    case 'call':
      return expression.arguments.flatMap(paths);
    case 'not':
      return paths(expression.operand);
    case 'and':
    case 'or':
    case 'compare':
      return [...paths(expression.left), ...paths(expression.right)];
  }
}
