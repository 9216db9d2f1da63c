/** The closed lists of `PoolCondition.type`, and of `PoolCondition.reason` for each. */

/** The reasons of each condition. */
export interface PoolReasons {
  readonly Resolved: 'Resolved' | 'Unresolved' | 'ResolutionFailed';
  readonly UpToDate:
    | 'AllUpdated'
    | 'RolloutInProgress'
    | 'NoHosts'
    | 'Waiting'
    | 'WaitingForApproval'
    | 'WaitingForWebhook'
    | 'WaitingForWindow'
    // What keeps the whole pool from beginning anything.
    | 'Deleting'
    | 'Paused'
    | 'Stopped'
    | 'NoTarget'
    | 'Halted'
    | 'WavesEmpty';
  readonly Degraded:
    | 'Healthy'
    | 'ResolutionFailed'
    | 'WavesEmpty'
    | 'RolloutHalted'
    | 'RolledBack'
    | 'HostConflict'
    | 'HostFailed'
    | 'HostKept';
}

export type PoolConditionType = keyof PoolReasons;

/** The status of a pool, as a message or in JSON. */
type WithConditions<C> = { readonly conditions?: readonly C[] } | undefined;

/** A pool that nobody has looked at yet has none. */
export function poolCondition<C extends { readonly type: string }>(
  status: WithConditions<C>,
  type: PoolConditionType,
): C | undefined {
  return status?.conditions?.find((each) => each.type === type);
}

/** Whether the condition has one of these reasons. */
export function isPoolBecause<T extends PoolConditionType>(
  status: WithConditions<{ readonly type: string; readonly reason: string }>,
  type: T,
  ...reasons: readonly PoolReasons[T][]
): boolean {
  const found = poolCondition(status, type)?.reason;
  return reasons.some((reason) => reason === found);
}
