/**
 * Faults: what is wrong with a host for longer than one try. Set and cleared only by the system.
 */
import { create } from '@bufbuild/protobuf';
import { FaultSchema } from '@rackwright/api';
import { cut, messageMax } from './step-failure.ts';
import { now, type Turn } from './turn.ts';

/** Sets a fault, or replaces the text of one that stands; since when it stands is kept. */
export function setFault(turn: Turn, type: string, text: string, clearedBy: string): void {
  const { faults } = turn.status;
  const message = cut(text, messageMax);
  const standing = faults.find((fault) => fault.type === type);
  if (standing !== undefined) {
    standing.message = message;
    return;
  }
  faults.push(create(FaultSchema, { type, message, clearedBy, since: now(turn) }));
}

export function clearFault(turn: Turn, type: string): void {
  turn.status.faults = turn.status.faults.filter((fault) => fault.type !== type);
}
