/**
 * Reads expressions: `or` binds weakest, then `and`, `not`, and one comparison.
 *
 * Must not: throw, or go deeper than `expressionDepthMax`.
 */
import { expressionCharsMax, expressionDepthMax } from '../limits.ts';
import { quoted, suggestionText } from '../problems.ts';
import { type Comparison, comparisons, type Expression, type ExpressionProblem } from './syntax.ts';
import { type Token, tokensOf } from './tokens.ts';

export type ExpressionResult =
  | { readonly kind: 'ok'; readonly expression: Expression }
  | ({ readonly kind: 'bad' } & ExpressionProblem);

const words = ['and', 'or', 'not', 'in', 'true', 'false'];

/** The limits of expressions that people write. */
const written = { charsMax: expressionCharsMax, depthMax: expressionDepthMax };

/** The expression that the whole text is. */
export function parseExpression(text: string, limits = written): ExpressionResult {
  const { charsMax, depthMax } = limits;
  if (text.length > charsMax) {
    const message = `has ${text.length} characters; an expression has at most ${charsMax}`;
    return { kind: 'bad', at: 0, message };
  }
  const tokens = tokensOf(text);
  if ('message' in tokens) return { kind: 'bad', ...tokens };
  const reader = new Reader(tokens, depthMax);
  const expression = reader.or(0);
  if ('message' in expression) return { kind: 'bad', ...expression };
  const { next } = reader;
  if (next.kind === 'end') return { kind: 'ok', expression };
  const hint = next.kind === 'name' ? suggestionText(next.text, ['and', 'or', 'in', 'not in']) : '';
  const message = `${shown(next)} is not expected here${hint}`;
  return { kind: 'bad', at: next.at, message };
}

type ParsedExpression = Expression | ExpressionProblem;

class Reader {
  readonly #tokens: readonly Token[];
  readonly #depthMax: number;
  #position = 0;

  constructor(tokens: readonly Token[], depthMax: number) {
    this.#tokens = tokens;
    this.#depthMax = depthMax;
  }

  get next(): Token {
    return this.#tokens[Math.min(this.#position, this.#tokens.length - 1)] as Token;
  }

  or(depth: number): ParsedExpression {
    return this.#joined('or', depth, (below) => this.#and(below));
  }

