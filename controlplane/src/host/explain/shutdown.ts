/** Explains the wait for a system's shutdown, and its result. Pure. */
import { toJson } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import type { Run, RunStep, store } from '@rackwright/messages';
import { shutdownUnderWay } from '../operation/shutdown.ts';
import { type ExplanationDraft, hostId } from './explanation-draft.ts';
import { adviceToEndRun } from './waiting.ts';

/** How long the run waits for the system, and what follows; none without such a wait. */
export function shutdownCause(
  record: store.HostRecord,
  step: RunStep | undefined,
): NonNullable<ExplanationDraft['causes']> {
  const { startTime, deadline } = shutdownUnderWay(record, step) ?? {};
  if (deadline === undefined) return [];
  const until = toJson(TimestampSchema, deadline);
  const text = `waits for the system to shut down until ${until}; then it is forced off`;
  return [{ text, since: startTime }];
}

/** Undefined: no run waits for a shutdown. */
export function explainShutdown(
  record: store.HostRecord,
  run: Run,
  step: RunStep | undefined,
): Partial<ExplanationDraft> | undefined {
  const causes = shutdownCause(record, step);
  if (causes.length === 0 || run.abort !== undefined) return undefined;
  return {
    causes,
    blocker: 'the system that runs on the host',
    since: step?.shutdown?.startTime,
    deadline: step?.shutdown?.deadline,
    unblock: [
      'nothing: it is forced off by itself when its time is over',
      `or at once: rackwright host power skip-wait ${hostId(record)}`,
      ...adviceToEndRun(record, run),
    ],
  };
}
