/** One line of the log for each revision that says something new. */
import { RunPhase, type store } from '@rackwright/messages';
import type { Log } from '@rackwright/platform';

/** State changes and results are the only info lines in steady state. */
export function logChange(log: Log, before: store.HostRecord, after: store.HostRecord): void {
  if (before.change?.cause === after.change?.cause) return;
  const run = after.host?.status?.run;
  log.info(
    {
      host: after.host?.name,
      operation: after.change?.operationId || undefined,
      actor: after.change?.actor,
      step: run?.phase === RunPhase.ENDED ? undefined : run?.steps[run.currentStep]?.name,
    },
    after.change?.cause ?? '',
  );
}
