/** rackwright abandoned … */
import { create } from '@bufbuild/protobuf';
import {
  type AbandonedResource,
  AbandonedResourceSchema,
  AbandonedResourceService,
  ListAbandonedResourcesResponseSchema,
} from '@rackwright/messages';
import { buildCommand, buildRouteMap } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import type { CliContext, CommandIo } from '../../command-io.ts';
import {
  connectionFlags,
  idArgument,
  outputFlag,
  resourceName,
  type SharedFlags,
} from '../../flags.ts';
import { isForPrograms, printAs, printFields, printTable } from '../../output/show.ts';
import type { TextColumn } from '../../output/table.ts';
import { ago } from '../../output/time.ts';
import { allPages, callsOf } from '../frame/calls.ts';

const collection = 'abandonedResources';
const shared = { ...connectionFlags, ...outputFlag };
const aliases = { o: 'output' } as const;
const positional = idArgument('uid', 'Uid of the host that was removed by force');

const withAbandoned = callsOf(AbandonedResourceService);

const list = buildCommand({
  docs: { brief: 'List what forced removals left behind' },
  parameters: {
    flags: {
      ...shared,
      resolved: { kind: 'boolean', default: false, brief: 'Also what has been resolved' },
    },
    aliases,
  },
  async func(this: CliContext, flags: SharedFlags & { resolved: boolean }) {
    const showResolved = flags.resolved;
    const abandonedResources = await withAbandoned(this.io, flags, (abandoned) =>
      allPages(
        (pageToken) => abandoned.listAbandonedResources({ pageToken, showResolved }),
        (page) => page.abandonedResources,
      ),
    );
    if (isForPrograms(flags.output)) {
      const schema = ListAbandonedResourcesResponseSchema;
      printAs(this.io, flags.output, schema, create(schema, { abandonedResources }));
    } else {
      printTable(this.io, flags.output, columns(this.io), abandonedResources);
    }
  },
});

const get = buildCommand({
  docs: { brief: 'Show what one forced removal left behind' },
  parameters: { flags: shared, positional, aliases },
  async func(this: CliContext, flags: SharedFlags, uid: string) {
    const name = resourceName(collection, uid);
    const left = await withAbandoned(this.io, flags, (abandoned) =>
      abandoned.getAbandonedResource({ name }),
    );
    show(this.io, flags, left);
  },
});

const resolve = buildCommand({
  docs: { brief: 'Say that somebody has seen to it' },
  parameters: {
    flags: {
      ...shared,
      reason: { kind: 'parsed', parse: String, brief: 'What was done about it, one line' },
      physicallyDisconnected: {
        kind: 'boolean',
        default: false,
        brief: 'The machine can reach nothing any more: the fence is lifted without the agent',
      },
    },
    positional,
    aliases,
  },
  async func(
    this: CliContext,
    flags: SharedFlags & { reason: string; physicallyDisconnected: boolean },
    uid: string,
  ) {
    const name = resourceName(collection, uid);
    const { reason, physicallyDisconnected } = flags;
    const left = await withAbandoned(this.io, flags, (abandoned) =>
      abandoned.resolveAbandonedResource({ name, reason, physicallyDisconnected }),
    );
    show(this.io, flags, left);
  },
});

/** All commands about the remains of forced removals. */
export const abandonedRoutes = buildRouteMap({
  routes: { list, get, resolve },
  docs: { brief: briefs.abandoned },
});

function columns({ clock }: CommandIo): TextColumn<AbandonedResource>[] {
  return [
    { title: 'UID', value: ({ hostUid }) => hostUid },
    { title: 'HOST', value: ({ host }) => host.replace(/^hosts\//, '') },
    { title: 'RACK', value: ({ rack }) => rack.replace(/^racks\//, ''), dropOrder: 2 },
    { title: 'REMOVED', value: ({ createTime }) => ago(clock, createTime), dropOrder: 1 },
    { title: 'FENCE', value: fenceText },
    { title: 'LEFT BEHIND', value: ({ leftBehind }) => leftBehind.join('; '), widthMin: 20 },
  ];
}

function fenceText({ fencePending }: AbandonedResource): string {
  return fencePending ? 'pending' : 'lifted';
}

function show(io: CommandIo, { output }: SharedFlags, left: AbandonedResource): void {
  if (isForPrograms(output)) {
    printAs(io, output, AbandonedResourceSchema, left);
    return;
  }
  const { resolution, bootMacs, leftBehind } = left;
  const disconnected = resolution?.physicallyDisconnected ? ' (physically disconnected)' : '';
  printFields(io, [
    ['name', left.name],
    ['host', left.host],
    ['rack', left.rack],
    ['BMC', left.bmcAddress],
    ['boot MACs', bootMacs.join(' ')],
    ['removed', `${ago(io.clock, left.createTime)} by ${left.removedBy}`],
    ['reason', left.reason],
    ['fence', fenceText(left)],
    ...leftBehind.map((line, index) => [index === 0 ? 'left behind' : '', line] as const),
    [
      'resolved',
      resolution === undefined
        ? ''
        : `${ago(io.clock, resolution.at)} by ${resolution.by}${disconnected}: ` +
          resolution.reason,
    ],
  ]);
}
