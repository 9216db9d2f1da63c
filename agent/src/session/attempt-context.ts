/**
 * The session as an executor sees it while it carries out one operation.
 *
 * C1 Nothing has begun before OperationBegun is durable (R4).
 * C2 A destructive step begins only while the work lease is valid, checked after everything that
 *    takes time (R11).
 * C3 A step that a brake stops when it would begin ends without having begun. It is ordered anew
 *    later.
 */
import type { Clock, CrashPoint, Log } from '@rackwright/platform';
import type { Journal } from '../journal/index.ts';
import type { Attempt } from './attempt.ts';
import type { Credentials } from './credentials.ts';
import { AttemptEnd, type OperationContext, type Progress } from './executor.ts';
import type { Grants } from './grants.ts';
import type { SessionLimits } from './limits.ts';
import { throttle } from './progress-pace.ts';
import { cancelled, deadlinePassed, frozen, noCredential, noLease, notDurable } from './results.ts';
import type { WorkLease } from './work-lease.ts';

/** The interval at which a step that waits for the lease checks its deadline. */
const leaseCheckMs = 60_000;
const waitsForLease = 'waits for the work lease';
/** How long it waits for the end of a freeze: the next renewal of the lease reports a thaw. */
const thawWaitMs = 10_000;

export interface ContextDependencies {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly log: Log;
  readonly crashPoint: CrashPoint;
  readonly limits: SessionLimits;
  readonly lease: WorkLease;
  readonly credentials: Credentials;
  readonly grants: Grants;
  readonly sendProgress: (attempt: Attempt) => void;
}

/** The context of one attempt. */
export function makeContext(attempt: Attempt, deps: ContextDependencies): OperationContext {
  const { credentials, grants, lease, limits, sendProgress } = deps;
  const report = throttle(deps.clock, () => sendProgress(attempt));
  let beginning: Promise<void> | undefined;
  return {
    signal: attempt.signal,
    begin: () => {
      beginning ??= begin(attempt, deps);
      return beginning;
    },
    reportProgress: (progress: Progress) => {
      attempt.progress = progress;
      report(progress);
    },
    credential: async (name, version) => {
      const { signal } = attempt;
      const found = await credentials.waitFor(name, version, limits.credentialWaitMs, signal);
      if (found !== undefined) return found;
      throw new AttemptEnd(signal.aborted ? cancelled : noCredential(name, version));
    },
    isLeaseValid: () => lease.isValid(),
    leaseLeftMs: () => lease.leftMs(),
    brake: () => lease.brake(),
    remainingMs: () => attempt.remainingMs(),
    openGrant: (grant) => durably(attempt, deps, () => grants.open(attempt.operation, grant)),
    closeGrants: () => durably(attempt, deps, () => grants.closeHost(attempt.hostUid)),
  };
}

async function begin(attempt: Attempt, deps: ContextDependencies): Promise<void> {
  // A resumed step began before the present start of the agent.
  if (attempt.begun) return;
  const { journal, crashPoint } = deps;
  if (attempt.remainingMs() <= 0) throw new AttemptEnd(deadlinePassed());
  await waitUntilPermitted(attempt, deps);
  const { id: operationId } = attempt;
  await durably(attempt, deps, () => journal.append({ case: 'begun', value: { operationId } }));
  attempt.begun = true;
  crashPoint('agent.begun');
  // Writing took time; nothing has been touched yet (C2).
  await waitUntilPermitted(attempt, deps);
}

/** Waits until it may go on; throws when it may not. */
async function waitUntilPermitted(attempt: Attempt, deps: ContextDependencies): Promise<void> {
  const { signal, check, id } = attempt;
  if (attempt.phase !== 'running') throw new Error(`${id} is over; it cannot begin`);
  if (check.kind === 'execute' && check.destructive) await waitForLease(attempt, check.step, deps);
  if (signal.aborted) throw new AttemptEnd(cancelled);
}

/** Waits for the lease, and a little for a thaw. After each wake-up the lease is checked again. */
async function waitForLease(
  attempt: Attempt,
  step: string,
  deps: ContextDependencies,
): Promise<void> {
  const { lease, clock } = deps;
  let brakedAtMs: number | undefined;
  while (!lease.isValid() && !attempt.signal.aborted) {
    const brake = lease.brake();
    const nowMs = clock.suspendAwareMs();
    brakedAtMs = brake === undefined ? undefined : (brakedAtMs ?? nowMs);
    if (brake !== undefined && nowMs - (brakedAtMs ?? nowMs) >= thawWaitMs) {
      throw new AttemptEnd(frozen(brake));
    }
    const remainingMs = attempt.remainingMs();
    if (remainingMs <= 0) throw new AttemptEnd(noLease());
    reportWaiting(attempt, step, brake?.text ?? waitsForLease, deps);
    const waitMs = brake === undefined ? leaseCheckMs : thawWaitMs;
    await lease.waitUntilValid(Math.min(remainingMs, waitMs), attempt.signal);
  }
}

function reportWaiting(
  attempt: Attempt,
  step: string,
  text: string,
  deps: ContextDependencies,
): void {
  if (attempt.progress?.text === text) return;
  deps.log.info({ operation: attempt.id }, text);
  attempt.progress = { step, text };
  deps.sendProgress(attempt);
}

async function durably<T>(
  { id }: Attempt,
  { log }: ContextDependencies,
  write: () => Promise<T>,
): Promise<T> {
  try {
    return await write();
  } catch (error) {
    log.error({ operation: id }, 'the journal is not durable', error);
    throw new AttemptEnd(notDurable());
  }
}
