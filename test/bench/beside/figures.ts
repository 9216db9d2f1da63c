/** What a comparison of servers has measured, and how it is told. */

/** Of one server, in one round. */
export interface Sample {
  readonly unitsPerSecond: number;
  /** Of the server. */
  readonly cpuMsPerUnit: number;
  /** What the client could do if it had a processor of its own and nothing to wait for. */
  readonly ceilingUnitsPerSecond: number;
  /** What was other than asked for. */
  readonly note?: string;
}

/** Of each server, a sample for each round; ours is the first. */
export type Samples<Name extends string> = ReadonlyMap<Name, readonly Sample[]>;

/** How much of a peer's CPU time ours may take. */
export interface Floor<Name extends string> {
  readonly peer: Name;
  readonly ratioMax: number;
}

export interface Comparison<Name extends string> {
  readonly title: string;
  /** "MB" */
  readonly unit: string;
  readonly samples: Samples<Name>;
  readonly floors: readonly Floor<Name>[];
}

/** Adds to the samples of one server. */
export function addSample<Name extends string>(
  samples: Map<Name, readonly Sample[]>,
  name: Name,
  sample: Sample,
): void {
  samples.set(name, [...(samples.get(name) ?? []), sample]);
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.length >> 1;
  const [low = Number.NaN, high = Number.NaN] = [sorted[(sorted.length - 1) >> 1], sorted[middle]];
  return (low + high) / 2;
}

/** The value below which `share` of all are; not a number when there are none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

/** "median (lowest to highest)" */
export function spread(values: readonly number[]): string {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return `${median(values).toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})`;
}

/** Of the CPU time, one for each round: both of a round saw the same machine. */
function ratios(ours: readonly Sample[], theirs: readonly Sample[]): number[] {
  return ours.map((one, round) => one.cpuMsPerUnit / (theirs[round]?.cpuMsPerUnit ?? Number.NaN));
}

/** Prints the table; returns what is over its floor. */
export function report<Name extends string>({
  title,
  unit,
  samples,
  floors,
}: Comparison<Name>): string[] {
  const [ours = []] = samples.values();
  const ceilings = [...samples.values()].flat().map((one) => one.ceilingUnitsPerSecond);
  console.log(`\n${title}; the client's ceiling: ${median(ceilings).toFixed(0)} ${unit}/s`);
  const columns = [`ms CPU/${unit}`, `${unit}/s`, 'ours to theirs'];
  console.log(`${''.padEnd(16)}${columns.map((one) => one.padStart(15)).join('  ')}`);
  for (const [name, own] of samples) {
    const cost = median(own.map((one) => one.cpuMsPerUnit)).toFixed(3);
    const speed = median(own.map((one) => one.unitsPerSecond)).toFixed(0);
    const ratio = own === ours ? '' : spread(ratios(ours, own));
    const note = own[0]?.note ?? '';
    console.log(`${name.padEnd(16)}${cost.padStart(15)}  ${speed.padStart(15)}  ${ratio}  ${note}`);
  }
  return floors.flatMap(({ peer, ratioMax }) => {
    const theirs = samples.get(peer);
    if (theirs === undefined) return [];
    const found = median(ratios(ours, theirs));
    if (found <= ratioMax) return [];
    return [`${title}: ${found.toFixed(2)} times ${peer}'s CPU, ${ratioMax} are allowed`];
  });
}
