/**
 * Busy or stuck (DESIGN §4, §7): work in progress protects a host from deletion, but only while
 * some party can do it.
 */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { type HostWait, hostWaitOf, RunPhase } from '@rackwright/messages';
import type { PassView } from '../pass/pass.ts';
import type { RunView } from '../pass/read-only.ts';

/**
 * True when no party does the run's work now: its agent has been silent beyond the contact
 * deadline, its BMC is silent, no person has acted, or it has no slot yet.
 */
export function isStuck(pass: PassView, run: RunView): boolean {
  if (isAgentGone(pass, run)) return true;
  if (run.phase !== RunPhase.WAITING || run.waiting?.since === undefined) return false;
  const wait = hostWaitOf(run.waiting);
  return wait !== undefined && isForNobody[wait];
}

/** Whether no party does anything during a wait. */
const isForNobody: { readonly [W in HostWait]: boolean } = {
  bmc: true,
  person: true,
  capacity: true,
  image: true,
  wipeBudget: true,
  agent: false,
  runner: false,
  registry: false,
  conflict: false,
  retry: false,
  webhook: false,
  hold: false,
  wait: false,
  freeze: false,
  restored: false,
};

/** Whether the agent for the run's work has been silent beyond the contact deadline. */
export function isAgentGone({ snapshot }: PassView, { phase, waiting }: RunView): boolean {
  const { session, sessionElsewhere, agentSeenMs, timing, nowMs } = snapshot;
  const contactMs = session === undefined ? undefined : session.lastMessageMs;
  if (contactMs !== undefined && contactMs + timing.contactDeadlineMs <= nowMs) return true;
  if (phase !== RunPhase.WAITING || waiting?.since === undefined) return false;
  switch (hostWaitOf(waiting)) {
    case 'hold':
      // At a hold no work is in progress, and without an agent nothing could continue after it.
      if (session !== undefined || sessionElsewhere || agentSeenMs === undefined) return false;
      return agentSeenMs + timing.contactDeadlineMs <= nowMs;
    case 'agent':
      return timestampMs(waiting.since) + timing.contactDeadlineMs <= nowMs;
    default:
      return false;
  }
}
