/** AbandonedResourceService: remains of forced removals, until a person has resolved them. */
import { create, fromBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type AbandonedResource,
  AbandonedResourceService,
  type BoundService,
  bind,
  notFound,
  type Resolution,
  ResolutionSchema,
  type ResolveAbandonedResourceRequest,
  store as wire,
} from '@rackwright/messages';
import { type StoreRevision, storeKey } from '@rackwright/store';
import { nameProblem, requireName } from '../call/names.ts';
import { listPage } from '../call/paging.ts';
import type { RpcDependencies } from '../call/ports.ts';
import { formatPosition } from '../call/position.ts';
import { checkReason } from '../call/texts.ts';
import { Violations } from '../call/violations.ts';
import { changeAbandoned, hostsFencedBy } from '../host/index.ts';
import { readRecord } from '../records/index.ts';

const collection = 'abandonedResources';

/** The service over these dependencies. */
export function createAbandonedService(deps: RpcDependencies): BoundService {
  const { store } = deps;
  return bind(AbandonedResourceService, {
    getAbandonedResource: async ({ name }) => {
      const key = storeKey(collection, requireName(collection, name));
      const kept = await readRecord(store, wire.AbandonedRecordSchema, key);
      if (kept?.record.resource === undefined) throw notFound(name);
      return present(deps, kept.record.resource, kept.revision);
    },
    listAbandonedResources: async (request) => {
      const all = request.showResolved === true;
      const page = await listPage(store, collection, request, String(all), (entry) => {
        const { resource } = fromBinary(wire.AbandonedRecordSchema, entry.value);
        if (resource === undefined || (resource.resolution !== undefined && !all)) return undefined;
        return present(deps, resource, entry.revision);
      });
      return { abandonedResources: [...page.items], nextPageToken: page.nextPageToken };
    },
    resolveAbandonedResource: (request) => resolve(deps, request),
  });
}

/**
 * A repeated request changes nothing. If the machine was not reported as disconnected before, that
 * may be added.
 */
async function resolve(
  deps: RpcDependencies,
  { name, reason, physicallyDisconnected = false }: ResolveAbandonedResourceRequest,
): Promise<AbandonedResource> {
  const violations = new Violations();
  violations.addIf('name', nameProblem(collection, name));
  checkReason('reason', reason, violations);
  if (reason === '') violations.add('reason', 'is empty; say what was done about it');
  violations.throwIfAny();
  const uid = requireName(collection, name);
  const resolution = create(ResolutionSchema, {
    by: deps.actor,
    reason,
    at: timestampFromMs(deps.clock.nowMs()),
    physicallyDisconnected,
  });
  const changed = await changeAbandoned(deps, uid, (resource) => settle(resource, resolution));
  if (changed === undefined) throw notFound(name);
  deps.log.info({ name, actor: deps.actor, reason, physicallyDisconnected }, 'resolved');
  if (physicallyDisconnected) {
    for (const hostId of await hostsFencedBy(deps.fleetView, uid)) deps.hosts.wake(hostId);
  }
  return present(deps, changed.resource, changed.revision);
}

/** Whether anything has changed. */
function settle(resource: AbandonedResource, resolution: Resolution): boolean {
  const { physicallyDisconnected } = resolution;
  const before = resource.resolution;
  if (before !== undefined && (before.physicallyDisconnected || !physicallyDisconnected)) {
    return false;
  }
  resource.resolution = resolution;
  if (physicallyDisconnected) resource.fencePending = false;
  return true;
}

function present(
  { store }: Pick<RpcDependencies, 'store'>,
  resource: AbandonedResource,
  revision: StoreRevision,
): AbandonedResource {
  resource.etag = formatPosition(store, revision);
  return resource;
}
