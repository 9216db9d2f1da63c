/** The intent to delete a host (DESIGN §7): written here, carried out by the runs that it starts. */
import { causedBy, type Turn } from './turn.ts';
import type { Refusal, Requester } from './types.ts';

/** A normal deletion can be taken back until its removal has begun; a forced one cannot. */
export function cancelDelete(turn: Turn, reason: string, by: Requester): Refusal | undefined {
  const { status, host } = turn;
  if (status.deletion === undefined) {
    return { code: 'failedPrecondition', message: `${host.name}: no deletion is under way` };
  }
  delete status.deletion;
  delete status.backoff;
  causedBy(turn, by.actor, `deletion taken back: ${reason}`);
  return undefined;
}
