/**
 * Evaluates an expression as far as possible: parts that depend on steps which have not run stay
 * open.
 *
 * Invariants:
 * 1. An unknown value equals nothing: every comparison with it is false, but `!=` and `not in`,
 *    which are true. So an open part holds no unknown value.
 * 2. An open part refers to steps only; everything else in it is a literal.
 */
import { functions } from './functions.ts';
import type { Comparison, Expression } from './syntax.ts';
import { comparable, isList, type Value } from './values.ts';

/** The value of a reference; "open": it is not known yet. */
export type Lookup = (path: readonly (string | number)[]) => KnownValue | 'open';

export interface KnownValue {
  readonly value: Value;
}

export type EvaluatedExpression = KnownValue | { readonly open: Expression };

export function evaluate(expression: Expression, lookup: Lookup): EvaluatedExpression {
  const { at } = expression;
  switch (expression.kind) {
    case 'literal':
      return { value: expression.value };
    case 'reference': {
      const found = lookup(expression.path);
      return found === 'open' ? { open: expression } : found;
    }
    case 'list': {
      const items = expression.items
        .map((item) => evaluate(item, lookup))
        .filter((item) => 'open' in item || item.value !== undefined);
      if (items.every((item) => 'value' in item)) return { value: items.map(({ value }) => value) };
      return { open: { kind: 'list', items: items.map((item) => asExpression(item, at)), at } };
    }
    case 'call':
      return call(expression, lookup);
    case 'not': {
      const operand = evaluate(expression.operand, lookup);
      if ('open' in operand) return { open: { kind: 'not', operand: operand.open, at } };
      return { value: operand.value !== true };
    }
    case 'and':
    case 'or':
      return joined(expression, lookup);
    case 'compare': {
      const left = evaluate(expression.left, lookup);
      const right = evaluate(expression.right, lookup);
      return compared(expression.operator, left, right, at);
    }
  }
}

function call(
  { name, arguments: given, at }: Extract<Expression, { kind: 'call' }>,
  lookup: Lookup,
): EvaluatedExpression {
  const called = Object.hasOwn(functions, name) ? functions[name] : undefined;
  if (called === undefined) return { value: undefined };
  const values = given.map((each) => evaluate(each, lookup));
  if (!called.takesUnknown && values.some((each) => 'value' in each && each.value === undefined)) {
    return { value: undefined };
  }
  if (values.every((each) => 'value' in each)) {
    return { value: called.apply(values.map(({ value }) => value)) };
  }
  const [first, second] = values;
  if (name === 'default' && first !== undefined && second !== undefined) {
    if ('value' in first) return first.value === undefined ? second : first;
    if ('value' in second && second.value === undefined) return first;
  }
  const args = values.map((each) => asExpression(each, at));
  return { open: { kind: 'call', name, arguments: args, at } };
}

/** One side may decide it although the other is open. */
function joined(
  { kind, left, right, at }: Extract<Expression, { kind: 'and' | 'or' }>,
  lookup: Lookup,
): EvaluatedExpression {
  const deciding = kind === 'or';
  const one = evaluate(left, lookup);
  if ('value' in one && (one.value === true) === deciding) return { value: deciding };
  const other = evaluate(right, lookup);
  if ('value' in other && (other.value === true) === deciding) return { value: deciding };
  if ('value' in one) return 'value' in other ? { value: !deciding } : other;
  if ('value' in other) return one;
  return { open: { kind, left: one.open, right: other.open, at } };
}

function compared(
  operator: Comparison,
  left: EvaluatedExpression,
  right: EvaluatedExpression,
  at: number,
): EvaluatedExpression {
  if ('value' in left && 'value' in right) {
    return { value: holds(operator, left.value, right.value) };
  }
  if ([left, right].some((side) => 'value' in side && side.value === undefined)) {
    return { value: holds(operator, undefined, undefined) };
  }
  return {
    open: {
      kind: 'compare',
      operator,
      left: asExpression(left, at),
      right: asExpression(right, at),
      at,
    },
  };
}

function holds(operator: Comparison, left: Value, right: Value): boolean {
  if (operator === 'in') return contains(right, left);
  if (operator === 'not in') return !contains(right, left);
  const one = comparable(left);
  const other = comparable(right);
  if (one === undefined || other === undefined) return operator === '!=';
  switch (operator) {
    case '==':
      return one === other;
    case '!=':
      return one !== other;
    case '<':
      return one < other;
    case '<=':
      return one <= other;
    case '>':
      return one > other;
    case '>=':
      return one >= other;
  }
}

function contains(list: Value, value: Value): boolean {
  const wanted = comparable(value);
  if (wanted === undefined || !isList(list)) return false;
  return list.some((each) => comparable(each) === wanted);
}

function asExpression(evaluated: EvaluatedExpression, at: number): Expression {
  if ('open' in evaluated) return evaluated.open;
  const { value } = evaluated;
  if (isList(value)) {
    return { kind: 'list', items: value.map((each) => asExpression({ value: each }, at)), at };
  }
  // Invariant 1: no unknown value arrives here, and records are not part of an open expression.
  return { kind: 'literal', value: comparable(value) ?? '', at };
}
