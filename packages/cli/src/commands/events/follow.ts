/** rackwright events: changes as they happen; or past events about one subject. */
import { create } from '@bufbuild/protobuf';
import {
  EventService,
  WatchEventsResponse_Kind as Kind,
  ListEventsResponseSchema,
  type WatchEventsResponse,
  WatchEventsResponseSchema,
} from '@rackwright/messages';
import { buildCommand } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import { parseWhole, type SharedFlags, textFlag } from '../../flags.ts';
import { eventText } from '../../output/event.ts';
import { isForPrograms, printAs, printEvent, printLines } from '../../output/show.ts';
import { instant } from '../../output/time.ts';
import { callsOf } from '../frame/calls.ts';
import { sharedAliases, sharedFlags } from '../frame/frames.ts';
import { pagesUntil, rangeFlags } from '../frame/past-time.ts';
import { watchResumed } from '../frame/resumed-watch.ts';

interface EventsFlags extends SharedFlags {
  readonly follow: boolean;
  readonly filter?: string;
  readonly position?: string;
  readonly timeout?: number;
  readonly limit: number;
}

const withEvents = callsOf(EventService);

/** The command. */
export const followEvents = buildCommand({
  docs: {
    brief: briefs.events,
    fullDescription:
      'Print each change of hosts, racks, pools and what belongs to them, as it comes.\n\n' +
      'A line has when, about what, the type, and what it says. With -o json each line is an ' +
      'event with the position behind it; --position goes on behind that one, so that a ' +
      'program that was stopped misses nothing. An event gap says that changes may be missing ' +
      'there: what is known of its subject is to be read again.\n\n' +
      'Without --follow: what has happened to a host, a rack, a pool or the fleet, newest first, ' +
      'as far back as it is kept.',
  },
  parameters: {
    flags: {
      ...sharedFlags,
      follow: { kind: 'boolean', default: false, brief: 'Print events as they come' },
      filter: textFlag(
        'Only events that match, as type = run-ended AND outcome = failed',
        'filter',
      ),
      position: textFlag('Go on behind the event that had this position', 'position'),
      limit: { ...rangeFlags.limit, brief: 'Without --follow: at most so many, the newest' },
      timeout: {
        kind: 'parsed',
        parse: parseWhole,
        optional: true,
        brief: 'End after this many seconds (14)',
        placeholder: 'seconds',
      },
    },
    positional: {
      kind: 'tuple',
      parameters: [
        {
          parse: String,
          brief: 'Of what, as hosts/h1, racks/r1, pools/web or fleet; with --follow of all',
          placeholder: 'subject',
          optional: true,
        },
      ],
    },
    aliases: sharedAliases,
  },
  async func(this: CliContext, flags: EventsFlags, subject?: string) {
    const { io } = this;
    if (!flags.follow) return showPast(io, flags, subject);
    const { position: first = '', timeout } = flags;
    const filter = filterAbout(subject, flags.filter);
    const patience = { timeoutSeconds: timeout, late: () => `${timeout} s are over` };
    await withEvents(io, flags, (events) =>
      watchResumed(
        io,
        patience,
        (position, options) =>
          events.watchEvents({ filter, position: position === '' ? first : position }, options),
        (response) => print(io, flags, response),
      ),
    );
  },
});

/** The newest first, as `host history` has them. */
async function showPast(io: CommandIo, flags: EventsFlags, subject = ''): Promise<void> {
  const { filter = '', limit, position, timeout } = flags;
  if (subject === '' || position !== undefined || timeout !== undefined) {
    throw new UsageError(
      'events come as they happen: give --follow. Or say of what the past is asked for, as ' +
        '`rackwright events hosts/h1`',
    );
  }
  const { items: events, more } = await withEvents(io, flags, (client) =>
    pagesUntil(
      limit,
      (pageToken, pageSize) => client.listEvents({ subject, filter, pageToken, pageSize }),
      (page) => page.events,
    ),
  );
  if (isForPrograms(flags.output)) {
    printAs(
      io,
      flags.output,
      ListEventsResponseSchema,
      create(ListEventsResponseSchema, { events }),
    );
  } else {
    printLines(
      io,
      events.map((event) => `${instant(event.time)}  ${eventText(event)}`),
    );
  }
  if (more) io.err.write('There is more: give a higher --limit.\n');
}

/** The filter for events about this subject; the server judges both. */
function filterAbout(subject: string | undefined, filter = ''): string {
  if (subject === undefined) return filter;
  const about = `subject = ${JSON.stringify(subject)}`;
  return filter === '' ? about : `${about} AND (${filter})`;
}

/** Always false: the watch goes on. */
function print(io: CommandIo, { output }: EventsFlags, response: WatchEventsResponse): boolean {
  const { kind, event } = response;
  if (kind !== Kind.EVENT || event === undefined) return false;
  if (isForPrograms(output)) printEvent(io, output, WatchEventsResponseSchema, response);
  else printLines(io, [`${instant(event.time)}  ${eventText(event)}`]);
  return false;
}
