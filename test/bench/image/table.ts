/** What was measured, and what is to be thought of it. */

/** Of the slowest tool alone. */
const floorShare = 0.5;
const aimShare = 0.9;

export interface Row {
  readonly name: string;
  /** How many at once; the rate is that of all together. */
  readonly many: number;
  /** MB/s of content, of each round. */
  readonly rates: readonly number[];
}

export interface StageRow extends Row {
  /** Passes over the bytes that follow one another: what each takes, by the tool for it alone. */
  readonly passes: readonly (readonly Row[])[];
}

/** The line of a tool. */
export function lineOf({ name, many, rates }: Row): string {
  const sorted = [...rates].sort((a, b) => a - b);
  const range = `(${whole(sorted[0] ?? 0)} – ${whole(sorted.at(-1) ?? 0)})`;
  const columns = [name.padEnd(42), String(many).padStart(2), whole(median(rates)).padStart(6)];
  return `${columns.join(' ')}  ${range}`;
}

/** The line of a stage, and whether it reaches the floor. */
export function judged(stage: StageRow): { readonly line: string; readonly isQuick: boolean } {
  const slowest = stage.passes.map((pass) =>
    pass.reduce((one, other) => (median(other.rates) < median(one.rates) ? other : one)),
  );
  const secondsPerMb = slowest.reduce((sum, { rates }) => sum + 1 / median(rates), 0);
  const share = median(stage.rates) * secondsPerMb;
  const isQuick = share >= floorShare;
  const verdict = share >= aimShare ? 'aim met' : isQuick ? 'floor met' : 'BELOW THE FLOOR';
  const beside = slowest.map(({ name }) => name).join(', then ');
  const line = `${lineOf(stage).padEnd(68)} ${whole(share * 100)} % of ${beside}: ${verdict}`;
  return { line, isQuick };
}

function median(rates: readonly number[]): number {
  const sorted = [...rates].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

function whole(value: number): string {
  return value.toFixed(0);
}
