/** The deadline of an operation as a signal, for the work before a runner has it. */
import { durationMs } from '@bufbuild/protobuf/wkt';
import type { agent } from '@rackwright/messages';
import type { Cancel, Clock } from '@rackwright/platform';
import type { OperationContext } from '../session/index.ts';

/** Longest timer; a later deadline is another's to watch. */
const timerMsMax = 24 * 3_600_000;

export interface TimeLimit {
  /** Aborted with the operation, and when its time is over. */
  readonly signal: AbortSignal;
  isOver(): boolean;
  /** It is watched no more. */
  end(): void;
}

export function timeLimit(
  clock: Clock,
  { remainingMs, signal }: Pick<OperationContext, 'remainingMs' | 'signal'>,
): TimeLimit {
  const late = new AbortController();
  const delayMs = Math.max(0, Math.min(remainingMs(), timerMsMax));
  const end = clock.after(delayMs, () => late.abort());
  return {
    signal: AbortSignal.any([signal, late.signal]),
    isOver: () => late.signal.aborted,
    end,
  };
}

/** For a step that may have to wait for a slot: the wait does not count as its own time. */
export interface SlotLimit extends TimeLimit {
  /** The step has its slot, and its own time begins. */
  begin(): void;
  /** True as well without a time of its own. */
  hadItsSlot(): boolean;
  /** The rest of its own time; before it has its slot, of the wait for it. */
  remainingMs(): number;
}

/** The two times of such a step (`RunStep.turn_timeout`); without, its deadline alone counts. */
export function slotLimit(
  clock: Clock,
  { turnTimeout }: Pick<agent.RunStep, 'turnTimeout'>,
  { remainingMs, signal }: Pick<OperationContext, 'remainingMs' | 'signal'>,
): SlotLimit {
  const ownMs = turnTimeout === undefined ? undefined : durationMs(turnTimeout);
  const late = new AbortController();
  let leftMs = (): number => remainingMs() - (ownMs ?? 0);
  let hadItsSlot = ownMs === undefined;
  const watch = (): Cancel => {
    const delayMs = Math.max(0, Math.min(leftMs(), timerMsMax));
    return clock.after(delayMs, () => {
      if (leftMs() <= 0) late.abort();
      else end = watch();
    });
  };
  let end = watch();
  return {
    signal: AbortSignal.any([signal, late.signal]),
    begin: () => {
      if (hadItsSlot || late.signal.aborted) return;
      hadItsSlot = true;
      const dueAtMs = clock.suspendAwareMs() + (ownMs ?? Number.POSITIVE_INFINITY);
      leftMs = () => Math.min(remainingMs(), dueAtMs - clock.suspendAwareMs());
      end();
      end = watch();
    },
    hadItsSlot: () => hadItsSlot,
    remainingMs: () => leftMs(),
    isOver: () => late.signal.aborted,
    end: () => end(),
  };
}
