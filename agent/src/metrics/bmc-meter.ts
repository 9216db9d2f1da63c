/** Reports calls of BMCs to the metrics. */
import type { BmcFailureType, BmcResult, BmcTransientReason, GovernedCalls } from '@rackwright/bmc';
import type { Clock } from '@rackwright/platform';
import type { BmcEndpoint } from '../operations/index.ts';

/** One call that is over. */
export interface BmcCall {
  readonly protocol: BmcEndpoint['protocol'];
  readonly result: 'ok' | 'failed' | 'transient';
  /** Why it did not succeed. */
  readonly reason: BmcFailureType | BmcTransientReason | undefined;
  /** Without the wait for its slot; undefined: it never got a slot. */
  readonly seconds: number | undefined;
}

/** Called after each BMC call; never throws. */
export type BmcMeter = (call: BmcCall) => void;

/** The same calls, counted. A call that throws is not reported. */
export function meteredCalls(
  calls: GovernedCalls,
  protocol: BmcEndpoint['protocol'],
  clock: Pick<Clock, 'suspendAwareMs'>,
  meter: BmcMeter,
): GovernedCalls {
  return {
    run: async (credential, act, ...rest) => {
      let seconds: number | undefined;
      const timed = async () => {
        const sinceMs = clock.suspendAwareMs();
        try {
          return await act();
        } finally {
          seconds = (clock.suspendAwareMs() - sinceMs) / 1_000;
        }
      };
      const result = await calls.run(credential, timed, ...rest);
      meter({ protocol, result: result.kind, reason: reasonOf(result), seconds });
      return result;
    },
  };
}

function reasonOf(result: BmcResult<unknown>): BmcCall['reason'] {
  switch (result.kind) {
    case 'ok':
      return undefined;
    case 'failed':
      return result.type;
    case 'transient':
      return result.reason;
  }
}
