/**
 * Busy or stuck (DESIGN §4, §7): work under way protects a host from being deleted, but only for as
 * long as somebody can do it.
 */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { type Run, RunPhase } from '@rackwright/api';
import type { Turn } from './turn.ts';

/** True when a run waits for a BMC that is silent, or has waited too long for its agent. */
export function isStuck({ context }: Turn, { phase, waiting }: Run): boolean {
  if (phase !== RunPhase.WAITING || waiting?.since === undefined) return false;
  switch (waiting.reason) {
    case 'bmc':
      return true;
    case 'agent':
      return timestampMs(waiting.since) + context.timing.contactDeadlineMs <= context.nowMs;
    default:
      return false;
  }
}
