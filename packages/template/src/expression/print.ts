/** Expressions as texts that are read back as the same expressions. */
import { type Expression, pathText } from './syntax.ts';

/** The binding strength of each kind; a weaker operand is in parentheses. */
const strength = { or: 0, and: 1, not: 2, compare: 3 } as const;

export function printed(expression: Expression): string {
  return within(expression, 0);
}

function within(expression: Expression, least: number): string {
  switch (expression.kind) {
    case 'literal':
      return literal(expression.value);
    case 'reference':
      return pathText(expression.path);
    case 'list':
      return `[${expression.items.map(printed).join(', ')}]`;
    case 'call':
      return `${expression.name}(${expression.arguments.map(printed).join(', ')})`;
    case 'not': {
      const text = `not ${within(expression.operand, strength.not)}`;
      return parenthesised(text, strength.not, least);
    }
    case 'and':
    case 'or': {
      const own = strength[expression.kind];
      const left = within(expression.left, own);
      const right = within(expression.right, own + 1);
      return parenthesised(`${left} ${expression.kind} ${right}`, own, least);
    }
    case 'compare': {
      const left = within(expression.left, strength.compare + 1);
      const right = within(expression.right, strength.compare + 1);
      return parenthesised(`${left} ${expression.operator} ${right}`, strength.compare, least);
    }
  }
}

function parenthesised(text: string, own: number, least: number): string {
  return own < least ? `(${text})` : text;
}

const escapes: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

function literal(value: string | bigint | boolean): string {
  if (typeof value !== 'string') return String(value);
  return `"${value.replaceAll(/[\\"\n\r\t]/g, (each) => escapes[each] ?? `\\${each}`)}"`;
}
