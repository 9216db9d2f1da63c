/** One line of the log for each revision that says something new. */
import { type Host, RunPhase, type store } from '@rackwright/messages';
import type { Log } from '@rackwright/platform';
import { runTrace } from '@rackwright/trace';

/** State changes and results are the only info lines in steady state. */
export function logChange(log: Log, before: store.HostRecord, after: store.HostRecord): void {
  if (before.change?.cause === after.change?.cause) return;
  const run = after.host?.status?.run;
  log.info(
    {
      host: after.host?.name,
      rack: after.host?.spec?.rack || undefined,
      run: run === undefined ? undefined : Number(run.number),
      operation: after.change?.operationId || undefined,
      request: after.change?.requestId || undefined,
      trace: traceOf(after.host),
      actor: after.change?.actor,
      step: run?.phase === RunPhase.ENDED ? undefined : run?.steps[run.currentStep]?.name,
    },
    after.change?.cause ?? '',
  );
}

/** The id of the trace of the host's run, by which its lines and its spans are found together. */
function traceOf(host: Host | undefined): string | undefined {
  const run = host?.status?.run;
  if (host === undefined || run === undefined) return undefined;
  return runTrace(host.uid, run.number, run.traceParent).traceId;
}
