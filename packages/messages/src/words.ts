/** Counts, lengths of time and values of enums, as people read them. */
import type { DescEnum } from '@bufbuild/protobuf';

/** "1 host", "2 hosts", "no hosts"; `many` where it is not the noun with an s. */
export function counted(count: number | bigint, one: string, many = `${one}s`): string {
  if (Number(count) === 0) return `no ${many}`;
  return `${count} ${Number(count) === 1 ? one : many}`;
}

const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

const units = [
  [dayMs, 'day'],
  [hourMs, 'hour'],
  [minuteMs, 'minute'],
  [secondMs, 'second'],
] as const;

/** "1 minute", "90 minutes", "2 days": in the largest unit that it is a whole number of. */
export function durationText(durationMs: number): string {
  const wholeMs = Math.max(0, Math.round(durationMs / secondMs)) * secondMs;
  if (wholeMs === 0) return 'less than a second';
  const [unitMs, name] = units.find(([each]) => wholeMs % each === 0) ?? [secondMs, 'second'];
  return counted(wholeMs / unitMs, name);
}

/** The verb for so many: "1 host is", "2 hosts are". */
export function verbFor(count: number | bigint): 'is' | 'are' {
  return Number(count) === 1 ? 'is' : 'are';
}

/** "metadata-only" of METADATA_ONLY, as people write it; undefined for 0 and unknown values. */
export function enumWord({ value }: Pick<DescEnum, 'value'>, number: number): string | undefined {
  if (number === 0) return undefined;
  return value[number]?.localName.toLowerCase().replaceAll('_', '-');
}
