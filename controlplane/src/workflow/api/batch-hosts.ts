/** Pages of a batch's report: a line for each host, in the order of selection. */
import { toBinary } from '@bufbuild/protobuf';
import {
  invalidArgument,
  type ListWorkflowBatchHostsRequest,
  type WorkflowBatch,
  type WorkflowBatchHost,
  WorkflowBatchHostSchema,
  WorkflowRunState,
} from '@rackwright/messages';
import type { StateStore } from '@rackwright/store';
import { pageBytesMax, pageSizeOf } from '../../call/paging.ts';
import { formatPageToken, parsePageToken } from '../../call/position.ts';

/** A page of the hosts in the requested states. Throws `invalidArgument`. */
export function pageOfHosts(
  store: StateStore,
  { uid, status }: WorkflowBatch,
  request: Pick<ListWorkflowBatchHostsRequest, 'states' | 'pageSize' | 'pageToken'>,
): { hosts: WorkflowBatchHost[]; nextPageToken: string } {
  const size = pageSizeOf(request.pageSize);
  const states = new Set(request.states);
  checkStates(states);
  // A new batch with the same name has other hosts.
  const filter = `hosts of ${uid} in ${[...states].sort((a, b) => a - b).join()}`;
  const first = Number(parsePageToken(store, filter, request.pageToken) || 0);
  const hosts: WorkflowBatchHost[] = [];
  let bytes = 0;
  for (const [index, host] of (status?.hosts ?? []).entries()) {
    if (index < first || (states.size > 0 && !states.has(host.state))) continue;
    bytes += toBinary(WorkflowBatchHostSchema, host).byteLength;
    if (hosts.length >= size || (hosts.length > 0 && bytes > pageBytesMax)) {
      return { hosts, nextPageToken: formatPageToken(store, filter, String(index)) };
    }
    hosts.push(host);
  }
  return { hosts, nextPageToken: '' };
}

const named: ReadonlySet<number> = new Set(Object.values(WorkflowRunState));

function checkStates(states: ReadonlySet<number>): void {
  for (const state of states) {
    if (state !== WorkflowRunState.UNSPECIFIED && named.has(state)) continue;
    const description = `has ${state}; each must be a state that a run can have, or there is none`;
    throw invalidArgument([{ field: 'states', description }]);
  }
}
