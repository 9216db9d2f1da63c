/**
 * DeleteHost, and responses about removed hosts. A repeated request that ended a host gets the same
 * response, because the history of the host's key has the request.
 */
import {
  type DeleteHostRequest,
  DeletionMode,
  type Host,
  type HostId,
  notFound,
} from '@rackwright/messages';
import { hostKey, hostRecordOf, presentHost, readHost } from '../../call/host-view.ts';
import { isKnown, nameProblem, requireName } from '../../call/names.ts';
import { answerOf } from '../../call/outcome.ts';
import { type RpcDependencies, requester } from '../../call/ports.ts';
import { revisionOfEtag } from '../../call/position.ts';
import { checkReason, checkRequestId } from '../../call/texts.ts';
import { Violations } from '../../call/violations.ts';
import { hasApplied, orUnavailable } from '../../records/index.ts';
import { removed, transit } from '../pass/transitions.ts';

/** Handles one DeleteHost. */
export async function deleteHost(deps: RpcDependencies, call: DeleteHostRequest): Promise<Host> {
  const { name, etag, reason, requestId, mode } = call;
  const violations = new Violations();
  violations.addIf('name', nameProblem('hosts', name));
  checkReason('reason', reason, violations);
  checkRequestId(requestId, violations);
  if (!isKnown(DeletionMode, mode)) violations.add('mode', 'must be normal or force');
  violations.throwIfAny();
  const hostId = requireName('hosts', name);
  const by = requester(deps, 'delete', requestId);
  if ((await readHost(deps, hostId)) === undefined) {
    const gone = await answeredBefore(deps, hostId, by.requestId);
    if (gone === undefined) throw notFound(name);
    return gone;
  }
  const outcome = await deps.hosts.request(
    hostId,
    { kind: 'delete', mode: mode || DeletionMode.NORMAL, reason },
    by,
    revisionOfEtag(deps.store, etag),
  );
  if (outcome.kind === 'removed') return lastSeen(deps, hostId, name);
  const { record, revision } = answerOf(outcome, name);
  return presentHost(deps, record, revision, undefined);
}

/** A removed host, in its last state. */
export async function lastSeen(deps: RpcDependencies, hostId: HostId, name: string): Promise<Host> {
  const last = await lastRecord(deps, hostId);
  if (last === undefined) throw notFound(name);
  return asGone(deps, last);
}

/** The removed host, if the request with this id was the last one applied to it. */
export async function answeredBefore(
  deps: Pick<RpcDependencies, 'store' | 'hosts'>,
  hostId: HostId,
  requestId = '',
): Promise<Host | undefined> {
  if (requestId === '') return undefined;
  const last = await lastRecord(deps, hostId);
  // Without a deletion the host was never complete: its creation failed.
  if (last?.record.host?.status?.deletion === undefined) return undefined;
  return hasApplied(last.record, requestId) ? asGone(deps, last) : undefined;
}

/** Ids of the requests to the last host of this name: none of them is applied to its successor. */
export async function idsBefore(
  deps: Pick<RpcDependencies, 'store'>,
  hostId: HostId,
): Promise<string[]> {
  return (await lastRecord(deps, hostId))?.record.requestIds ?? [];
}

async function lastRecord({ store }: Pick<RpcDependencies, 'store'>, hostId: HostId) {
  const changes = await orUnavailable(store.history(hostKey(hostId)));
  const last = changes.findLast((change) => change.kind === 'put');
  if (last === undefined) return undefined;
  return { record: hostRecordOf(last), revision: last.revision };
}

function asGone(
  deps: Pick<RpcDependencies, 'store' | 'hosts'>,
  { record, revision }: NonNullable<Awaited<ReturnType<typeof lastRecord>>>,
): Host {
  const gone = presentHost(deps, record, revision, undefined);
  if (gone.status !== undefined) {
    transit(gone.status, removed);
    gone.status.display = 'gone';
  }
  return gone;
}
