/** The filter fields of events. */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  EventTypeSchema,
  FailureTypeSchema,
  HostStateSchema,
  RunKindSchema,
  RunOutcomeSchema,
} from '@rackwright/messages';
import type { Filter, FilterFields } from '../filter/index.ts';
import type { TracedEvent } from './derive/derive.ts';

/** The fields of an event, for `WatchEventsRequest.filter`. */
export const eventFields: FilterFields<TracedEvent> = {
  type: { kind: 'choice', of: ({ event }) => event.type, choices: EventTypeSchema },
  subject: { kind: 'text', of: ({ event }) => event.subject },
  host: { kind: 'text', of: (event) => named(event, 'hosts/'), collection: 'hosts' },
  pool: { kind: 'text', of: (event) => named(event, 'pools/'), collection: 'pools' },
  rack: { kind: 'text', of: ({ event }) => event.rack, collection: 'racks' },
  labels: { kind: 'map', of: ({ labels }) => labels },
  actor: { kind: 'text', of: ({ event }) => event.actor },
  kind: { kind: 'choice', of: kindOf, choices: RunKindSchema },
  outcome: {
    kind: 'choice',
    of: ({ event: { data } }) => (data.case === 'runEnded' ? data.value.outcome : 0),
    choices: RunOutcomeSchema,
  },
  failure: { kind: 'choice', of: failureOf, choices: FailureTypeSchema },
  fault: { kind: 'text', of: faultOf },
  state: {
    kind: 'choice',
    of: ({ event: { data } }) => (data.case === 'hostStateChanged' ? data.value.to : 0),
    choices: HostStateSchema,
  },
  time: { kind: 'time', of: ({ event }) => event.time && timestampMs(event.time) },
};

function named({ event: { subject } }: TracedEvent, prefix: string): string {
  return subject.startsWith(prefix) ? subject : '';
}

function kindOf({ event: { data } }: TracedEvent): number {
  return data.case === 'runStarted' || data.case === 'runEnded' ? data.value.kind : 0;
}

function failureOf({ event: { data } }: TracedEvent): number {
  return data.case === 'runEnded' || data.case === 'workflowRunEnded' ? data.value.failure : 0;
}

function faultOf({ event: { data } }: TracedEvent): string {
  return data.case === 'faultRaised' || data.case === 'faultCleared' ? data.value.fault : '';
}

/** Whether a subscriber with this filter gets the event: every gap passes any filter. */
export function isWanted(
  filter: Pick<Filter<TracedEvent>, 'matches'>,
  event: TracedEvent,
): boolean {
  return event.event.data.case === 'gap' || filter.matches(event);
}
