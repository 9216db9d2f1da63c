/** HostService. It changes a host's state only through the host loop. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type BoundService,
  bind,
  HostService,
  type ListCleanStepsResponseSchema,
  notFound,
  store as wire,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { readFacts, readHost } from '../../call/host-view.ts';
import { parseName, requireName } from '../../call/names.ts';
import type { RpcDependencies } from '../../call/ports.ts';
import { hostAt, listHostRevisions } from '../../history/timeline.ts';
import { withItsPool } from '../../pool/api/pool-view.ts';
import { readRecord } from '../../records/index.ts';
import { awaitedSlots, withAwaitedSlots } from '../../workflow/index.ts';
import { planOf } from '../index.ts';
import { createHost } from './create-host.ts';
import { getHostInventory } from './host-inventory.ts';
import { hostRequests } from './host-requests.ts';
import { countHosts, listHosts } from './list-hosts.ts';
import { readHostBmc } from './read-bmc.ts';
import { updateHost } from './update-host.ts';
import { watchHostConsole } from './watch-console.ts';
import { watchHosts } from './watch-hosts.ts';

/** The service over these dependencies. */
export function createHostService(deps: RpcDependencies): BoundService {
  return bind(HostService, {
    createHost: (request) => createHost(deps, request),
    getHost: async ({ name, readTime }) =>
      readTime === undefined
        ? (await existing(deps, name)).host
        : (await hostAt(deps, name, readTime)).host,
    listHosts: (request) => listHosts(deps, request),
    countHosts: (request) => countHosts(deps, request),
    updateHost: (request) => updateHost(deps, request),
    watchHosts: (request, context) => watchHosts(deps, request, context),
    ...hostRequests(deps),
    explainHost: async ({ name }) => {
      const explanation = await deps.hosts.explain(requireName('hosts', name));
      if (explanation === undefined) throw notFound(name);
      const shown = withAwaitedSlots(explanation, await awaitedSlots(deps, name));
      return withItsPool(deps, shown);
    },
    listCleanSteps: ({ name }) => listCleanSteps(deps, name),
    getHostInventory: ({ name }) => getHostInventory(deps, name),
    readHostBmc: (request, context) => readHostBmc(deps, request, context),
    watchHostConsole: (request, context) => watchHostConsole(deps, request, context),
    listHostRevisions: (request) => listHostRevisions(deps, request),
  });
}

async function existing(deps: RpcDependencies, name: string) {
  const found = await readHost(deps, requireName('hosts', name));
  if (found === undefined) throw notFound(name);
  return found;
}

async function listCleanSteps(
  deps: RpcDependencies,
  name: string,
): Promise<MessageInitShape<typeof ListCleanStepsResponseSchema>> {
  const { store } = deps;
  const { host } = await existing(deps, name);
  const rackId = parseName('racks', host.spec?.rack ?? '') ?? '';
  const [kept, rack, fleet] = await Promise.all([
    readFacts(deps, requireName('hosts', name)),
    readRecord(store, wire.RackRecordSchema, storeKey('racks', rackId)),
    readRecord(store, wire.FleetRecordSchema, storeKey('fleet', 'fleet')),
  ]);
  const facts = kept?.hostUid === host.uid ? kept : create(wire.HostFactsSchema);
  const isRunnerKnown = facts.runnerSteps.length > 0;
  const isAgentKnown = rack?.record.journal !== undefined;
  const plan = planOf(host, {
    facts,
    agentSteps: isAgentKnown ? rack.record.agentSteps : undefined,
    fleet: fleet?.record.fleet?.spec,
  });
  const lacks = [
    ...(isRunnerKnown ? [] : ['no runner of this host has reported its steps yet: built-in ones']),
    ...(isAgentKnown ? [] : ['no agent of its rack has reported its steps yet']),
  ];
  return {
    steps: [...plan.enabled, ...plan.disabled],
    complete: lacks.length === 0,
    warnings: [...plan.warnings, ...lacks],
    ...(isRunnerKnown && facts.runnerStepsAt ? { collectedAt: facts.runnerStepsAt } : {}),
  };
}
