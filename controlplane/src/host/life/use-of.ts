/**
 * One use of a host, told from the next one: who claims it (a person or a pool), what was deployed
 * there, whether it is in use at all, and its use epoch. What was asked for in one use and has not
 * begun does not reach the next one. Pure.
 */
import { create, equals } from '@bufbuild/protobuf';
import { HostState, store } from '@rackwright/messages';

/** The present use of a host. */
export function useOf({ host, deployedRun }: store.HostRecord): store.HostUse {
  const { claim, state, useEpoch = 0n } = host?.status ?? {};
  return create(store.HostUseSchema, {
    claimedBy: claim?.by ?? '',
    ...(claim?.at === undefined ? {} : { claimTime: claim.at }),
    deployedRun,
    inUse: state === HostState.PROVISIONED || state === HostState.EXTERNAL,
    useEpoch,
  });
}

/** Whether a host is still in the use that was noted. One that was not noted is none of now. */
export function isInUseOf(record: store.HostRecord, noted: store.HostUse | undefined): boolean {
  return noted !== undefined && equals(store.HostUseSchema, noted, useOf(record));
}
