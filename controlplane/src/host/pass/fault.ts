/**
 * Faults: what is wrong with a host for longer than one try. Set and cleared only by the system.
 */
import { create } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { FaultSchema, FaultSeverity } from '@rackwright/messages';
import { now, type Pass } from './pass.ts';
import { cut, messageMax } from './step-failure.ts';

/**
 * Sets a fault, or replaces all but since when it stands of one that does. `since`: when that was,
 * if not now. A warning is what the host works on in spite of; an error keeps it from something.
 */
export function setFault(
  pass: Pass,
  type: string,
  text: string,
  clearedBy: string,
  severity: FaultSeverity = FaultSeverity.ERROR,
  since: Timestamp = now(pass),
): void {
  const { faults } = pass.status;
  const message = cut(text, messageMax);
  const standing = faults.find((fault) => fault.type === type);
  if (standing !== undefined) {
    standing.message = message;
    standing.severity = severity;
    standing.clearedBy = clearedBy;
    return;
  }
  faults.push(create(FaultSchema, { type, message, clearedBy, severity, since }));
}

export function clearFault(pass: Pass, type: string): void {
  pass.status.faults = pass.status.faults.filter((fault) => fault.type !== type);
}
