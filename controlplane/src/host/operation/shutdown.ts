/**
 * How a running system is switched off: the policy of a run, the time limit for the system's own
 * shutdown, and the result. Pure.
 *
 * Invariants:
 * 1. The deadline is in the record before the request to the system. No further attempt of the step
 *    postpones it, even if our clock was set back; a person may make it earlier.
 * 2. There is no wait for our own runner, which has nothing to lose, nor in a forced removal.
 *
 * Must not: send requests or force anything; the rack's agent does.
 */
import { create } from '@bufbuild/protobuf';
import { durationFromMs, type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  actors,
  type agent,
  DeletionMode,
  FailureType,
  HostState,
  type RunStep,
  type Shutdown,
  ShutdownMode,
  ShutdownOutcome,
  type ShutdownPolicy,
  ShutdownPolicySchema,
  ShutdownSchema,
  shutdownText,
} from '@rackwright/messages';
import { isByHand } from '../bmc/protocols.ts';
import {
  hasPassed,
  type Pass,
  type PassView,
  recordCause,
  timeAfter,
  timeNow,
} from '../pass/pass.ts';
import type { DeepReadonly, RunView, StepView } from '../pass/read-only.ts';
import { engineSteps } from '../pass/step-names.ts';

/** How long a system may take to shut down, in seconds. */
export const shutdownSeconds = { usual: 300, shortest: 10, longest: 3_600 } as const;

/** States in which a user's system runs. */
const inUse: ReadonlySet<HostState> = new Set([HostState.PROVISIONED, HostState.EXTERNAL]);

/**
 * The policy of a new run: from the request, then the host's spec, field by field. Undefined: by
 * force, or it does not switch off.
 */
export function shutdownOfRun(
  { spec, status }: Pick<PassView, 'spec' | 'status'>,
  steps: readonly RunStep[],
  policy: ShutdownPolicy | undefined,
): ShutdownPolicy | undefined {
  if (!steps.some(({ name }) => name === engineSteps.off)) return undefined;
  const usual = inUse.has(status.state) ? ShutdownMode.GRACEFUL : ShutdownMode.FORCE;
  const mode = policy?.mode || spec.shutdown?.mode || usual;
  if (mode !== ShutdownMode.GRACEFUL) return undefined;
  const { timeoutSeconds = spec.shutdown?.timeoutSeconds } = policy ?? {};
  return create(ShutdownPolicySchema, {
    mode,
    timeoutSeconds: timeoutSeconds ?? shutdownSeconds.usual,
  });
}

/** Sets in a power-off order how long its system may take; returns the wait, ms. */
export function orderShutdown(
  pass: PassView,
  run: RunView,
  step: RunStep,
  { kind }: agent.Operation,
): number {
  if (kind.case !== 'setPower' || kind.value.on !== false) return 0;
  const { shutdown: policy } = run;
  const isForced = pass.status.deletion?.mode === DeletionMode.FORCE;
  // A person who switches it manually takes care of its system.
  if (policy === undefined || pass.record.inRunner || isForced || isByHand(pass.spec)) return 0;
  const latest = timeAfter(pass, (policy.timeoutSeconds ?? shutdownSeconds.usual) * 1_000);
  const { shutdown: known } = step;
  const { startTime = timeNow(pass), deadline = latest } = isPending(known) ? known : {};
  step.shutdown = create(ShutdownSchema, { startTime, deadline: earlier(deadline, latest) });
  kind.value.shutdownDeadline = earlier(deadline, latest);
  return Math.max(0, timestampMs(kind.value.shutdownDeadline) - pass.snapshot.nowMs);
}

function earlier(a: Timestamp, b: Timestamp): Timestamp {
  return timestampMs(a) <= timestampMs(b) ? a : b;
}

/** Whether it was ordered, and its result is not reported yet. */
function isPending<S extends DeepReadonly<Shutdown>>(shutdown: S | undefined): shutdown is S {
  return shutdown !== undefined && shutdown.duration === undefined;
}

/** The shutdown that a run waits for now; undefined: none. */
export function shutdownUnderWay<S extends DeepReadonly<Shutdown>>(
  { operation }: PassView['record'],
  step: { readonly shutdown?: S | undefined } | undefined,
): S | undefined {
  const kind = operation?.operation?.kind;
  const isOrdered = kind?.case === 'setPower' && kind.value.on === false;
  return isOrdered && isPending(step?.shutdown) ? step.shutdown : undefined;
}

/** Records how the system went off. */
export function noteShutdown(
  pass: Pass,
  step: RunStep,
  observations: agent.Observations | undefined,
): void {
  const shutdown = shutdownUnderWay(pass.record, step);
  const kind = pass.record.operation?.operation?.kind;
  const wasOrdered = kind?.case === 'setPower' && kind.value.shutdownDeadline !== undefined;
  if (shutdown === undefined || !wasOrdered) return;
  // An agent without this feature forces at once, and reports nothing.
  const reported = observations?.shutdown || ShutdownOutcome.FORCED_UNSUPPORTED;
  const { startTime } = shutdown;
  const startMs = startTime === undefined ? pass.snapshot.nowMs : timestampMs(startTime);
  const known = Object.values(ShutdownOutcome).find((each) => each === reported);
  shutdown.outcome = known ?? ShutdownOutcome.UNSPECIFIED;
  shutdown.duration = durationFromMs(Math.max(0, pass.snapshot.nowMs - startMs));
  recordCause(pass, actors.agent, shutdownText(shutdown));
}

/** The wait ends now; the waiting agent is to be told. */
export function endShutdownWait(pass: PassView, shutdown: NonNullable<RunStep['shutdown']>): void {
  shutdown.deadline = earlier(shutdown.deadline ?? timeNow(pass), timeNow(pass));
}

/** Whether an attempt was stopped only so that another one forces the system off. */
export function isWaitEnded(
  pass: PassView,
  run: RunView,
  step: StepView,
  { type }: Pick<agent.Failed, 'type'>,
): boolean {
  if (type !== FailureType.CANCELLED || run.abort !== undefined) return false;
  const shutdown = shutdownUnderWay(pass.record, step);
  return pass.record.operation?.cancelId !== '' && hasPassed(pass, shutdown?.deadline);
}
