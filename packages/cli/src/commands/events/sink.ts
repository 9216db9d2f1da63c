/** rackwright sink …: where events are delivered to. */

import { create } from '@bufbuild/protobuf';
import {
  type DeadLetter,
  type EventSink,
  EventSinkSchema,
  EventSinkService,
  ListDeadLettersResponseSchema,
  ListEventSinksResponseSchema,
} from '@rackwright/messages';
import { buildCommand, buildRouteMap } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import { idArgument, requestFlag, resourceName, type SharedFlags, textFlag } from '../../flags.ts';
import { eventText } from '../../output/event.ts';
import { isForPrograms, printAs, printFields, printLines, printTable } from '../../output/show.ts';
import type { TextColumn } from '../../output/table.ts';
import { ago, instant } from '../../output/time.ts';
import { allPages, callsOf } from '../frame/calls.ts';
import {
  sharedAliases as aliases,
  listCommand,
  oneCommand,
  sharedFlags as shared,
  showGone,
} from '../frame/frames.ts';

const argument = ['sink', 'Id of the sink'] as const;
const positional = idArgument(...argument);
const collection = 'eventSinks';
const withSinks = callsOf(EventSinkService);

interface SpecFlags extends SharedFlags {
  readonly url?: string;
  readonly nats?: boolean;
  readonly credential?: string;
  readonly filter?: string;
  readonly paused?: boolean;
}

const specFlags = {
  url: textFlag(
    'URL of the webhook; the fleet has to allow it (fleet update --webhook-url)',
    'url',
  ),
  credential: textFlag(
    'Credential whose password signs: whsec_ and base64 of 24 to 64 random bytes',
    'credential',
  ),
  nats: {
    kind: 'boolean',
    optional: true,
    brief: 'To subjects of the NATS server that the store is on, instead of a URL',
  },
  filter: textFlag('Only events that match, as those of `rackwright events --follow`', 'filter'),
  paused: { kind: 'boolean', optional: true, brief: 'Deliver nothing until --no-paused' },
} as const;

/** A sink's fields in the flags, and the paths of the fields that they set. */
function specOf({ url, nats, credential, filter, paused }: SpecFlags) {
  const value = {
    url: url ?? '',
    credential: credential === undefined ? '' : resourceName('credentials', credential),
  };
  const paths = [
    ...(nats === true ? ['spec.nats'] : []),
    ...(url === undefined ? [] : ['spec.webhook.url']),
    ...(credential === undefined ? [] : ['spec.webhook.credential']),
    ...(filter === undefined ? [] : ['spec.filter']),
    ...(paused === undefined ? [] : ['spec.paused']),
  ];
  const target =
    nats === true ? ({ case: 'nats', value: {} } as const) : ({ case: 'webhook', value } as const);
  return { spec: { target, filter: filter ?? '', paused: paused === true }, paths };
}

/** Throws `UsageError`. */
function checkTarget({ url, nats, credential }: SpecFlags): void {
  const isWebhook = url !== undefined && credential !== undefined;
  const isNats = url === undefined && credential === undefined;
  if (nats === true ? isNats : isWebhook) return;
  throw new UsageError('a sink needs --url and --credential, or --nats alone');
}

const createSink = buildCommand({
  docs: {
    brief: 'Deliver events to a webhook, or to NATS, from now on',
    fullDescription:
      'Deliver events to a webhook, or to subjects of the NATS server that the store is on, ' +
      'from now on: each at least once, those of one host in order.\n\n' +
      'Each is a CloudEvent, sent by POST and signed as the Standard Webhooks specification ' +
      'says. What the receiver does not take is tried again; `sink dead` lists what was given up.',
  },
  parameters: { flags: { ...shared, ...specFlags, ...requestFlag }, positional, aliases },
  async func(this: CliContext, flags: SpecFlags & { readonly requestId: string }, id: string) {
    checkTarget(flags);
    const { requestId } = flags;
    const eventSink = { spec: specOf(flags).spec };
    const made = await withSinks(this.io, flags, (sinks) =>
      sinks.createEventSink({ eventSinkId: id, eventSink, requestId }),
    );
    show(this.io, flags, made);
  },
});

const updateSink = buildCommand({
  docs: { brief: 'Change the target or the selection; undelivered events go to the new target' },
  parameters: { flags: { ...shared, ...specFlags }, positional, aliases },
  async func(this: CliContext, flags: SpecFlags, id: string) {
    const { spec, paths } = specOf(flags);
    if (paths.length === 0) {
      throw new UsageError(
        'nothing to change: give --url, --nats, --credential, --filter, --paused or --no-paused',
      );
    }
    const eventSink = { name: resourceName(collection, id), spec };
    const updated = await withSinks(this.io, flags, (sinks) =>
      sinks.updateEventSink({ eventSink, updateMask: { paths } }),
    );
    show(this.io, flags, updated);
  },
});

const listSinks = listCommand({
  brief: 'List sinks, and the state of their deliveries',
  read: (io, flags) =>
    withSinks(io, flags, (sinks) =>
      allPages(
        (pageToken) => sinks.listEventSinks({ pageToken }),
        (page) => page.eventSinks,
      ),
    ),
  schema: ListEventSinksResponseSchema,
  answer: (eventSinks) => ({ eventSinks }),
  columns,
});

