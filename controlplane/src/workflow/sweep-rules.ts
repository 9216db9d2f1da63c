/**
 * What the sweeper removes, as pure rules (DESIGN §6). The last N finished runs stay. A run that
 * timed out is removed once its line is in the host's timeline, because it has no further
 * information. A pending run is removed with its owner (`decide.ts`).
 *
 * Must not: remove an open run, or one that a stored record still names.
 */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type Run,
  RunKind,
  type RunNumber,
  RunOutcome,
  RunPhase,
  WorkflowRunState,
  type store as wire,
} from '@rackwright/messages';
import { presentRun } from './decide.ts';
import { hostRunOf, keptRuns, runsKeptMax } from './record.ts';

/** The times of sweeps; each may be overridden in the configuration. */
export interface SweepTiming {
  /** How often everything is swept. */
  readonly sweepIntervalMs: number;
  /** How long a run that timed out is shown before it is swept. */
  readonly timedOutShownMs: number;
}

export const defaultSweepTiming: SweepTiming = {
  sweepIntervalMs: 10 * 60_000,
  timedOutShownMs: 10 * 60_000,
};

interface SweptAt extends Pick<SweepTiming, 'timedOutShownMs'> {
  readonly nowMs: number;
}

/** The runs of a workflow to remove, by number. */
export function runsToDrop(
  record: wire.WorkflowRecord,
  host: wire.HostRecord,
  { nowMs, timedOutShownMs }: SweptAt,
): ReadonlySet<bigint> {
  const gone = keptRuns(record).filter((run) => {
    if (run.state !== WorkflowRunState.TIMED_OUT) return false;
    const isRecorded =
      hostRunOf(run) === 0n
        ? !record.untoldRuns.includes(run.number)
        : isEndRecorded(host, hostRunOf(run));
    return isRecorded && hasBeenShown(run.endTime, nowMs, timedOutShownMs);
  });
  return new Set(gone.map(({ number }) => number));
}

/** The finished runs of a host to remove; `workflows` are the host's present ones. */
export function finishedToRemove(
  runs: readonly Run[],
  workflows: readonly wire.WorkflowRecord[],
  host: wire.HostRecord,
  { nowMs, timedOutShownMs }: SweptAt,
): readonly Run[] {
  const named = new Set(workflows.flatMap((record) => keptRuns(record).map(({ name }) => name)));
  const rest = new Map<RunKind, number>();
  // Newest first, so that the last N of a kind are counted first.
  const newestFirst = [...runs].sort((a, b) => Number(b.number - a.number));
  return newestFirst.filter((run) => {
    if (!isEndRecorded(host, run.number)) return false;
    if (run.kind === RunKind.WORKFLOW) return !named.has(run.workflowRun);
    const timedOut = run.outcome === RunOutcome.TIMED_OUT;
    if (timedOut && hasBeenShown(run.endTime, nowMs, timedOutShownMs)) return true;
    const count = (rest.get(run.kind) ?? 0) + 1;
    rest.set(run.kind, count);
    return count > runsKeptMax;
  });
}

/** The host's record shows that the run has ended, so its timeline has it permanently. */
function isEndRecorded(host: wire.HostRecord, number: RunNumber): boolean {
  const present = presentRun(host);
  if (present === undefined) return host.runCount >= number;
  return present.number > number || (present.number === number && present.phase === RunPhase.ENDED);
}

function hasBeenShown(endTime: Run['endTime'], nowMs: number, timedOutShownMs: number): boolean {
  return endTime === undefined || timestampMs(endTime) + timedOutShownMs <= nowMs;
}
