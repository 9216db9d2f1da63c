/**
 * Permits each order of a step that destroys data on its own (R11): by lease, brake and the BMC's
 * identity. Such a step reads and waits between its orders, and all three may change meanwhile.
 */
import type { BeforeOrder } from '@rackwright/bmc';
import type { FailedAttempt, RetryAfter } from '@rackwright/results';
import { AttemptEnd, type OperationContext, withheld } from '../session/index.ts';
import { failure, identityToWire } from './bmc-access.ts';
import { type ExpectingBmc, strangerIn } from './expected-bmc.ts';

/** Ends the attempt at an order that is not permitted. */
export function permitEachOrder(
  request: ExpectingBmc,
  context: Pick<OperationContext, 'leaseValid' | 'brake'>,
): BeforeOrder {
  return (seen, done) => {
    const end = strangerIn(request, identityToWire(seen)) ?? withheld(context);
    if (end === undefined) return;
    // Only while nothing was changed may the step simply be ordered anew.
    throw new AttemptEnd(done.length === 0 ? end : halfWay(end, done));
  };
}

function halfWay(end: FailedAttempt | RetryAfter, done: readonly string[]): FailedAttempt {
  const message = `It was stopped after "${done.join('", "')}": ${end.message}`;
  return end.kind === 'failed' ? { ...end, message } : failure('stillPending', message);
}
