/** Labels of a family, and the bound on how many combinations of them there can be. Pure. */

/** The values of a label: a closed list, or all that occur up to a number of values. */
export type LabelValues = readonly string[] | { readonly valuesMax: number };

export type LabelSpec = Readonly<Record<string, LabelValues>>;

/** The labels of one sample, as their family declares them. */
export type LabelsOf<S extends LabelSpec> = {
  readonly [L in keyof S]: S[L] extends readonly (infer V extends string)[] ? V : string;
};

/** The label value for values beyond the bound. */
export const otherValue = 'other';

/** Longest value of an open label, in UTF-16 units; a longer one is `otherValue`. */
const valueUnitsMax = 128;

/** The number of possible combinations of values, `otherValue` of each label included. */
export function combinationsMax(spec: LabelSpec): number {
  return Object.values(spec).reduce((product, values) => product * (sizeOf(values) + 1), 1);
}

function sizeOf(values: LabelValues): number {
  return 'valuesMax' in values ? values.valuesMax : values.length;
}

/**
 * Admits values of one family's labels: those that its spec names, and the first others up to the
 * bound.
 */
export class LabelAdmission<S extends LabelSpec> {
  readonly names: readonly string[];
  readonly #allowed: readonly { readonly known: Set<string>; readonly valuesMax: number }[];

  constructor(spec: S) {
    this.names = Object.keys(spec);
    this.#allowed = Object.values(spec).map((values) =>
      'valuesMax' in values
        ? { known: new Set<string>(), valuesMax: values.valuesMax }
        : { known: new Set(values), valuesMax: values.length },
    );
  }

  /** The values in the order of `names`. */
  admit(labels: LabelsOf<S>): readonly string[] {
    const given: Readonly<Record<string, string | undefined>> = labels;
    return this.names.map((name, at) => this.#value(given[name] ?? '', at));
  }

  #value(value: string, at: number): string {
    const allowed = this.#allowed[at];
    if (allowed === undefined || allowed.known.has(value)) return value;
    if (allowed.known.size >= allowed.valuesMax || value.length > valueUnitsMax) return otherValue;
    allowed.known.add(value);
    return value;
  }
}

/** Every combination of closed lists; undefined when a label is open. */
export function combinationsOf(spec: LabelSpec): readonly (readonly string[])[] | undefined {
  let all: readonly (readonly string[])[] = [[]];
  for (const values of Object.values(spec)) {
    if ('valuesMax' in values) return undefined;
    all = all.flatMap((before) => values.map((value) => [...before, value]));
  }
  return all;
}
