/** What was measured, and what is to be thought of it. */

export interface Row {
  readonly name: string;
  /** How many at once; the rate is that of all together. */
  readonly many: number;
  /** MB/s of content, of each round. */
  readonly rates: readonly number[];
  /** Processor time, ms for each MB of content that stands on a disk; of each round. */
  readonly cpu: readonly number[];
}

/** "name   N   MB/s  (least - most)   ms/MB" */
export function lineOf({ name, many, rates, cpu }: Row): string {
  const sorted = [...rates].sort((a, b) => a - b);
  const range = `(${whole(sorted[0] ?? 0)} – ${whole(sorted.at(-1) ?? 0)})`.padEnd(14);
  const columns = [name.padEnd(42), String(many).padStart(2), whole(median(rates)).padStart(6)];
  const ms = cpu.length === 0 ? '' : median(cpu).toFixed(2).padStart(6);
  return `${columns.join(' ')}  ${range} ${ms}`;
}

/** Of the pipe in the same round: by how many at once, and what is aimed at. */
const floorShares: Readonly<Record<number, number>> = { 1: 1 };
const floorShareOfMany = 0.7;

export interface Verdict {
  readonly lines: readonly string[];
  readonly isQuick: boolean;
}

/** Compares all of ours with the pipe, round by round, and with the slowest of what is in it. */
export function judged(ours: Row, pipe: Row, tools: readonly Row[]): Verdict {
  const shares = ours.rates.map((rate, round) => rate / (pipe.rates[round] ?? Number.NaN));
  const sorted = [...shares].sort((a, b) => a - b);
  const floor = floorShares[ours.many] ?? floorShareOfMany;
  const share = median(shares);
  const isQuick = share >= floor;
  const range = `${percent(sorted[0] ?? 0)} – ${percent(sorted.at(-1) ?? 0)}`;
  const cpu = percent(median(ours.cpu) / median(pipe.cpu));
  const slowest = tools.reduce((one, other) =>
    median(other.rates) < median(one.rates) ? other : one,
  );
  const aim = percent(median(ours.rates) / median(slowest.rates));
  return {
    isQuick,
    lines: [
      `${percent(share)} of the pipe (${range}); floor ${percent(floor)}: ` +
        `${isQuick ? 'met' : 'BELOW'}; processor time ${cpu} of the pipe's`,
      `${aim} of the slowest tool alone (${slowest.name}), which is the aim`,
    ],
  };
}

function percent(share: number): string {
  return `${whole(100 * share)} %`;
}

function median(rates: readonly number[]): number {
  const sorted = [...rates].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

function whole(value: number): string {
  return value.toFixed(0);
}
