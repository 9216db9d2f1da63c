/**
 * One use of a host, distinguished from the next one by its claim (a person or a pool), its
 * deployment, whether it is in use at all, and its use epoch. A request from one use that has not
 * begun does not affect the next one. Pure.
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

/** Whether a host is still in the recorded use. Without a recorded use it is not. */
export function isInUseOf(record: store.HostRecord, noted: store.HostUse | undefined): boolean {
  return noted !== undefined && equals(store.HostUseSchema, noted, useOf(record));
}
