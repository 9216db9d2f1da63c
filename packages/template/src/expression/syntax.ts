/** Expressions as trees. `at` is the offset in the expression's own text. */

export type Expression =
  | Literal
  | { readonly kind: 'list'; readonly items: readonly Expression[]; readonly at: number }
  | Reference
  | {
      readonly kind: 'call';
      readonly name: string;
      readonly arguments: readonly Expression[];
      readonly at: number;
    }
  | { readonly kind: 'not'; readonly operand: Expression; readonly at: number }
  | {
      readonly kind: 'and' | 'or';
      readonly left: Expression;
      readonly right: Expression;
      readonly at: number;
    }
  | {
      readonly kind: 'compare';
      readonly operator: Comparison;
      readonly left: Expression;
      readonly right: Expression;
      readonly at: number;
    };

export interface Literal {
  readonly kind: 'literal';
  readonly value: string | bigint | boolean;
  readonly at: number;
}

export interface Reference {
  readonly kind: 'reference';
  /** "host", then fields as texts and places in lists as numbers. */
  readonly path: readonly (string | number)[];
  readonly at: number;
}

export const comparisons = ['==', '!=', '<', '<=', '>', '>=', 'in', 'not in'] as const;
export type Comparison = (typeof comparisons)[number];

/** The problem of an expression, and its place in the text. */
export interface ExpressionProblem {
  readonly at: number;
  readonly message: string;
}

/** A reference as people write it. */
export function pathText(path: readonly (string | number)[]): string {
  return path
    .map((part, index) => {
      if (typeof part === 'number') return `[${part}]`;
      if (index === 0) return part;
      return /^[A-Za-z_][A-Za-z0-9_-]*$/.test(part) ? `.${part}` : `[${JSON.stringify(part)}]`;
    })
    .join('');
}
