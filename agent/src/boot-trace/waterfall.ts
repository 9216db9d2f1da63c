/**
 * A boot as a list of its steps: events in, waterfall out. Pure.
 *
 * W1 A request that the same program repeats raises the count of its step. So a list has at most as
 *    many steps as there are stages and programs.
 * W2 Steps are ordered by their first request.
 */
import type { BootEvent } from '../boot/index.ts';

export type WaterfallStage = BootEvent['stage'] | 'runner';

export interface WaterfallStep {
  readonly stage: WaterfallStage;
  readonly program: BootEvent['program'];
  /** Wall time, milliseconds, as all times here. */
  readonly firstMs: number;
  readonly lastMs: number;
  readonly count: number;
  /** When a file was sent whole last, or the runner was taken. */
  readonly endMs?: number;
  /** The bytes of all files that were sent whole. */
  readonly bytes: number;
  readonly transport?: 'tftp' | 'http';
  /** Why the latest try did not complete; empty: it completed, or is still under way. */
  readonly problem: string;
}

export type Waterfall = readonly WaterfallStep[];

/** One event of a boot. */
export type WaterfallEvent = Pick<
  BootEvent,
  'program' | 'kind' | 'bytes' | 'problem' | 'transport'
> & { readonly stage: WaterfallStage };

const countMax = 0xffff_ffff;

/** The list after one more event. */
export function afterEvent(before: Waterfall, event: WaterfallEvent, atMs: number): Waterfall {
  const at = before.findIndex(({ stage, program }) => {
    return stage === event.stage && program === event.program;
  });
  const known = before[at];
  if (known !== undefined) return before.with(at, stepAfter(known, event, atMs));
  const { stage, program } = event;
  const fresh = { stage, program, firstMs: atMs, lastMs: atMs, count: 0, bytes: 0, problem: '' };
  return [...before, stepAfter(fresh, event, atMs)];
}

function stepAfter(step: WaterfallStep, event: WaterfallEvent, atMs: number): WaterfallStep {
  const { kind, bytes, problem, transport } = event;
  const seen = { ...step, problem, ...(transport === undefined ? {} : { transport }) };
  switch (kind) {
    case 'came':
      return { ...seen, lastMs: atMs, count: Math.min(step.count + 1, countMax) };
    case 'sent':
      return { ...seen, endMs: atMs, bytes: Math.min(step.bytes + bytes, Number.MAX_SAFE_INTEGER) };
    case 'failed':
      return seen;
  }
}
