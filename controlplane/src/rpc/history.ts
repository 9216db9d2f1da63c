/** HistoryService: what a host was, and what was done on it. */

import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  ApiFailure,
  type BoundService,
  bind,
  type DiffHostRequest,
  HistoryService,
  invalidArgument,
} from '@rackwright/api';
import { diffHosts } from './host-diff.ts';
import type { RpcDependencies } from './ports.ts';
import { hostAt } from './timeline.ts';

/** The service over these dependencies. */
export function createHistoryService(deps: RpcDependencies): BoundService {
  return bind(HistoryService, {
    diffHost: (request) => diffHost(deps, request),
    getHostRun: notServed,
    listHostRuns: notServed,
    explainRun: notServed,
  });
}

async function diffHost(deps: RpcDependencies, request: DiffHostRequest) {
  const { name, fromTime, toTime = timestampFromMs(deps.clock.nowMs()) } = request;
  if (fromTime === undefined) {
    const description = 'is missing; give the time from which on differences are wanted';
    throw invalidArgument([{ field: 'from_time', description }]);
  }
  const before = await hostAt(deps, name, fromTime, 'from_time');
  const after = await hostAt(deps, name, toTime, 'to_time');
  return {
    differences: [...diffHosts(before.host, after.host)],
    fromRevision: BigInt(before.revision),
    toRevision: BigInt(after.revision),
  };
}

function notServed(): never {
  throw new ApiFailure({
    kind: 'unimplemented',
    message: 'Runs of a host are not served by this version.',
    reason: 'UNIMPLEMENTED',
  });
}
