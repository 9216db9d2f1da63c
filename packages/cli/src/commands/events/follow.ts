/** rackwright events: what changes, as it changes. */
import {
  EventService,
  WatchEventsResponse_Kind as Kind,
  type WatchEventsResponse,
  WatchEventsResponseSchema,
} from '@rackwright/messages';
import { buildCommand } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import { UsageError } from '../../failure.ts';
import { parseWhole, type SharedFlags, textFlag } from '../../flags.ts';
import { eventText } from '../../output/event.ts';
import { isForPrograms, printEvent, printLines } from '../../output/show.ts';
import { instant } from '../../output/time.ts';
import type { CliContext, World } from '../../world.ts';
import { callsOf } from '../frame/calls.ts';
import { sharedAliases, sharedFlags } from '../frame/frames.ts';
import { watchResumed } from '../frame/resumed-watch.ts';

interface EventsFlags extends SharedFlags {
  readonly follow: boolean;
  readonly filter?: string;
  readonly position?: string;
  readonly timeout?: number;
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
      'there: what is known of its subject is to be read again.',
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
      timeout: {
        kind: 'parsed',
        parse: parseWhole,
        optional: true,
        brief: 'End after this many seconds (14)',
        placeholder: 'seconds',
      },
    },
    aliases: sharedAliases,
  },
  async func(this: CliContext, flags: EventsFlags) {
    const { world } = this;
    if (!flags.follow) {
      throw new UsageError(
        'events come as they happen: give --follow. What has happened to a host before is in ' +
          '`rackwright host history HOST`, what people asked for in `rackwright audit list`',
      );
    }
    const { filter = '', position: first = '', timeout } = flags;
    const patience = { timeoutSeconds: timeout, late: () => `${timeout} s are over` };
    await withEvents(world, flags, (events) =>
      watchResumed(
        world,
        patience,
        (position, options) =>
          events.watchEvents({ filter, position: position === '' ? first : position }, options),
        (told) => print(world, flags, told),
      ),
    );
  },
});

/** Always false: the watch goes on. */
function print(world: World, { output }: EventsFlags, told: WatchEventsResponse): boolean {
  const { kind, event } = told;
  if (kind !== Kind.EVENT || event === undefined) return false;
  if (isForPrograms(output)) printEvent(world, output, WatchEventsResponseSchema, told);
  else printLines(world, [`${instant(event.time)}  ${eventText(event)}`]);
  return false;
}
