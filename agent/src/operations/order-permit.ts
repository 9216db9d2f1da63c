/**
 * Permits each order of a step that destroys data on its own (R11): by lease, brake and the BMC's
 * identity. Such a step reads and waits between its orders, and all three may change meanwhile.
 */
import { type BeforeOrder, transient } from '@rackwright/bmc';
import type { FailedAttempt } from '@rackwright/results';
import { AttemptEnd, type OperationContext, whyWithheld } from '../session/index.ts';
import { identityToWire } from './bmc-access.ts';
import { type ExpectingBmc, identityMismatchOf } from './expected-bmc.ts';

/**
 * Ends the attempt at an order to another BMC. Without a lease, it ends the attempt only while
 * nothing was changed: then the step can simply be ordered again. A later order waits for the
 * lease, as each step under way does.
 */
export function permitEachOrder(
  request: ExpectingBmc,
  context: Pick<OperationContext, 'isLeaseValid' | 'brake'>,
): BeforeOrder {
  return (seen, done) => {
    const mismatch = identityMismatchOf(request, identityToWire(seen));
    if (mismatch !== undefined) throw new AttemptEnd(stoppedAfter(done, mismatch));
    const reason = whyWithheld(context);
    if (reason === undefined) return undefined;
    if (done.length === 0) throw new AttemptEnd(reason);
    return transient('busy', reason.message);
  };
}

function stoppedAfter(done: readonly string[], end: FailedAttempt): FailedAttempt {
  if (done.length === 0) return end;
  return { ...end, message: `It was stopped after "${done.join('", "')}": ${end.message}` };
}
