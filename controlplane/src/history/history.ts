/** HistoryService: past states of a host, and the work that was done on it. */
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  asRevision,
  type BoundService,
  bind,
  type DiffHostRequest,
  HistoryService,
  invalidArgument,
} from '@rackwright/messages';
import type { RpcDependencies } from '../call/ports.ts';
import { diffHosts } from './host-diff.ts';
import { explainRun, getHostRun, listHostRuns } from './host-runs.ts';
import { hostAt } from './timeline.ts';

/** The service over these dependencies. */
export function createHistoryService(deps: RpcDependencies): BoundService {
  return bind(HistoryService, {
    diffHost: (request) => diffHost(deps, request),
    getHostRun: ({ name }) => getHostRun(deps, name),
    listHostRuns: (request) => listHostRuns(deps, request),
    explainRun: ({ name }) => explainRun(deps, name),
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
    fromRevision: asRevision(before.revision),
    toRevision: asRevision(after.revision),
  };
}
