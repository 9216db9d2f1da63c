/**
 * Faults: problems of a host that last longer than one attempt. Set and cleared only by the system.
 */
import { create } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import {
  type Fault,
  FaultSchema,
  FaultSeverity,
  faultOfType,
  type HostFault,
  hasFault,
} from '@rackwright/messages';
import { now, type Pass } from './pass.ts';
import { cut, messageMax } from './step-failure.ts';

/**
 * Sets a fault, or updates an existing one, which keeps its start time. `since`: the start, if not
 * now. The host works despite a warning; an error prevents some of its work. Returns the fault in
 * the status, for the facts of its type.
 */
export function setFault(
  pass: Pass,
  type: HostFault,
  text: string,
  clearedBy: string,
  severity: FaultSeverity = FaultSeverity.ERROR,
  since: Timestamp = now(pass),
): Fault {
  const { faults } = pass.status;
  const message = cut(text, messageMax);
  const present = faultOfType(faults, type);
  if (present !== undefined) {
    present.message = message;
    present.severity = severity;
    present.clearedBy = clearedBy;
    return present;
  }
  const fault = create(FaultSchema, { type, message, clearedBy, severity, since });
  faults.push(fault);
  return fault;
}

/** The part of a pass that clearing a fault needs. */
interface FaultsOf {
  readonly status: Pick<Pass['status'], 'faults'>;
}

export function clearFault({ status }: FaultsOf, type: HostFault): void {
  status.faults = status.faults.filter((fault) => !hasFault([fault], type));
}
