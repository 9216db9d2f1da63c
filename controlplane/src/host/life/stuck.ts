/**
 * Busy or stuck (DESIGN §4, §7): work under way protects a host from being deleted, but only for as
 * long as somebody can do it.
 */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { type Run, RunPhase } from '@rackwright/messages';
import type { Pass } from '../pass/pass.ts';

/**
 * True when nobody does the run's work now: its agent has been silent beyond the contact deadline,
 * its BMC is silent, no person has done it, or it has not got its place yet.
 */
export function isStuck(pass: Pass, run: Run): boolean {
  if (isAgentGone(pass, run)) return true;
  if (run.phase !== RunPhase.WAITING || run.waiting?.since === undefined) return false;
  return waitsForNobody.has(run.waiting.reason);
}

const waitsForNobody: ReadonlySet<string> = new Set([
  'bmc',
  'person',
  'capacity',
  'image',
  'wipeBudget',
]);

/** Whether the agent that would do the run's work has been silent beyond the contact deadline. */
export function isAgentGone({ context }: Pass, { phase, waiting }: Run): boolean {
  const { session, sessionElsewhere, agentSeenMs, timing, nowMs } = context;
  const contactMs = session === undefined ? undefined : session.lastMessageMs;
  if (contactMs !== undefined && contactMs + timing.contactDeadlineMs <= nowMs) return true;
  if (phase !== RunPhase.WAITING || waiting?.since === undefined) return false;
  switch (waiting.reason) {
    case 'hold':
      // Nothing is under way at a hold, and what a person lets go on has nobody to do it.
      if (session !== undefined || sessionElsewhere || agentSeenMs === undefined) return false;
      return agentSeenMs + timing.contactDeadlineMs <= nowMs;
    case 'agent':
      return timestampMs(waiting.since) + timing.contactDeadlineMs <= nowMs;
    default:
      return false;
  }
}
