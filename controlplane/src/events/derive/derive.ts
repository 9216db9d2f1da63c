/**
 * Events of one change of a stored record: a pure function of the record before and after it. Every
 * derivation gives the same events under the same ids.
 *
 * Must not: reveal a credential, a token or a sealed value. Their collections have no row.
 */
import { create, type DescMessage, fromBinary, type MessageShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type Event,
  EventSchema,
  EventType,
  GapReason,
  type Incarnation,
  store as wire,
} from '@rackwright/messages';
import type { Change, StoreRevision } from '@rackwright/store';
import type { EventContent, EventDraft, RecordChange } from './event-draft.ts';
import { hostEventsOf } from './host-events.ts';
import {
  abandonedEventsOf,
  certificateEventsOf,
  documentEventsOf,
  machineEventsOf,
  workflowEventsOf,
} from './other-events.ts';
import { poolEventsOf } from './pool-events.ts';
import { fleetEventsOf, rackEventsOf } from './rack-events.ts';

/** How the changes of one collection become events. */
interface Rule {
  readonly schema: DescMessage;
  /** Segments of a key. */
  readonly segments: number;
  /** Records are never changed after their creation: there is no earlier value. */
  readonly createOnly: boolean;
  readonly steps: (step: RecordChange<unknown>) => EventDraft;
}

function rule<D extends DescMessage>(
  schema: D,
  segments: number,
  steps: (step: RecordChange<MessageShape<D>>) => EventDraft,
  { createOnly = false }: { readonly createOnly?: boolean } = {},
): Rule {
  return { schema, segments, createOnly, steps: steps as Rule['steps'] };
}

/** By the first segment of the keys: a collection without a row has no events. */
const rules = {
  hosts: rule(wire.HostRecordSchema, 2, hostEventsOf),
  racks: rule(wire.RackRecordSchema, 2, rackEventsOf),
  fleet: rule(wire.FleetRecordSchema, 2, fleetEventsOf),
  pools: rule(wire.PoolRecordSchema, 2, poolEventsOf),
  workflows: rule(wire.WorkflowRecordSchema, 3, workflowEventsOf),
  discoveredMachines: rule(wire.DiscoveredMachineRecordSchema, 2, machineEventsOf),
  erasureCertificates: rule(wire.CertificateRecordSchema, 3, certificateEventsOf, {
    createOnly: true,
  }),
  erasureDocuments: rule(wire.ErasureDocumentRecordSchema, 3, documentEventsOf, {
    createOnly: true,
  }),
  abandonedResources: rule(wire.AbandonedRecordSchema, 2, abandonedEventsOf),
} as const;

export type EventCollection = keyof typeof rules;

export const eventCollections = Object.keys(rules) as readonly EventCollection[];

export function isEventCollection(name: string): name is EventCollection {
  return Object.hasOwn(rules, name);
}

/** Whether a key of this collection belongs to records with events. */
export function isEventSource(collection: EventCollection, key: string): boolean {
  return key.split('.').length === rules[collection].segments;
}

/** Whether records of the collection never have an earlier value. */
export function isCreateOnly(collection: EventCollection): boolean {
  return rules[collection].createOnly;
}

/** An event, with the filter fields that are not part of it. */
export interface TracedEvent {
  readonly event: Event;
  /** Labels of the host that the event is about. */
  readonly labels: Readonly<Record<string, string>>;
}

/** A record before a change: absent, `gone` from the store's history, or its value. */
export type Before = 'absent' | 'gone' | { readonly value: Uint8Array };

const noLabels = {};

/** The events of one change, in order. Never throws: a change that cannot be read makes a gap. */
export function eventsOf(
  incarnation: Incarnation,
  collection: EventCollection,
  change: Change,
  before: Before,
): readonly TracedEvent[] {
  const { schema, steps } = rules[collection];
  const segments = change.key.split('.');
  if (before === 'gone') return [gapOf(incarnation, change, GapReason.COMPACTED)];
  let draft: EventDraft;
  try {
    const was = before === 'absent' ? undefined : fromBinary(schema, before.value);
    const is = change.kind === 'put' ? fromBinary(schema, change.value) : undefined;
    draft = steps({ segments, before: was, after: is });
  } catch {
    // One change must not stop a feed for ever, whether its record or this code is at fault. The
    // consumers get a gap with its reason in place of the events.
    return [gapOf(incarnation, change, GapReason.UNREADABLE)];
  }
  const { contents, labels = noLabels } = draft;
  return contents.map((content, index) => ({
    event: eventOf(incarnation, change, draft, content, index),
    labels,
  }));
}

function eventOf(
  incarnation: Incarnation,
  { revision, atMs }: Pick<Change, 'revision' | 'atMs'>,
  draft: EventDraft,
  content: EventContent,
  index: number,
): Event {
  const { subject, rack = '', actor = '', cause = '', traceParent = '' } = draft;
  const time = draft.time ?? (atMs === undefined ? undefined : timestampFromMs(atMs));
  return create(EventSchema, {
    id: `${incarnation}_${revision}_${draft.position ?? index}`,
    type: typeOf(content.case),
    ...{ subject, rack, actor, cause, traceParent },
    ...(time === undefined ? {} : { time }),
    sequence: sequenceOf(revision, index),
    data: content,
  });
}

/** "HOST_STATE_CHANGED" from `hostStateChanged`: types and data have the same names. */
function typeOf(name: EventContent['case']): EventType {
  const word = name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
  return EventType[word as keyof typeof EventType] ?? EventType.UNSPECIFIED;
}

const revisionDigits = 16;
const indexDigits = 4;

function sequenceOf(revision: StoreRevision, index: number): string {
  const position = String(index).padStart(indexDigits, '0');
  return `${String(revision).padStart(revisionDigits, '0')}-${position}`;
}

/** The event for a change whose earlier value is unknown. */
export function gapOf(
  incarnation: Incarnation,
  change: Pick<Change, 'key' | 'revision' | 'atMs'>,
  reason: GapReason,
): TracedEvent {
  const [collection = '', id = ''] = change.key.split('.');
  // The subject of a record below a host is the host.
  const name = collection === 'workflows' ? 'hosts' : collection;
  const isNamed = id !== '' && collection !== 'fleet';
  // Differs from the events of the same revision, and from gaps of other collections at it.
  const at = eventCollections.findIndex((each) => each === collection);
  const position = isNamed ? 'gap' : `gap-${reason}-${at}`;
  const draft = { subject: isNamed ? `${name}/${id}` : collection, contents: [], position };
  const content = { case: 'gap', value: { reason } } as const;
  return { event: eventOf(incarnation, change, draft, content, 0), labels: noLabels };
}
