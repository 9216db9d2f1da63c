/**
 * The figures of one program. Code that counts gets a handle of one family and nothing else.
 *
 * M1 A family's size is bounded by its declaration: values beyond the bound of a label are counted
 *    together under "other".
 * M2 Counting costs a look-up. It never waits and never throws.
 * M3 A value that is read at a scrape is read at once. A reader that throws costs its own family.
 *    Its error is reported once, until the family can be read again.
 */
import {
  combinationsMax,
  combinationsOf,
  LabelAdmission,
  type LabelSpec,
  type LabelsOf,
} from './labels.ts';

export type FamilyKind = 'counter' | 'gauge' | 'histogram';

/** Counts events: only grows. */
export interface Counter<S extends LabelSpec> {
  /** `by` is 0 or more; 1 unless given. */
  add(labels: LabelsOf<S>, by?: number): void;
}

/** Counts how long things took, in seconds. */
export interface Durations<S extends LabelSpec> {
  observe(labels: LabelsOf<S>, seconds: number): void;
  /** The same for frequent observations: its labels are looked up once. */
  observerOf(labels: LabelsOf<S>): (seconds: number) => void;
}

/** One value of a gauge, or of a counter that other code keeps. */
export interface Sample<S extends LabelSpec> {
  readonly labels: LabelsOf<S>;
  readonly value: number;
}

/** One series as it is exposed. */
export interface Series {
  /** In the order of the family's `labelNames`. */
  readonly values: readonly string[];
  /** For a histogram: the number of values up to each bound, then of all. */
  readonly buckets?: readonly number[];
  /** For a histogram: the sum of seconds. */
  readonly value: number;
}

/** A family as it is exposed. */
export interface Family {
  readonly name: string;
  readonly kind: FamilyKind;
  readonly help: string;
  readonly labelNames: readonly string[];
  /** Upper bounds of a histogram, seconds, growing; empty otherwise. */
  readonly bounds: readonly number[];
  readonly series: readonly Series[];
}

interface DeclaredMetric {
  readonly name: string;
  readonly spec: LabelSpec;
  /** Lines that it can have at most. */
  readonly linesMax: number;
  readonly read: () => Family;
}

/** Series of a closed family that exist from the start, as 0: then a first increase is seen. */
const zeroSeriesMax = 64;
/** A histogram's series are long: fewer of them. */
const zeroDurationsMax = 8;

/** Work that takes minutes to days: runs and their steps, seconds. */
export const workBounds: readonly number[] = [
  1, 5, 15, 30, 60, 120, 300, 600, 1_200, 3_600, 10_800, 28_800, 86_400,
];
/** Calls and answers, seconds. */
export const callBounds: readonly number[] = [
  0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
];

export class Registry {
  readonly #declared: DeclaredMetric[] = [];
  /** Families that could not be read at the last scrape. */
  readonly #broken = new Set<string>();
  #unread = 0;

