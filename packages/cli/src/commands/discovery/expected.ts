/** rackwright expected … */
import {
  type BmcEndpoint,
  type ExpectedHost,
  ExpectedHostSchema,
  type HostId,
  ListExpectedHostsResponseSchema,
} from '@rackwright/messages';
import { buildCommand, buildRouteMap } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import type { CliContext, CommandIo } from '../../command-io.ts';
import {
  idArgument,
  parseLabels,
  requestFlag,
  resourceName,
  type SharedFlags,
} from '../../flags.ts';
import { isForPrograms, printAs, printFields } from '../../output/show.ts';
import type { TextColumn } from '../../output/table.ts';
import { labelText } from '../../output/text.ts';
import { ago } from '../../output/time.ts';
import { allPages } from '../frame/calls.ts';
import {
  sharedAliases as aliases,
  listCommand,
  oneCommand,
  sharedFlags as shared,
  showGone,
} from '../frame/frames.ts';
import { type SpecFlags, specFlags, specFrom } from '../host/spec.ts';
import { withDiscovery } from './discovered.ts';
import { importExpected } from './import.ts';

const collection = 'expectedHosts';
const argument = ['host', 'Id of the host to come'] as const;
const positional = idArgument(...argument);

interface CreateFlags extends SharedFlags, SpecFlags {
  readonly rack: string;
  readonly serial?: string;
  readonly matchMac?: string;
  readonly matchBmc?: string;
  readonly requestId: string;
}

const text = { kind: 'parsed', parse: String, optional: true } as const;

const createExpected = buildCommand({
  docs: {
    brief: 'Say that a machine will come, and what host it shall be',
    fullDescription:
      'The machine is known by --serial, --match-mac and --match-bmc; all that are given must ' +
      'match. Boot MACs and the address of the BMC are the machine’s own where they are not given.',
  },
  parameters: {
    flags: {
      ...shared,
      ...specFlags,
      rack: { kind: 'parsed', parse: String, brief: 'Rack that it will be in', placeholder: 'id' },
      serial: { ...text, brief: 'Its serial number', placeholder: 'serial' },
      matchMac: { ...text, brief: 'MAC address of one of its interfaces', placeholder: 'mac' },
      matchBmc: { ...text, brief: 'Address of its BMC, read in band', placeholder: 'address' },
      ...requestFlag,
    },
    positional,
    aliases,
  },
  async func(this: CliContext, flags: CreateFlags, expectedHostId: HostId) {
    const { spec } = specFrom(flags);
    const expectedHost = {
      match: {
        serial: flags.serial ?? '',
        mac: (flags.matchMac ?? '').toLowerCase().replaceAll('-', ':'),
        bmcAddress: flags.matchBmc ?? '',
      },
      labels: parseLabels(flags.label ?? []),
      spec: { ...spec, rack: resourceName('racks', flags.rack) },
    };
    const { requestId } = flags;
    const made = await withDiscovery(this.io, flags, (discovery) =>
      discovery.createExpectedHost({ expectedHostId, expectedHost, requestId }),
    );
    show(this.io, flags, made);
  },
});

const get = oneCommand({
  brief: 'Show one expected host',
  collection,
  argument,
  call: (io, flags, name) =>
    withDiscovery(io, flags, (discovery) => discovery.getExpectedHost({ name })),
  show,
});

const list = listCommand({
  brief: 'List the hosts that are expected, and those that have come',
  read: (io, flags) =>
    withDiscovery(io, flags, (discovery) =>
      allPages(
        (pageToken) => discovery.listExpectedHosts({ pageToken }),
        (page) => page.expectedHosts,
      ),
    ),
  schema: ListExpectedHostsResponseSchema,
  answer: (expectedHosts) => ({ expectedHosts }),
  columns,
});

const remove = oneCommand({
  brief: 'Stop expecting a host; one that has come stays',
  collection,
  argument,
  call: (io, flags, name) =>
    withDiscovery(io, flags, (discovery) => discovery.deleteExpectedHost({ name })),
  show: showGone(ExpectedHostSchema, 'is expected no more'),
});

/** All commands on expected hosts. */
export const expectedRoutes = buildRouteMap({
  routes: { create: createExpected, list, get, delete: remove, import: importExpected },
  docs: { brief: briefs.expected },
});

function columns({ clock }: CommandIo): TextColumn<ExpectedHost>[] {
  return [
    { title: 'HOST', value: ({ name }) => name.replace(`${collection}/`, '') },
    { title: 'RACK', value: ({ spec }) => (spec?.rack ?? '').replace('racks/', '') },
    { title: 'SERIAL', value: ({ match }) => match?.serial ?? '' },
    { title: 'MAC', value: ({ match }) => match?.mac ?? '', dropOrder: 2 },
    { title: 'BMC', value: ({ match }) => match?.bmcAddress ?? '', dropOrder: 3 },
    { title: 'CAME', value: ({ acceptTime }) => ago(clock, acceptTime), dropOrder: 1 },
    { title: 'CONFLICT', value: ({ conflict }) => conflict, widthMin: 12 },
  ];
}

function endpointText(bmc: BmcEndpoint | undefined): string {
  const { address = '', port, credential = '' } = bmc ?? {};
  return `${address}${port === undefined ? '' : `:${port}`} by ${credential}`;
}

function show(io: CommandIo, { output }: SharedFlags, line: ExpectedHost): void {
  if (isForPrograms(output)) {
    printAs(io, output, ExpectedHostSchema, line);
    return;
  }
  const { match, spec } = line;
  printFields(io, [
    ['name', line.name],
    ['serial', match?.serial ?? ''],
    ['MAC', match?.mac ?? ''],
    ['BMC', match?.bmcAddress ?? ''],
    ['rack', spec?.rack ?? ''],
    ['labels', labelText(line.labels)],
    ['its BMC', endpointText(spec?.bmc)],
    ['boot MACs', spec?.bootMacs.join(' ') ?? ''],
    ['came', ago(io.clock, line.acceptTime)],
    ['host', line.host],
    ['conflict', line.conflict],
  ]);
}