  #and(depth: number): ParsedExpression {
    return this.#joined('and', depth, (below) => this.#not(below));
  }

  #joined(
    word: 'and' | 'or',
    depth: number,
    operand: (depth: number) => ParsedExpression,
  ): ParsedExpression {
    let left = operand(depth);
    for (let deeper = depth; !('message' in left) && this.#isWord(word); deeper += 1) {
      const { at } = this.#take();
      if (deeper >= this.#depthMax) return tooDeep(at);
      const right = operand(depth);
      if ('message' in right) return right;
      left = { kind: word, left, right, at };
    }
    return left;
  }

  #not(depth: number): ParsedExpression {
    if (!this.#isWord('not')) return this.#comparison(depth);
    const { at } = this.#take();
    if (depth >= this.#depthMax) return tooDeep(at);
    const operand = this.#not(depth + 1);
    return 'message' in operand ? operand : { kind: 'not', operand, at };
  }

  #comparison(depth: number): ParsedExpression {
    const left = this.#operand(depth);
    if ('message' in left) return left;
    const { at } = this.next;
    const operator = this.#operator();
    if (operator === undefined) return left;
    const right = this.#operand(depth);
    return 'message' in right ? right : { kind: 'compare', operator, left, right, at };
  }

  #operator(): Comparison | undefined {
    if (this.#isWord('not') && this.#tokens[this.#position + 1]?.text === 'in') {
      this.#position += 2;
      return 'not in';
    }
    const { kind, text } = this.next;
    if (kind !== 'sign' && kind !== 'name') return undefined;
    const found = comparisons.find((each) => each === text);
    if (found !== undefined) this.#position += 1;
    return found;
  }

  #operand(depth: number): ParsedExpression {
    const token = this.#take();
    const { at } = token;
    if (depth >= this.#depthMax) return tooDeep(at);
    if (token.kind === 'text') return { kind: 'literal', value: token.text, at };
    if (token.kind === 'number') return numberOf(token);
    if (token.kind === 'sign' && token.text === '(') {
      const inner = this.or(depth + 1);
      return 'message' in inner ? inner : (this.#close(')', at) ?? inner);
    }
    if (token.kind === 'sign' && token.text === '[') {
      const items = this.#items(']', at, depth);
      return 'message' in items ? items : { kind: 'list', items, at };
    }
    if (token.kind === 'name' && !words.includes(token.text)) return this.#named(token, depth);
    if (token.text === 'true' || token.text === 'false') {
      return { kind: 'literal', value: token.text === 'true', at };
    }
    const wanted =
      'a value is wanted: a text in quotes, a whole number, or a field such as host.id';
    const message =
      token.kind === 'end' ? `ends too early; ${wanted}` : `${shown(token)}: ${wanted}`;
    return { at, message };
  }

  #named({ text, at }: Token, depth: number): ParsedExpression {
    if (this.#isSign('(')) {
      this.#take();
      const given = this.#items(')', at, depth);
      return 'message' in given ? given : { kind: 'call', name: text, arguments: given, at };
    }
    const path: (string | number)[] = [text];
    while (this.#isSign('.') || this.#isSign('[')) {
      const part = this.#take().text === '.' ? this.#field() : this.#index();
      if (typeof part === 'object') return part;
      path.push(part);
    }
    return { kind: 'reference', path, at };
  }

  #field(): string | ExpressionProblem {
    const { kind, text, at } = this.#take();
    return kind === 'name' ? text : { at, message: 'the name of a field is wanted behind the dot' };
  }

  #index(): string | number | ExpressionProblem {
    const token = this.#take();
    const problem = this.#close(']', token.at);
    if (token.kind === 'text') return problem ?? token.text;
    if (token.kind === 'number' && /^\d{1,4}$/.test(token.text)) {
      return problem ?? Number(token.text);
    }
    return { at: token.at, message: 'a place from 0, or a name in quotes, is wanted in […]' };
  }

  /** Expressions with commas up to the closing sign. */
  #items(closing: string, from: number, depth: number): Expression[] | ExpressionProblem {
    const items: Expression[] = [];
    while (!this.#isSign(closing)) {
      const item = this.or(depth + 1);
      if ('message' in item) return item;
      items.push(item);
      if (!this.#isSign(',')) break;
      this.#take();
    }
    return this.#close(closing, from) ?? items;
  }

  #close(closing: string, from: number): ExpressionProblem | undefined {
    if (this.#isSign(closing)) {
      this.#take();
      return undefined;
    }
    const { at, kind } = this.next;
    if (kind === 'end') return { at: from, message: `has no closing ${closing}` };
    return { at, message: `${shown(this.next)} is not expected here; ${closing} is` };
  }

  #isWord(word: string): boolean {
    return this.next.kind === 'name' && this.next.text === word;
  }

  #isSign(sign: string): boolean {
    return this.next.kind === 'sign' && this.next.text === sign;
  }

  #take(): Token {
    const { next } = this;
    this.#position += 1;
    return next;
  }
}

const digitsMax = 18;

function numberOf({ text, at }: Token): ParsedExpression {
  if (text.replace('-', '').length > digitsMax) {
    return { at, message: `a number has at most ${digitsMax} digits` };
  }
  return { kind: 'literal', value: BigInt(text), at };
}

function tooDeep(at: number): ExpressionProblem {
  return { at, message: `is nested too deeply; at most ${expressionDepthMax} go into each other` };
}

function shown(token: Token): string {
  return token.kind === 'end' ? 'the end' : quoted(token.text);
}
