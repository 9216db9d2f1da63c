/** The display of work during a wait: a bar on a terminal, lines elsewhere. Pure. */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { type Host, type Run, RunPhase, StepState } from '@rackwright/messages';
import { runText, stateText } from './host.ts';
import { clean, fit, widthOf } from './text.ts';
import { duration } from './time.ts';

/** Work with a name, at a place of its way. */
export interface WorkProgress {
  /** "hosts/h1  clean 3: 2/5 deploy.erase_devices" */
  readonly text: string;
  /** 0–100 of the whole; undefined: unknown. */
  readonly percent: number | undefined;
  /** Since it was begun, milliseconds. */
  readonly elapsedMs: number | undefined;
  /** The remaining time at the present pace; undefined: unknown. */
  readonly leftMs: number | undefined;
}

/** A step that has begun less than this ago says little of how long it takes. */
const tellingMs = 2_000;
/** Columns of a bar that always fits beside its text, and of the widest one. */
const barColumns = { least: 10, most: 30 } as const;

/** The visible state of a host's run now; `usualMs`: how long such runs take. */
export function workOf(host: Host, nowMs: number, usualMs: number | undefined): WorkProgress {
  const run = host.status?.run;
  if (run === undefined || run.phase === RunPhase.ENDED) {
    return { text: `${host.name}  ${stateText(host)}`, ...nothingKnown };
  }
  const elapsedMs =
    run.startTime === undefined ? undefined : Math.max(0, nowMs - timestampMs(run.startTime));
  const text = runText(host).replace(/ \d+%$/, '');
  const waits = run.waiting === undefined ? '' : `, waits for ${run.waiting.reason}`;
  return {
    text: `${host.name}  ${text}${waits}`,
    percent: percentOf(host, run),
    elapsedMs,
    leftMs: leftOf(host, run, nowMs, elapsedMs, usualMs),
  };
}

const nothingKnown = { percent: undefined, elapsedMs: undefined, leftMs: undefined } as const;

/** The share of completed steps, plus that of the step under way as far as it reports it. */
function percentOf({ status }: Host, { steps, currentStep }: Run): number | undefined {
  if (steps.length === 0) return undefined;
  const within = (status?.progress?.percent ?? 0) / 100;
  const done = Math.min(currentStep + Math.min(1, within), steps.length);
  return Math.floor((done / steps.length) * 100);
}

/**
 * From the usual duration of such runs, or from the pace of the step under way, whichever is
 * longer: a long erasure is measured by itself.
 */
function leftOf(
  { status }: Host,
  { steps, currentStep }: Run,
  nowMs: number,
  elapsedMs: number | undefined,
  usualMs: number | undefined,
): number | undefined {
  const usualLeftMs =
    usualMs === undefined || elapsedMs === undefined ? 0 : Math.max(0, usualMs - elapsedMs);
  const step = steps[currentStep];
  const percent = status?.progress?.percent ?? 0;
  let stepLeftMs = 0;
  if (step?.state === StepState.RUNNING && step.startTime !== undefined && percent > 0) {
    const ranMs = nowMs - timestampMs(step.startTime);
    if (ranMs >= tellingMs) stepLeftMs = (ranMs * (100 - percent)) / percent;
  }
  const leftMs = Math.max(usualLeftMs, stepLeftMs);
  return leftMs > 0 ? leftMs : undefined;
}

/** One line of exactly at most `columns` columns: text, bar, percent, time since and time left. */
export function barLine(seen: WorkProgress, columns: number): string {
  const { percent, elapsedMs, leftMs } = seen;
  const parts = [
    percent === undefined ? '' : `${percent}%`,
    elapsedMs === undefined ? '' : duration(elapsedMs),
    leftMs === undefined ? '' : `about ${duration(leftMs)} left`,
  ].filter((part) => part !== '');
  const tail = parts.join('  ');
  const text = clean(seen.text);
  // The last column stays empty: some terminals wrap there.
  const room = columns - 1 - widthOf(tail) - (tail === '' ? 0 : 2);
  if (percent === undefined) {
    return tail === '' ? fit(text, columns - 1) : `${fit(text, Math.max(1, room))}  ${tail}`;
  }
  const spare = room - widthOf(text) - 2;
  const bar = Math.min(barColumns.most, Math.max(barColumns.least, spare)) - 2;
  const filled = Math.round((bar * percent) / 100);
  const drawn = `[${'#'.repeat(filled)}${'-'.repeat(bar - filled)}]`;
  return `${fit(text, Math.max(1, room - widthOf(drawn) - 2))}  ${drawn}  ${tail}`;
}

/** The same for a pipe: the time, which changes often, is left out, and percents come by tens. */
export function plainLine({ text, percent }: WorkProgress): string {
  const tens = percent === undefined ? '' : `  ${Math.floor(percent / 10) * 10}%`;
  return `${clean(text)}${tens}`;
}
