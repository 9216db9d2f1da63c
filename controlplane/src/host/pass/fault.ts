/**
 * Faults: problems of a host that last longer than one attempt. Set and cleared only by the system.
 */
import { create } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import {
  type Fault,
  FaultClearing,
  FaultSchema,
  FaultSeverity,
  faultOfType,
  type HostFault,
  hasFault,
} from '@rackwright/messages';
import { clearingText } from './fault-clearing.ts';
import { type Pass, timeNow } from './pass.ts';
import { messageMax, truncate } from './step-failure.ts';

interface FaultOptions {
  /** The host works despite a warning; an error, the default, prevents some of its work. */
  readonly severity?: FaultSeverity;
  /** Its start; unset: now. */
  readonly since?: Timestamp | undefined;
  /** Unset: by its type. */
  readonly clearing?: FaultClearing;
}

/**
 * Sets a fault, or updates an existing one, which keeps its start time. Returns the fault in the
 * status, for the facts of its type.
 */
export function setFault(
  pass: Pass,
  type: HostFault,
  text: string,
  options: FaultOptions = {},
): Fault {
  const { severity = FaultSeverity.ERROR, clearing = FaultClearing.BY_TYPE } = options;
  const { since = timeNow(pass) } = options;
  const { faults } = pass.status;
  const message = truncate(text, messageMax);
  const clearedBy = clearingText(type, clearing);
  const present = faultOfType(faults, type);
  if (present !== undefined) {
    present.message = message;
    present.severity = severity;
    present.clearing = clearing;
    present.clearedBy = clearedBy;
    return present;
  }
  const fault = create(FaultSchema, { type, message, clearing, clearedBy, severity, since });
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
