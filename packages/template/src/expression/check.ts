/** Whether an expression fits together: references exist, and types go with operators. */
import { quoted, suggestionText } from '../problems.ts';
import { functions } from './functions.ts';
import { resolve, type Surroundings, stepStates } from './references.ts';
import type { Expression, ExpressionProblem } from './syntax.ts';
import { typeNames, type ValueType } from './values.ts';

type Report = (problem: ExpressionProblem) => void;

/** The type of an expression; undefined when something is wrong, which has been reported. */
export function typeOf(
  expression: Expression,
  around: Surroundings,
  report: Report,
): ValueType | undefined {
  const { at } = expression;
  const below = (each: Expression) => typeOf(each, around, report);
  switch (expression.kind) {
    case 'literal':
      return literalTypes[typeof expression.value as keyof typeof literalTypes];
    case 'reference': {
      const resolved = resolve(expression.path, around);
      if ('type' in resolved) return resolved.type;
      report({ at, message: resolved.message });
      return undefined;
    }
    case 'list':
      return listType(expression.items.map(below), at, report);
    case 'call':
      return callType(expression, expression.arguments.map(below), report);
    case 'not':
      wantBoolean(below(expression.operand), 'not', expression.operand.at, report);
      return 'boolean';
    case 'and':
    case 'or':
      for (const side of [expression.left, expression.right]) {
        wantBoolean(below(side), expression.kind, side.at, report);
      }
      return 'boolean';
    case 'compare':
      checkComparison(expression, below(expression.left), below(expression.right), report);
      return 'boolean';
  }
}

const literalTypes = { string: 'text', bigint: 'integer', boolean: 'boolean' } as const;

function listType(
  types: readonly (ValueType | undefined)[],
  at: number,
  report: Report,
): ValueType | undefined {
  if (types.includes(undefined)) return undefined;
  if (types.every((type) => type === 'text')) return 'texts';
  if (types.every((type) => type === 'integer')) return 'integers';
  report({ at, message: 'a list holds only texts, or only whole numbers' });
  return undefined;
}

function callType(
  { name, at, arguments: given }: Extract<Expression, { kind: 'call' }>,
  types: readonly (ValueType | undefined)[],
  report: Report,
): ValueType | undefined {
  const called = Object.hasOwn(functions, name) ? functions[name] : undefined;
  if (called === undefined) {
    const known = Object.keys(functions);
    report({ at, message: `there is no function ${quoted(name)}${suggestionText(name, known)}` });
    return undefined;
  }
  const { parameters } = called;
  if (types.length !== parameters.length) {
    const wanted = parameters.length === 1 ? 'one argument' : `${parameters.length} arguments`;
    report({ at, message: `${name} takes ${wanted}, and ${types.length} are given` });
    return undefined;
  }
  if (types.includes(undefined)) return undefined;
  for (const [index, type] of types.entries()) {
    const allowed = parameters[index] ?? [];
    if (type === undefined || allowed.includes(type)) continue;
    const wanted = allowed.map((each) => typeNames[each]).join(', or ');
    const message = `${name} takes ${wanted}, not ${typeNames[type]}`;
    report({ at: given[index]?.at ?? at, message });
    return undefined;
  }
  if (called.result !== undefined) return called.result;
  const odd = types.findIndex((type) => type !== types[0]);
  if (odd < 0) return types[0];
  report({ at: given[odd]?.at ?? at, message: `${name} takes arguments of one type` });
  return undefined;
}

function wantBoolean(type: ValueType | undefined, word: string, at: number, report: Report): void {
  if (type === undefined || type === 'boolean') return;
  const message = `"${word}" goes with true or false, and this is ${typeNames[type]}; compare it`;
  report({ at, message });
}

type CompareExpression = Extract<Expression, { kind: 'compare' }>;

function checkComparison(
  compared: CompareExpression,
  left: ValueType | undefined,
  right: ValueType | undefined,
  report: Report,
): void {
  if (left === undefined || right === undefined) return;
  const { operator, at } = compared;
  const wrong = comparisonProblem(operator, left, right);
  if (wrong === undefined) checkStates(compared, report);
  else report({ at, message: wrong });
}

function comparisonProblem(
  operator: CompareExpression['operator'],
  left: ValueType,
  right: ValueType,
): string | undefined {
  const sides = `${typeNames[left]} and ${typeNames[right]}`;
  switch (operator) {
    case '==':
    case '!=':
      if (isNumber(left) && isNumber(right)) return undefined;
      if (left === right && (left === 'text' || left === 'boolean')) return undefined;
      return `${operator} compares ${sides}, which are never equal`;
    case '<':
    case '<=':
    case '>':
    case '>=':
      if (isNumber(left) && isNumber(right)) return undefined;
      return `${operator} compares numbers, not ${sides}`;
    case 'in':
    case 'not in':
      if (left === 'text' && right === 'texts') return undefined;
      if (isNumber(left) && right === 'integers') return undefined;
      return (
        `"${operator}" looks for a value in a list of such values, ` +
        `not for ${typeNames[left]} in ${typeNames[right]}`
      );
  }
}

function isNumber(type: ValueType): boolean {
  return type === 'integer' || type === 'duration';
}

/** A state that no step can be in is never equal to one. */
function checkStates({ left, right }: CompareExpression, report: Report): void {
  const [state, other] = isState(left) ? [left, right] : [right, left];
  if (!isState(state)) return;
  const literals = other.kind === 'list' ? other.items : [other];
  for (const literal of literals) {
    if (literal.kind !== 'literal' || typeof literal.value !== 'string') continue;
    if (stepStates.some((known) => known === literal.value)) continue;
    const hint = suggestionText(literal.value, stepStates);
    report({ at: literal.at, message: `no step is ever ${quoted(literal.value)}${hint}` });
  }
}

function isState(expression: Expression): boolean {
  if (expression.kind !== 'reference') return false;
  return expression.path[0] === 'steps' && expression.path[2] === 'state';
}
