/** rackwright discovered … */
import { create } from '@bufbuild/protobuf';
import {
  type DiscoveredMachine,
  DiscoveredMachineSchema,
  DiscoveryService,
  type HostId,
  ListDiscoveredMachinesResponseSchema,
} from '@rackwright/messages';
import { buildCommand, buildRouteMap } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { parseLabels, requestFlag, resourceName, type SharedFlags } from '../../flags.ts';
import { isForPrograms, printAs, printFields, printLines, printTable } from '../../output/show.ts';
import type { TextColumn } from '../../output/table.ts';
import { ago } from '../../output/time.ts';
import { allPages, callsOf } from '../frame/calls.ts';
import {
  sharedAliases as aliases,
  oneCommand,
  sharedFlags as shared,
  showGone,
} from '../frame/frames.ts';
import { type SpecFlags, specFlags, specFrom } from '../host/spec.ts';

const collection = 'discoveredMachines';
const argument = ['machine', 'Id of the machine, as listed'] as const;

/** Calls DiscoveryService. */
export const withDiscovery = callsOf(DiscoveryService);

const list = buildCommand({
  docs: { brief: 'List machines that netbooted and are no hosts' },
  parameters: {
    flags: {
      ...shared,
      rack: { kind: 'parsed', parse: String, optional: true, brief: 'Only of this rack' },
    },
    aliases,
  },
  async func(this: CliContext, flags: SharedFlags & { rack?: string }) {
    const rack = flags.rack === undefined ? '' : resourceName('racks', flags.rack);
    const discoveredMachines = await withDiscovery(this.io, flags, (discovery) =>
      allPages(
        (pageToken) => discovery.listDiscoveredMachines({ pageToken, rack }),
        (page) => page.discoveredMachines,
      ),
    );
    if (isForPrograms(flags.output)) {
      const schema = ListDiscoveredMachinesResponseSchema;
      printAs(this.io, flags.output, schema, create(schema, { discoveredMachines }));
    } else {
      printTable(this.io, flags.output, columns(this.io), discoveredMachines);
    }
  },
});

const get = oneCommand({
  brief: 'Show the hardware of one of them, and why no rule has accepted it',
  collection,
  argument,
  call: (io, flags, name) =>
    withDiscovery(io, flags, (discovery) => discovery.getDiscoveredMachine({ name })),
  show,
});

const accept = buildCommand({
  docs: {
    brief: 'Make one of them a host',
    fullDescription:
      'Rack and boot MACs are the machine’s own, and the address of its BMC as well where it ' +
      'could be read in band. Its credential is always needed. What is accepted is shown; with ' +
      '--etag (as of `get -o json`) only if the listing has not changed.',
  },
  parameters: {
    flags: {
      ...shared,
      ...specFlags,
      ...requestFlag,
      etag: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'Only if the listing has this etag',
      },
    },
    positional: {
      kind: 'tuple',
      parameters: [
        { parse: String, brief: 'Id of the machine, as listed', placeholder: 'machine' },
        { parse: String, brief: 'Id of the host that it becomes', placeholder: 'host' },
      ],
    },
    aliases,
  },
  async func(
    this: CliContext,
    flags: SharedFlags & SpecFlags & { requestId: string; etag?: string },
    id: string,
    hostId: HostId,
  ) {
    const { spec } = specFrom(flags);
    const { requestId, etag = '' } = flags;
    const host = { spec, labels: parseLabels(flags.label ?? []) };
    const name = resourceName(collection, id);
    const made = await withDiscovery(this.io, flags, (discovery) =>
      discovery.acceptDiscoveredMachine({ name, hostId, host, requestId, etag }),
    );
    const { rack = '', bmc, bootMacs = [] } = made.spec ?? {};
    const taken = `of ${rack}, BMC ${bmc?.address ?? ''}, MACs ${bootMacs.join(' ')}`;
    printLines(this.io, [`${name} is ${made.name} now: ${taken}`]);
  },
});

const remove = oneCommand({
  brief: 'Drop one of them from the list; it comes back when it boots again',
  collection,
  argument,
  call: (io, flags, name) =>
    withDiscovery(io, flags, (discovery) => discovery.deleteDiscoveredMachine({ name })),
  show: showGone(DiscoveredMachineSchema, 'dropped'),
});

/** All commands on discovered machines. */
export const discoveredRoutes = buildRouteMap({
  routes: { list, get, accept, delete: remove },
  docs: { brief: briefs.discovered },
});

function columns({ clock }: CommandIo): TextColumn<DiscoveredMachine>[] {
  return [
    { title: 'ID', value: ({ name }) => name.replace(`${collection}/`, '') },
    { title: 'RACK', value: ({ rack }) => rack.replace('racks/', '') },
    { title: 'SERIAL', value: ({ inventory }) => inventory?.system?.serial ?? '' },
    { title: 'MAC', value: ({ bootMac }) => bootMac },
    { title: 'BMC', value: ({ bmcAddress }) => bmcAddress, dropOrder: 2 },
    { title: 'SEEN', value: ({ lastSeenTime }) => ago(clock, lastSeenTime), dropOrder: 1 },
    { title: 'NOT ACCEPTED', value: ({ notAccepted }) => notAccepted, widthMin: 20 },
  ];
}

function show(io: CommandIo, { output }: SharedFlags, machine: DiscoveredMachine): void {
  if (isForPrograms(output)) {
    printAs(io, output, DiscoveredMachineSchema, machine);
    return;
  }
  const { inventory, remarks } = machine;
  const { system, devices = [], interfaces = [], cpus = [], memoryBytes = 0n } = inventory ?? {};
  printFields(io, [
    ['name', machine.name],
    ['rack', machine.rack],
    ['identified by', machine.identifiedBy],
    ['first seen', ago(io.clock, machine.firstSeenTime)],
    ['last seen', ago(io.clock, machine.lastSeenTime)],
    ['boot MAC', machine.bootMac],
    ['BMC', machine.bmcAddress],
    ['manufacturer', system?.manufacturer ?? ''],
    ['product', system?.product ?? ''],
    ['serial', system?.serial ?? ''],
    ['UUID (raw)', Buffer.from(system?.uuid ?? []).toString('hex')],
    ['memory', `${memoryBytes / 1_048_576n} MiB`],
    ...cpus.map((cpu) => ['processor', `${cpu.model}, ${cpu.cores} cores`] as const),
    ...interfaces.map((each) => ['interface', `${each.name} ${each.mac}`] as const),
    ...devices.map(
      ({ device, model, serial, sizeBytes }) =>
        ['disk', `${device} ${model} ${serial} ${sizeBytes} bytes`] as const,
    ),
    ['not accepted', machine.notAccepted],
    ...remarks.map((remark) => ['remark', remark] as const),
  ]);
}
