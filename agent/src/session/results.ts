/** The results that the session itself gives. */
import { agent, type OperationId, RerunClass } from '@rackwright/messages';
import { errorText } from '@rackwright/platform';
import type { FailedAttempt, FinalResult, RetryAfter } from '@rackwright/results';
import type { Attempt } from './attempt.ts';
import type { SessionBrake } from './brake.ts';

/** The delay after a locked host or a missing lease or credential. */
const retryDelayMs = 10_000;
const handOffDelayMs = 1_000;

export const cancelled: FailedAttempt = {
  kind: 'failed',
  type: 'cancelled',
  message: 'It was cancelled.',
};

export function unsupported(problem: string): FailedAttempt {
  return {
    kind: 'failed',
    type: 'unsupported',
    message: `This agent cannot take the operation: ${problem}.`,
  };
}

export function notDurable(): FailedAttempt {
  return {
    kind: 'failed',
    type: 'internal',
    message: 'The journal is not durable: free or replace the disk of the agent.',
  };
}

export function interrupted(lastProgress: string): FailedAttempt {
  return {
    kind: 'failed',
    type: 'interrupted',
    message: 'The agent ended while this was under way; its class decides what follows.',
    lastProgress,
  };
}

/**
 * R4: a step that has begun and is not safe to run again must not be retried blindly. So its
 * transient error is reported as `interrupted`, and its re-run class decides.
 */
export function afterBegin({ operation, begun }: Attempt, result: FinalResult): FinalResult {
  const { kind } = operation;
  if (result.kind !== 'transientError' || !begun || kind.case !== 'runStep') return result;
  const { mode, rerunClass } = kind.value;
  if (mode === agent.StepMode.CHECK || rerunClass === RerunClass.SAFE) return result;
  return { ...interrupted(''), message: `It was cut short after it had begun: ${result.message}` };
}

/**
 * The result of a deployment that has not begun to write: the disk is unchanged, so the host goes
 * on with what it runs.
 */
export function beforeBegin({ operation, begun }: Attempt, result: FinalResult): FinalResult {
  const { kind } = operation;
  const isWrite =
    kind.case === 'runStep' && kind.value.deployment !== undefined && kind.value.destructive;
  return result.kind === 'failed' && isWrite === true && !begun
    ? { ...result, disksUntouched: true }
    : result;
}

export function deadlinePassed(): FailedAttempt {
  return {
    kind: 'failed',
    type: 'deadline',
    message: 'Its deadline passed before anything had begun.',
  };
}

export function thrown(error: unknown): FinalResult {
  if (error instanceof Error && error.name === 'AbortError') return cancelled;
  const detail = errorText(error);
  return {
    kind: 'failed',
    type: 'internal',
    message: 'The agent failed in a way that it does not know; see its log.',
    detail,
  };
}

export function tooLarge(reportBytes: number, reportBytesMax: number): FailedAttempt {
  return {
    kind: 'failed',
    type: 'internal',
    message: `The report had ${reportBytes} bytes; ${reportBytesMax} can be delivered.`,
  };
}

export function locked(byOperationId: OperationId): RetryAfter {
  return retry('locked', `${byOperationId} may still run on this host.`);
}

/** A runner with permission to take its host away does so within moments. */
export function handingOff(operationId: OperationId): RetryAfter {
  const message = `${operationId} takes the runner away.`;
  return { kind: 'retryAfter', reason: 'locked', message, delayMs: handOffDelayMs };
}

export function stillRunning(operationId: OperationId): RetryAfter {
  return retry('locked', `${operationId} could not be stopped yet.`);
}

export function tooManyOperations(operationsMax: number): RetryAfter {
  return retry('fault', `This agent keeps ${operationsMax} operations; settle some.`);
}

export function noLease(): RetryAfter {
  return retry('notReady', 'The work lease did not come until the deadline.');
}

/** Why nothing destructive may begin at this moment; undefined: it may. */
export function whyWithheld(lease: {
  isLeaseValid(): boolean;
  brake(): SessionBrake | undefined;
}): RetryAfter | undefined {
  if (lease.isLeaseValid()) return undefined;
  const brake = lease.brake();
  return brake === undefined ? retry('notReady', 'The work lease has ended.') : frozen(brake);
}

export function frozen({ text }: SessionBrake): RetryAfter {
  return retry('frozen', text);
}

export function noCredential(name: string, version: bigint): RetryAfter {
  return retry('notReady', `The credential ${name} version ${version} has not come.`);
}

function retry(reason: RetryAfter['reason'], message: string): RetryAfter {
  return { kind: 'retryAfter', reason, message, delayMs: retryDelayMs };
}
