/** rackwright rack … */

import { create } from '@bufbuild/protobuf';
import { ListRacksResponseSchema, type Rack, type RackId, RackSchema } from '@rackwright/messages';
import { buildCommand, buildRouteMap } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import type { CliContext, CommandIo } from '../../command-io.ts';
import {
  idArgument,
  parseLabels,
  requestFlag,
  type SearchFlags,
  type SharedFlags,
  searchFlags,
  searchOf,
} from '../../flags.ts';
import { enumName } from '../../output/enum-name.ts';
import { isForPrograms, printAs, printTable } from '../../output/show.ts';
import type { TextColumn } from '../../output/table.ts';
import { ago } from '../../output/time.ts';
import { allPages } from '../frame/calls.ts';
import { showExplanation } from '../frame/explain.ts';
import {
  sharedAliases as aliases,
  oneCommand,
  sharedFlags as shared,
  showGone,
} from '../frame/frames.ts';
import { type Freezes, readFreezes } from '../frame/freezes.ts';
import { joinToken, revokeAgent } from './agent.ts';
import { acceptRestoredStore, freezeRack, thawRack, updateRack } from './brakes.ts';
import { agentState, showRack, withRacks } from './client.ts';

const argument = ['rack', 'Id of the rack'] as const;

const createRack = buildCommand({
  docs: { brief: 'Make a rack known' },
  parameters: {
    flags: {
      ...shared,
      displayName: { kind: 'parsed', parse: String, optional: true, brief: 'Name for people' },
      label: { kind: 'parsed', parse: String, variadic: true, optional: true, brief: 'NAME=VALUE' },
      ...requestFlag,
    },
    positional: idArgument(...argument),
    aliases,
  },
  async func(
    this: CliContext,
    flags: SharedFlags & { displayName?: string; label?: readonly string[]; requestId: string },
    rackId: RackId,
  ) {
    const spec = { displayName: flags.displayName ?? '' };
    const rack = { spec, labels: parseLabels(flags.label ?? []) };
    const made = await withRacks(this.io, flags, (racks) =>
      racks.createRack({ rackId, rack, requestId: flags.requestId }),
    );
    showRack(this.io, flags, made);
    if (!isForPrograms(flags.output)) {
      this.io.err.write(`Next: rackwright rack join-token ${rackId}\n`);
    }
  },
});

const getRack = oneCommand({
  brief: 'Show one rack',
  collection: 'racks',
  argument,
  call: (io, flags, name) => withRacks(io, flags, (racks) => racks.getRack({ name })),
  show: showRack,
});

const listRacks = buildCommand({
  docs: { brief: 'List racks' },
  parameters: { flags: { ...shared, ...searchFlags }, aliases },
  async func(this: CliContext, flags: SharedFlags & SearchFlags) {
    const search = searchOf(flags);
    const racks = await withRacks(this.io, flags, (client) =>
      allPages(
        (pageToken) => client.listRacks({ ...search, pageToken }),
        (page) => page.racks,
      ),
    );
    if (isForPrograms(flags.output)) {
      printAs(
        this.io,
        flags.output,
        ListRacksResponseSchema,
        create(ListRacksResponseSchema, { racks }),
      );
      return;
    }
    printTable(
      this.io,
      flags.output,
      columns(this.io, await readFreezes(this.io, flags, racks)),
      racks,
    );
  },
});

const explainRack = oneCommand({
  brief: 'Say whether a rack’s agent works, and what its hosts wait for',
  collection: 'racks',
  argument,
  call: (io, flags, name) => withRacks(io, flags, (racks) => racks.explainRack({ name })),
  show: showExplanation,
});

const deleteRack = oneCommand({
  brief: 'Remove a rack that has no hosts',
  collection: 'racks',
  argument,
  call: (io, flags, name) => withRacks(io, flags, (racks) => racks.deleteRack({ name })),
  show: showGone(RackSchema, 'deleted'),
});

/** All commands on racks. */
export const rackRoutes = buildRouteMap({
  routes: {
    create: createRack,
    get: getRack,
    list: listRacks,
    delete: deleteRack,
    'join-token': joinToken,
    revoke: revokeAgent,
    explain: explainRack,
    update: updateRack,
    freeze: freezeRack,
    thaw: thawRack,
    'accept-restored-store': acceptRestoredStore,
  },
  docs: { brief: briefs.rack },
});

/** "foreign-dhcp-server" */
function faultText({ status }: Rack): string {
  const words = (status?.faults ?? []).map(({ type }) => enumName('RackFaultType', type));
  return [...new Set(words)].join(', ');
}

function columns({ clock }: CommandIo, freezes: Freezes): TextColumn<Rack>[] {
  return [
    { title: 'NAME', value: ({ name }) => name },
    { title: 'AGENT', value: agentState },
    { title: 'FREEZE', value: freezes.ofRack, widthMin: 16 },
    {
      title: 'LAST SEEN',
      value: ({ status }) => ago(clock, status?.lastSeenTime),
      dropOrder: 1,
    },
    { title: 'FAULTS', value: faultText, widthMin: 12 },
    { title: 'VERSION', value: ({ status }) => status?.agentVersion ?? '', dropOrder: 2 },
    { title: 'DISPLAY NAME', value: ({ spec }) => spec?.displayName ?? '', widthMin: 12 },
  ];
}