const getSink = oneCommand({
  brief: 'Show a sink, and the state of its deliveries',
  ...{ collection, argument, show },
  call: (io, flags, name) => withSinks(io, flags, (sinks) => sinks.getEventSink({ name })),
});

const deleteSink = oneCommand({
  brief: 'Deliver nothing more, and drop what was not delivered',
  ...{ collection, argument },
  call: (io, flags, name) => withSinks(io, flags, (sinks) => sinks.deleteEventSink({ name })),
  show: showGone(EventSinkSchema, 'deleted'),
});

const listDead = buildCommand({
  docs: { brief: 'List the events that were given up, and why' },
  parameters: { flags: shared, positional, aliases },
  async func(this: CliContext, flags: SharedFlags, id: string) {
    const { io } = this;
    const parent = resourceName(collection, id);
    const deadLetters = await withSinks(io, flags, (sinks) =>
      allPages(
        (pageToken) => sinks.listDeadLetters({ parent, pageToken }),
        (page) => page.deadLetters,
      ),
    );
    if (isForPrograms(flags.output)) {
      const schema = ListDeadLettersResponseSchema;
      printAs(io, flags.output, schema, create(schema, { deadLetters }));
      return;
    }
    printTable(io, flags.output, deadColumns, deadLetters);
  },
});

const deadColumns: TextColumn<DeadLetter>[] = [
  { title: 'GIVEN UP', value: ({ time }) => instant(time) },
  { title: 'ID', value: ({ event }) => event?.id ?? '' },
  { title: 'EVENT', value: ({ event }) => (event ? eventText(event) : ''), widthMin: 20 },
  { title: 'TRIED', value: ({ attempts }) => String(attempts), dropOrder: 2 },
  { title: 'WHY', value: ({ problem }) => problem, widthMin: 20, dropOrder: 1 },
];

const events = {
  kind: 'parsed',
  parse: String,
  variadic: true,
  optional: true,
  brief: 'Id of an event; may be repeated',
  placeholder: 'id',
} as const;

interface LetterFlags extends SharedFlags {
  readonly event?: readonly string[];
  readonly all?: boolean;
}

const letterFlags = {
  ...shared,
  event: events,
  all: { kind: 'boolean', optional: true, brief: 'All that are there' },
} as const;

/** Ids of events, or "-" for all. Throws `UsageError`. */
function chosen({ event = [], all }: LetterFlags): string[] {
  if (event.length > 0 === (all === true)) throw new UsageError('give --event or --all');
  return all === true ? ['-'] : [...event];
}

const replayDead = buildCommand({
  docs: { brief: 'Deliver events once more that were given up; one that fails again stays' },
  parameters: { flags: letterFlags, positional, aliases },
  async func(this: CliContext, flags: LetterFlags, id: string) {
    const request = { name: resourceName(collection, id), events: chosen(flags) };
    const { count } = await withSinks(this.io, flags, (sinks) => sinks.replayDeadLetters(request));
    printLines(this.io, [`events that are delivered once more: ${count}`]);
  },
});

const dropDead = buildCommand({
  docs: { brief: 'Forget events that were given up' },
  parameters: { flags: letterFlags, positional, aliases },
  async func(this: CliContext, flags: LetterFlags, id: string) {
    const request = { name: resourceName(collection, id), events: chosen(flags) };
    const { count } = await withSinks(this.io, flags, (sinks) => sinks.dropDeadLetters(request));
    printLines(this.io, [`events that are forgotten: ${count}`]);
  },
});

/** All commands on sinks. */
export const sinkRoutes = buildRouteMap({
  routes: {
    create: createSink,
    update: updateSink,
    list: listSinks,
    get: getSink,
    delete: deleteSink,
    dead: listDead,
    replay: replayDead,
    drop: dropDead,
  },
  docs: { brief: briefs.sink },
});

function targetText({ spec }: EventSink): string {
  switch (spec?.target.case) {
    case 'webhook':
      return spec.target.value.url;
    case 'nats':
      return 'NATS';
    case undefined:
      return '';
  }
}

function fares({ spec, status }: EventSink): string {
  if (spec?.paused === true) return 'paused';
  if (status === undefined) return '';
  return status.problemSince === undefined ? 'delivers' : status.problem;
}

function show(io: CommandIo, { output }: SharedFlags, sink: EventSink): void {
  if (isForPrograms(output)) {
    printAs(io, output, EventSinkSchema, sink);
    return;
  }
  const { spec, status } = sink;
  const signs = spec?.target.case === 'webhook' ? spec.target.value.credential : '';
  printFields(io, [
    ['name', sink.name],
    ['to', targetText(sink)],
    ['signed by', signs],
    ['filter', spec?.filter || 'all events'],
    ['state', fares(sink)],
    ['since', instant(status?.problemSince)],
    ['last delivery', instant(status?.lastDeliveryTime)],
    ['dead letters', String(status?.deadLetters ?? 0)],
  ]);
}

function columns({ clock }: CommandIo): TextColumn<EventSink>[] {
  return [
    { title: 'NAME', value: ({ name }) => name },
    { title: 'TO', value: targetText, widthMin: 12 },
    { title: 'STATE', value: fares, widthMin: 12 },
    { title: 'DEAD', value: ({ status }) => String(status?.deadLetters ?? 0), dropOrder: 1 },
    {
      title: 'DELIVERED',
      value: ({ status }) => ago(clock, status?.lastDeliveryTime),
      dropOrder: 2,
    },
  ];
}
