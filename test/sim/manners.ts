/** How the system of a machine, and its BMC, answer a soft off. By the seed alone. */
import type { ImitatedBmc } from '@rackwright/bmc/conformance';

export interface Manners {
  /** After it was asked; undefined: it ignores it. */
  readonly stopsAfterMs: number | undefined;
  /** Something switches the machine on again soon after it has stopped. */
  readonly comesBack: boolean;
  /** What the BMC does with it. */
  readonly bmc: ImitatedBmc['softOff'];
}

const usual: Manners = { stopsAfterMs: 8_000, comesBack: false, bmc: 'taken' };

const all: readonly Manners[] = [
  usual,
  { ...usual, stopsAfterMs: undefined },
  { ...usual, stopsAfterMs: 25_000 },
  { ...usual, comesBack: true },
  // Later than most hosts may take.
  { ...usual, stopsAfterMs: 45_000 },
  { ...usual, bmc: 'unknown' },
  { ...usual, bmc: 'refused' },
];

/** Of the machine of this number. */
export function mannersOf(seed: number, index: number): Manners {
  return all[(seed + index) % all.length] ?? usual;
}

const timeouts = [undefined, 30, 60] as const;

/** How long the system of this host may take, in seconds; undefined: as is usual. */
export function shutdownTimeoutOf(seed: number, index: number): number | undefined {
  return timeouts[(seed + 2 * index) % timeouts.length];
}
