/** rackwright rack update, freeze, thaw, accept-restored-store */
import { PowerMismatchPolicy, type Rack } from '@rackwright/messages';
import { buildCommand } from '@stricli/core';
import { UsageError } from '../../failure.ts';
import {
  connectionFlags,
  idArgument,
  labelChange,
  labelChangeFlag,
  outputFlag,
  parseWhole,
  resourceName,
  type SharedFlags,
} from '../../flags.ts';
import type { CliContext, World } from '../../world.ts';
import {
  type BrakeFlags,
  brakeFlags,
  parseBudget,
  parseRuns,
  wipeBudgetFlag,
} from '../frame/limits.ts';
import { showRack, withRacks } from './client.ts';
import { type DiscoveryFlags, discoveryFlags, discoveryFrom } from './discovery.ts';

const shared = { ...connectionFlags, ...outputFlag };
const aliases = { o: 'output' } as const;
const positional = idArgument('rack', 'Id of the rack');

interface UpdateFlags extends SharedFlags, DiscoveryFlags {
  readonly displayName?: string;
  readonly label?: readonly string[];
  readonly runs?: string;
  readonly wipeBudget?: string;
  readonly powerMismatch?: 'report' | 'enforce';
  readonly powerSyncSeconds?: number;
}

export const updateRack = buildCommand({
  docs: {
    brief: 'Change a rack’s name, limits and policies; what is not named stays',
    fullDescription:
      'Runs above --runs queue in the order in which they came; whoever waits shows its place. ' +
      'Above --wipe-budget runs wait before their first destructive step.',
  },
  parameters: {
    flags: {
      ...shared,
      displayName: { kind: 'parsed', parse: String, optional: true, brief: 'Name for people' },
      ...labelChangeFlag,
      runs: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'Hosts that may be booted into the runner at once, or none for no limit',
        placeholder: 'number',
      },
      ...wipeBudgetFlag,
      powerMismatch: {
        kind: 'enum',
        values: ['report', 'enforce'],
        optional: true,
        brief: 'What follows when a host’s power is not what its spec says',
      },
      powerSyncSeconds: {
        kind: 'parsed',
        parse: parseWhole,
        optional: true,
        brief: 'Seconds between two looks at each host’s power, 0 for none',
        placeholder: 'seconds',
      },
      ...discoveryFlags,
    },
    positional,
    aliases,
  },
  async func(this: CliContext, flags: UpdateFlags, id: string) {
    const { displayName, runs, wipeBudget, powerMismatch, powerSyncSeconds } = flags;
    const paths: string[] = [];
    const add = (path: string, value: unknown) => value !== undefined && paths.push(path);
    add('spec.display_name', displayName);
    add('spec.limits', runs);
    add('spec.wipe_budget', wipeBudget);
    add('spec.power_mismatch', powerMismatch);
    add('spec.power_sync_seconds', powerSyncSeconds);
    const labels = labelChange(flags.label);
    paths.push(...labels.paths);
    const { policy, paths: policyPaths } = await discoveryFrom(this.world, flags);
    paths.push(...policyPaths);
    if (paths.length === 0) throw new UsageError(nothingToChange);
    const limit = runs === undefined ? undefined : parseRuns(runs);
    const budget = wipeBudget === undefined ? undefined : parseBudget(wipeBudget);
    const spec = {
      displayName: displayName ?? '',
      ...(limit === undefined ? {} : { limits: { runs: limit } }),
      ...(budget === undefined ? {} : { wipeBudget: budget }),
      ...(powerMismatch === undefined ? {} : { powerMismatch: policies[powerMismatch] }),
      ...(powerSyncSeconds === undefined ? {} : { powerSyncSeconds }),
      ...(policyPaths.length === 0 ? {} : { discovery: policy }),
    };
    const rack = { name: resourceName('racks', id), spec, labels: labels.set };
    const updateMask = { paths };
    await show(this.world, flags, (racks) => racks.updateRack({ rack, updateMask }));
  },
});

const nothingToChange =
  'nothing to change: give --display-name, --label, --runs, --wipe-budget, --power-mismatch, ' +
  '--power-sync-seconds, --discovery, --discovery-machines, --discovery-rules or --bmc-network';

const policies = {
  report: PowerMismatchPolicy.REPORT,
  enforce: PowerMismatchPolicy.ENFORCE,
} as const;

function show(
  world: World,
  flags: SharedFlags,
  call: (racks: Parameters<Parameters<typeof withRacks>[2]>[0]) => Promise<Rack>,
): Promise<void> {
  return withRacks(world, flags, call).then((rack) => showRack(world, flags, rack));
}

export const freezeRack = buildCommand({
  docs: {
    brief: 'Let nothing destructive begin in the rack; what is running finishes',
    fullDescription:
      'Agents keep to it within one lease period, also without the control plane. Runs wait, and ' +
      'go on by themselves after the thaw.',
  },
  parameters: { flags: { ...shared, ...brakeFlags }, positional, aliases },
  async func(this: CliContext, flags: SharedFlags & BrakeFlags, id: string) {
    const { reason, requestId } = flags;
    const name = resourceName('racks', id);
    await show(this.world, flags, (racks) => racks.freezeRack({ name, reason, requestId }));
  },
});

export const thawRack = buildCommand({
  docs: { brief: 'End the freeze of a rack' },
  parameters: { flags: { ...shared, ...brakeFlags }, positional, aliases },
  async func(this: CliContext, flags: SharedFlags & BrakeFlags, id: string) {
    const { reason, requestId } = flags;
    const name = resourceName('racks', id);
    await show(this.world, flags, (racks) => racks.thawRack({ name, reason, requestId }));
  },
});

export const acceptRestoredStore = buildCommand({
  docs: {
    brief: 'Let a rack’s agent work for a store that was restored',
    fullDescription:
      'What the agent has done since then is lost to the control plane: see it first by rack ' +
      'get, and hold each host that may be in use. Runs under way end, available hosts are ' +
      'cleaned again.',
  },
  parameters: { flags: { ...shared, ...brakeFlags }, positional, aliases },
  async func(this: CliContext, flags: SharedFlags & BrakeFlags, id: string) {
    const { reason, requestId } = flags;
    const call = { name: resourceName('racks', id), reason, requestId };
    await show(this.world, flags, (racks) => racks.acceptRestoredStore(call));
  },
});