  constructor() {
    this.counts('rackwright_metrics_unread_total', 'Families that could not be read.', {}, () => [
      { labels: {}, value: this.#unread },
    ]);
  }

  /** The name has to end in "_total". */
  counter<const S extends LabelSpec>(name: string, help: string, spec: S): Counter<S> {
    const admission = new LabelAdmission(spec);
    const values = zeros(spec, () => ({ value: 0 }));
    this.#declare(name, spec, 1, () => ({
      ...{ name, kind: 'counter', help, labelNames: admission.names, bounds: [] },
      series: [...values.values()].map(({ key, cell }) => ({ values: key, value: cell.value })),
    }));
    return {
      add: (labels, by = 1) => {
        if (by > 0) cellOf(values, admission.admit(labels), () => ({ value: 0 })).value += by;
      },
    };
  }

  /** `bounds` grow; one more bucket counts values above the last. */
  durations<const S extends LabelSpec>(
    name: string,
    help: string,
    spec: S,
    bounds: readonly number[],
  ): Durations<S> {
    const admission = new LabelAdmission(spec);
    const empty = () => ({ sum: 0, counts: new Float64Array(bounds.length + 1) });
    const values = zeros(spec, empty, zeroDurationsMax);
    this.#declare(name, spec, bounds.length + 3, () => ({
      ...{ name, kind: 'histogram', help, labelNames: admission.names, bounds },
      series: [...values.values()].map(({ key, cell }) => ({
        values: key,
        value: cell.sum,
        buckets: cumulated(cell.counts),
      })),
    }));
    const cell = (labels: LabelsOf<S>) => cellOf(values, admission.admit(labels), empty);
    return {
      observe: (labels, seconds) => {
        if (Number.isFinite(seconds)) count(cell(labels), bounds, seconds);
      },
      observerOf: (labels) => {
        let known: DurationsCell | undefined;
        return (seconds) => {
          if (!Number.isFinite(seconds)) return;
          known ??= cell(labels);
          count(known, bounds, seconds);
        };
      },
    };
  }

  /** A present value, read at each scrape. */
  gauge<const S extends LabelSpec>(
    name: string,
    help: string,
    spec: S,
    read: () => Iterable<Sample<S>>,
  ): void {
    this.#reading('gauge', name, help, spec, read);
  }

  /** A counter that other code keeps, read at each scrape. The name has to end in "_total". */
  counts<const S extends LabelSpec>(
    name: string,
    help: string,
    spec: S,
    read: () => Iterable<Sample<S>>,
  ): void {
    this.#reading('counter', name, help, spec, read);
  }

  /** Every family as it is now. `onUnread` gets the name of each that throws, and the error. M3 */
  families(onUnread?: (family: string, error: unknown) => void): Family[] {
    return this.#declared.flatMap(({ name, read }) => {
      try {
        const family = read();
        this.#broken.delete(name);
        return [family];
      } catch (error) {
        this.#unread += 1;
        if (!this.#broken.has(name)) onUnread?.(name, error);
        this.#broken.add(name);
        return [];
      }
    });
  }

  /** Lines that an answer can have at most, comments left aside (M1). */
  get linesMax(): number {
    return this.#declared.reduce((sum, { linesMax }) => sum + linesMax, 0);
  }

  /** The label values of each family, for tests that check them. */
  get labels(): ReadonlyMap<string, LabelSpec> {
    return new Map(this.#declared.map(({ name, spec }) => [name, spec]));
  }

  /** A label's room is that of one scrape: a rack that has gone makes room for another. */
  #reading<S extends LabelSpec>(
    kind: 'counter' | 'gauge',
    name: string,
    help: string,
    spec: S,
    read: () => Iterable<Sample<S>>,
  ): void {
    this.#declare(name, spec, 1, () => {
      const admission = new LabelAdmission(spec);
      const values = zeros(spec, () => ({ value: 0 }));
      for (const { labels, value } of read()) {
        cellOf(values, admission.admit(labels), () => ({ value: 0 })).value += value;
      }
      const series = [...values.values()].map(({ key, cell }) => ({ values: key, ...cell }));
      return { name, kind, help, labelNames: admission.names, bounds: [], series };
    });
  }

  #declare(name: string, spec: LabelSpec, linesEach: number, read: () => Family): void {
    if (this.#declared.some((each) => each.name === name)) {
      throw new Error(`${name} is declared twice`);
    }
    this.#declared.push({ name, spec, linesMax: combinationsMax(spec) * linesEach, read });
  }
}

interface DurationsCell {
  sum: number;
  /** By bound, and for values above the last. */
  readonly counts: Float64Array;
}

function count(cell: DurationsCell, bounds: readonly number[], seconds: number): void {
  // A clock that was set back makes no time negative.
  const taken = Math.max(seconds, 0);
  let at = 0;
  while (at < bounds.length && taken > (bounds[at] ?? 0)) at += 1;
  cell.counts[at] = (cell.counts[at] ?? 0) + 1;
  cell.sum += taken;
}

type Cells<T> = Map<string, { readonly key: readonly string[]; readonly cell: T }>;

function zeros<T>(spec: LabelSpec, empty: () => T, seriesMax = zeroSeriesMax): Cells<T> {
  const cells: Cells<T> = new Map();
  const all = combinationsOf(spec) ?? [];
  if (all.length <= seriesMax) for (const key of all) cellOf(cells, key, empty);
  return cells;
}

function cellOf<T>(cells: Cells<T>, key: readonly string[], empty: () => T): T {
  const joined = key.join('\n');
  const known = cells.get(joined);
  if (known !== undefined) return known.cell;
  const cell = empty();
  cells.set(joined, { key, cell });
  return cell;
}

function cumulated(counts: Float64Array): number[] {
  let sum = 0;
  return Array.from(counts, (count) => {
    sum += count;
    return sum;
  });
}
