/** A boot over the network as rows of a waterfall. Pure. */
import {
  type BootStep,
  BootStepKind,
  type BootTrace,
  bootStepBy,
  bootStepText,
} from '@rackwright/messages';
import { msOf } from './format.ts';

/** A step, or the missing one. */
export interface BootRow {
  readonly stage: string;
  /** The program that asked, or how a file was sent. */
  readonly by: string;
  /** Milliseconds from the beginning of the boot; undefined: it is missing. */
  readonly fromMs: number | undefined;
  readonly toMs: number | undefined;
  /** The beginning and length of its bar, per cent of the whole boot. */
  readonly fromPercent: number;
  readonly percent: number;
  readonly bytes: bigint;
  readonly count: number;
  readonly problem: string;
}

/** The least that a bar is drawn with, per cent. */
const leastPercent = 0.5;

/** The steps in the order of their arrival, and last the missing one, if any. */
export function bootRows({ startTime, steps, missing }: BootTrace): BootRow[] {
  const startMs = msOf(startTime) ?? 0;
  const times = steps.map((step) => timesOf(step, startMs));
  const wholeMs = Math.max(1, ...times.map(({ toMs }) => toMs));
  const rows = steps.map((step, at) => {
    const { kind, bytes, count, problem } = step;
    const { fromMs, toMs } = times[at] ?? { fromMs: 0, toMs: 0 };
    const fromPercent = Math.min(100 - leastPercent, Math.max(0, (fromMs / wholeMs) * 100));
    const percent = Math.max(leastPercent, ((toMs - fromMs) / wholeMs) * 100);
    const stage = bootStepText(kind);
    const by = bootStepBy(step);
    return { stage, by, fromMs, toMs, fromPercent, percent, bytes, count, problem };
  });
  const isReached =
    missing === BootStepKind.UNSPECIFIED || steps.some(({ kind }) => kind === missing);
  return isReached ? rows : [...rows, neverCame(missing)];
}

function timesOf({ firstTime, lastTime, endTime }: BootStep, startMs: number) {
  const fromMs = (msOf(firstTime) ?? startMs) - startMs;
  return { fromMs, toMs: Math.max(fromMs, (msOf(endTime) ?? msOf(lastTime) ?? startMs) - startMs) };
}

function neverCame(missing: BootStepKind): BootRow {
  const none = { fromMs: undefined, toMs: undefined, fromPercent: 0, percent: 0, bytes: 0n };
  return { ...none, stage: bootStepText(missing), by: '', count: 0, problem: 'never came' };
}
