/** rackwright host … */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { HostSchema } from '@rackwright/messages';
import { buildCommand, buildRouteMap } from '@stricli/core';
import { UsageError } from '../../failure.ts';
import { parseLabels, resourceName, type SharedFlags } from '../../flags.ts';
import { pastHostFields } from '../../output/host.ts';
import { printFields } from '../../output/show.ts';
import type { CliContext } from '../../world.ts';
import { pastFlag, pastTime } from '../frame/past-time.ts';
import { cleanHost, cleanSteps, resumeRun, skipStep } from './clean.ts';
import {
  type HostClient,
  hostAliases,
  hostArgument,
  hostFlags,
  reasonedCommand,
  requestFlag,
  showHost,
  withHosts,
} from './client.ts';
import { cancelDelete, deleteHost, releaseHold } from './deletion.ts';
import { provisionHost, reimageHost } from './deploy.ts';
import { eachHost } from './each.ts';
import { diffHost, hostHistory } from './history.ts';
import { findHosts, listHosts } from './list.ts';
import { planRoutes, startPlan } from './plan.ts';
import { powerRoutes } from './power.ts';
import { explainHost, getRun, listRuns } from './runs.ts';
import { type SpecFlags, specFlags, specFrom } from './spec.ts';
import {
  adoptHost,
  claimHost,
  holdHost,
  releaseHost,
  rescueHost,
  retryHost,
  serviceHost,
  unclaimHost,
} from './use.ts';
import { watchHost } from './watch.ts';

const aliases = hostAliases;
const createHost = buildCommand({
  docs: { brief: 'Make a host known' },
  parameters: {
    flags: {
      ...hostFlags,
      ...specFlags,
      ...requestFlag,
      rack: { kind: 'parsed', parse: String, brief: 'Rack of the host', placeholder: 'id' },
      dryRun: { kind: 'boolean', default: false, brief: 'Check only' },
    },
    positional: hostArgument,
    aliases,
  },
  async func(
    this: CliContext,
    flags: SharedFlags & SpecFlags & { rack: string; dryRun: boolean; requestId: string },
    hostId: string,
  ) {
    const { spec } = specFrom(flags);
    const rack = resourceName('racks', flags.rack);
    const host = { labels: parseLabels(flags.label ?? []), spec: { ...spec, rack } };
    const { requestId, dryRun: validateOnly } = flags;
    const request = { hostId, host: host as MessageInitShape<typeof HostSchema>, requestId };
    const made = await withHosts(this.world, flags, (hosts) =>
      hosts.createHost({ ...request, validateOnly }),
    );
    showHost(this.world, flags, made);
  },
});

const updateHost = buildCommand({
  docs: { brief: 'Change a host’s settings; what is not named stays' },
  parameters: {
    flags: { ...hostFlags, ...specFlags, ...requestFlag },
    positional: hostArgument,
    aliases,
  },
  async func(this: CliContext, flags: SharedFlags & SpecFlags & { requestId: string }, id: string) {
    const { spec, labels, paths } = specFrom(flags);
    if (paths.length === 0) throw new UsageError('nothing to change: give at least one flag');
    const name = resourceName('hosts', id);
    const host = { name, spec, labels };
    const updated = await withHosts(this.world, flags, (hosts) =>
      hosts.updateHost({ host, updateMask: { paths }, requestId: flags.requestId }),
    );
    showHost(this.world, flags, updated);
  },
});

const getHost = buildCommand({
  docs: { brief: 'Show one host, as it is or as it was' },
  parameters: {
    flags: {
      ...hostFlags,
      at: pastFlag('As it was then: 2026-01-31T12:00:00Z, or 2h for two hours ago'),
    },
    positional: hostArgument,
    aliases,
  },
  async func(this: CliContext, flags: SharedFlags & { at?: string }, id: string) {
    const { at } = flags;
    const request = {
      name: resourceName('hosts', id),
      ...(at === undefined ? {} : { readTime: pastTime(this.world.clock, '--at', at) }),
    };
    const host = await withHosts(this.world, flags, (hosts) => hosts.getHost(request));
    if (at === undefined || flags.output === 'json') showHost(this.world, flags, host);
    else printFields(this.world, pastHostFields(host, this.world.clock));
  },
});

const verifyHost = hostCommand('Verify BMC access and identity', (hosts, name, requestId) =>
  hosts.verifyHost({ name, requestId }),
);
const inspectHost = hostCommand('Take the inventory in the runner', (hosts, name, requestId) =>
  hosts.inspectHost({ name, requestId }),
);

/** A request that takes a host only, and shows it as it then is. */
function hostCommand(
  brief: string,
  ask: (hosts: HostClient, name: string, requestId: string) => ReturnType<HostClient['getHost']>,
) {
  return buildCommand({
    docs: { brief },
    parameters: { flags: { ...hostFlags, ...requestFlag }, positional: hostArgument, aliases },
    async func(this: CliContext, flags: SharedFlags & { requestId: string }, id: string) {
      const name = resourceName('hosts', id);
      const host = await withHosts(this.world, flags, (hosts) => ask(hosts, name, flags.requestId));
      showHost(this.world, flags, host);
    },
  });
}

const abortRun = reasonedCommand({ brief: 'End the run under way' }, (hosts, call) =>
  hosts.abortRun(call),
);

/** All commands on hosts. */
export const hostRoutes = buildRouteMap({
  routes: {
    create: createHost,
    list: listHosts,
    find: findHosts,
    get: getHost,
    watch: watchHost,
    update: updateHost,
    verify: verifyHost,
    inspect: inspectHost,
    clean: cleanHost,
    'clean-steps': cleanSteps,
    resume: resumeRun,
    skip: skipStep,
    service: serviceHost,
    provision: provisionHost,
    reimage: reimageHost,
    release: releaseHost,
    rescue: rescueHost,
    adopt: adoptHost,
    history: hostHistory,
    diff: diffHost,
    each: eachHost,
    runs: listRuns,
    run: getRun,
    plan: planRoutes,
    start: startPlan,
    abort: abortRun,
    retry: retryHost,
    claim: claimHost,
    unclaim: unclaimHost,
    hold: holdHost,
    'release-hold': releaseHold,
    power: powerRoutes,
    explain: explainHost,
    delete: deleteHost,
    'cancel-delete': cancelDelete,
  },
  docs: { brief: 'Bare-metal hosts' },
});
