/** One log line for each revision with new information. */
import { type Host, type Run, RunPhase, type store } from '@rackwright/messages';
import type { Log } from '@rackwright/platform';
import { runTrace } from '@rackwright/trace';

/** State changes and results are the only info lines in steady state. */
export function logChange(log: Log, before: store.HostRecord, after: store.HostRecord): void {
  const { host, change } = after;
  if (before.change?.cause === change?.cause) return;
  log.info(
    {
      host: host?.name,
      rack: host?.spec?.rack || undefined,
      ...runFields(host?.status?.run),
      operation: change?.operationId || undefined,
      request: change?.requestId || undefined,
      trace: traceOf(host),
      actor: change?.actor,
    },
    change?.cause ?? '',
  );
}

function runFields(run: Run | undefined) {
  if (run === undefined) return {};
  const step = run.phase === RunPhase.ENDED ? undefined : run.steps[run.currentStep]?.name;
  return { run: Number(run.number), step };
}

/** The trace id of the host's run, which connects its log lines and its spans. */
function traceOf(host: Host | undefined): string | undefined {
  const run = host?.status?.run;
  if (host === undefined || run === undefined) return undefined;
  return runTrace(host.uid, run.number, run.traceParent).traceId;
}
