/** rackwright rack update, freeze, thaw, accept-restored-store */
import type { Rack } from '@rackwright/messages';
import { buildCommand } from '@stricli/core';
import type { CliContext, CommandIo } from '../../command-io.ts';
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
  textFlag,
} from '../../flags.ts';
import { enumValue } from '../../output/enum-name.ts';
import { field, flagsOf, givenBy, namesOf, type ValuesOf } from '../frame/fields.ts';
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

/** Each field of a rack that a person sets: its flag, its path, and its conversion. */
const fields = {
  displayName: { ...field(textFlag('Name for people', 'name'), 'displayName'), clears: true },
  runs: field(
    textFlag('Hosts that may be booted into the runner at once, or none for no limit', 'number'),
    'limits',
    (text) => {
      const runs = parseRuns(text);
      return runs === undefined ? undefined : { runs };
    },
  ),
  wipeBudget: field(wipeBudgetFlag.wipeBudget, 'wipeBudget', parseBudget),
  powerMismatch: field(
    {
      kind: 'enum',
      values: ['report', 'enforce'],
      optional: true,
      brief: 'What follows when a host’s power is not what its spec says',
    },
    'powerMismatch',
    (word) => enumValue('PowerMismatchPolicy', word),
  ),
  powerSyncSeconds: field(
    {
      kind: 'parsed',
      parse: parseWhole,
      optional: true,
      brief: 'Seconds between two polls of each host’s power; 0 switches them off',
      placeholder: 'seconds',
    },
    'powerSyncSeconds',
  ),
} as const;

interface UpdateFlags extends SharedFlags, DiscoveryFlags, ValuesOf<typeof fields> {
  readonly label?: readonly string[];
}

export const updateRack = buildCommand({
  docs: {
    brief: 'Change a rack’s name, limits and policies; values that are not given stay',
    fullDescription:
      'Runs above --runs queue in order of arrival; a waiting run shows its position. ' +
      'Above --wipe-budget runs wait before their first destructive step.',
  },
  parameters: {
    flags: {
      ...shared,
      ...flagsOf(fields),
      ...labelChangeFlag,
      ...discoveryFlags,
    },
    positional,
    aliases,
  },
  async func(this: CliContext, flags: UpdateFlags, id: string) {
    const labels = labelChange(flags.label);
    const given = givenBy(fields, flags);
    const discovery = await discoveryFrom(this.io, flags);
    const paths = [...given.paths, ...labels.paths, ...discovery.paths];
    if (paths.length === 0) throw new UsageError(nothingToChange);
    const spec = {
      ...given.spec,
      ...(discovery.paths.length === 0 ? {} : { discovery: discovery.policy }),
    };
    const rack = { name: resourceName('racks', id), spec, labels: labels.set };
    const updateMask = { paths };
    await show(this.io, flags, (racks) => racks.updateRack({ rack, updateMask }));
  },
});

const { displayName, ...others } = fields;
const allFlags = { displayName, ...labelChangeFlag, ...others, ...discoveryFlags };
const nothingToChange = `nothing to change: give ${namesOf(allFlags)}`;

function show(
  io: CommandIo,
  flags: SharedFlags,
  call: (racks: Parameters<Parameters<typeof withRacks>[2]>[0]) => Promise<Rack>,
): Promise<void> {
  return withRacks(io, flags, call).then((rack) => showRack(io, flags, rack));
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
    await show(this.io, flags, (racks) => racks.freezeRack({ name, reason, requestId }));
  },
});

export const thawRack = buildCommand({
  docs: { brief: 'End the freeze of a rack' },
  parameters: { flags: { ...shared, ...brakeFlags }, positional, aliases },
  async func(this: CliContext, flags: SharedFlags & BrakeFlags, id: string) {
    const { reason, requestId } = flags;
    const name = resourceName('racks', id);
    await show(this.io, flags, (racks) => racks.thawRack({ name, reason, requestId }));
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
    await show(this.io, flags, (racks) => racks.acceptRestoredStore(call));
  },
});
