/** rackwright host … */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { HostId, HostSchema } from '@rackwright/messages';
import { buildCommand, buildRouteMap } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import type { CliContext } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import { parseLabels, resourceName, type SharedFlags } from '../../flags.ts';
import { pastHostFields } from '../../output/host.ts';
import { isForPrograms, printFields } from '../../output/show.ts';
import { withConnection } from '../frame/calls.ts';
import { pastFlag, pastTime } from '../frame/past-time.ts';
import { checkWait, type WaitFlags, waitFlags } from '../frame/wait.ts';
import { bmcRoutes } from './bmc.ts';
import { hostBoots } from './boots.ts';
import { cleanHost, cleanSteps, resumeRun, skipStep } from './clean.ts';
import {
  hostAliases,
  hostArgument,
  hostClient,
  hostFlags,
  requestFlag,
  showHost,
  withHosts,
} from './client.ts';
import { hostConsole } from './console.ts';
import { cancelDelete, deleteHost, releaseHold } from './deletion.ts';
import { provisionHost, reimageHost } from './deploy.ts';
import { eachHost } from './each.ts';
import { diffHost, hostHistory } from './history.ts';
import { hostInventory } from './inventory.ts';
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
import { hostVerb } from './verb.ts';
import { workDone } from './wait.ts';
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
      ...waitFlags,
    },
    positional: hostArgument,
    aliases,
  },
  async func(
    this: CliContext,
    flags: SharedFlags &
      SpecFlags &
      WaitFlags & { rack: string; dryRun: boolean; requestId: string },
    hostId: HostId,
  ) {
    const { spec } = specFrom(flags);
    const rack = resourceName('racks', flags.rack);
    const host = { labels: parseLabels(flags.label ?? []), spec: { ...spec, rack } };
    const { requestId, dryRun: validateOnly } = flags;
    const request = { hostId, host: host as MessageInitShape<typeof HostSchema>, requestId };
    checkWait(flags);
    const made = await withConnection(this.io, flags, async (connection) => {
      const hosts = hostClient(connection);
      const answered = await hosts.createHost({ ...request, validateOnly });
      return validateOnly ? answered : workDone(this.io, connection, flags, 'goal', answered);
    });
    showHost(this.io, flags, made);
  },
});

const updateHost = buildCommand({
  docs: { brief: 'Change a host’s settings; values that are not given stay' },
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
    const updated = await withHosts(this.io, flags, (hosts) =>
      hosts.updateHost({ host, updateMask: { paths }, requestId: flags.requestId }),
    );
    showHost(this.io, flags, updated);
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
      ...(at === undefined ? {} : { readTime: pastTime(this.io.clock, '--at', at) }),
    };
    const host = await withHosts(this.io, flags, (hosts) => hosts.getHost(request));
    if (at === undefined || isForPrograms(flags.output)) showHost(this.io, flags, host);
    else printFields(this.io, pastHostFields(host, this.io.clock));
  },
});

const verifyHost = hostVerb({
  word: 'verify',
  docs: { brief: 'Verify BMC access and identity' },
  flags: {},
  hasReason: false,
  waitsFor: 'run',
  prepare: () => ({ ask: (hosts, { name, requestId }) => hosts.verifyHost({ name, requestId }) }),
});

const inspectHost = hostVerb({
  word: 'inspect',
  docs: { brief: 'Take the inventory in the runner' },
  flags: {},
  hasReason: false,
  waitsFor: 'run',
  prepare: () => ({ ask: (hosts, { name, requestId }) => hosts.inspectHost({ name, requestId }) }),
});

const abortRun = hostVerb({
  word: 'abort',
  docs: { brief: 'End the run under way' },
  flags: {},
  hasReason: true,
  prepare: () => ({ ask: (hosts, call) => hosts.abortRun(call) }),
});

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
    bmc: bmcRoutes,
    console: hostConsole,
    explain: explainHost,
    boots: hostBoots,
    inventory: hostInventory,
    delete: deleteHost,
    'cancel-delete': cancelDelete,
  },
  docs: { brief: briefs.host },
});
