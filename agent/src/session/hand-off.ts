/**
 * Steps that take their runner away: a reboot, a kexec. Pure.
 *
 * H1 Such a step is complete before it acts. It acts after the control plane has recorded its end,
 *    and only when that was applied: nothing of a run that is over by then acts any more.
 * H2 The journal holds that it may act, with the boot that it ends, before the runner is told. So
 *    after a restart the runner is told again, and the boot takes no other order.
 * H3 The runner acts once for an operation, however often it is told.
 * H4 A step that has not begun by the deadline of its operation never does: a runner that comes
 *    back late, or a lease that comes late, begins nothing of a run that nobody follows any more
 *    (R5).
 */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { agent, OperationId } from '@rackwright/messages';

/** A hand-off whose end has been reported. */
export interface HandOff {
  readonly operationId: OperationId;
  /** The SetPower operation that started the runner that goes. */
  readonly bootOperationId: OperationId;
  /** It acts only under the work lease. */
  readonly destructive: boolean;
  /** Wall time of this machine from which on it never begins; infinite: it has none. */
  readonly deadlineMs: number;
}

/**
 * pending: reported, and not answered. released: it may act. none: the operation is no hand-off, or
 * it failed, or the control plane has not applied its end: then it never acts.
 */
export type HandOffState = 'none' | 'pending' | 'released';

/** The hand-off that an operation with this report becomes; undefined when it is none. */
export function handOffOf(
  { id, kind, deadline }: agent.Operation,
  report: agent.Report | undefined,
): HandOff | undefined {
  if (kind.case !== 'runStep' || kind.value.handOff !== true) return undefined;
  if (report?.result.case !== 'complete') return undefined;
  const { bootOperationId, destructive } = kind.value;
  // Unset counts as destructive (R8).
  return {
    operationId: id,
    bootOperationId,
    destructive: destructive !== false,
    deadlineMs: deadline === undefined ? Number.POSITIVE_INFINITY : timestampMs(deadline),
  };
}
