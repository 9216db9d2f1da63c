/**
 * An event as a CloudEvent: specification 1.0.2 with its JSON format, and the extensions
 * `traceparent` (Distributed Tracing), `sequence` and `partitionkey`.
 */
import type { DescMessage } from '@bufbuild/protobuf';
import { type JsonValue, toJson } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import { type Event, EventSchema, type Incarnation } from '@rackwright/messages';

/** Of a CloudEvent in structured mode. */
export const cloudEventMediaType = 'application/cloudevents+json';

/** The CloudEvent as JSON; `incarnation` of the store names its source. */
export function cloudEventOf(
  incarnation: Incarnation,
  event: Event,
): { readonly [name: string]: JsonValue } {
  const { id, subject, time, traceParent, sequence, actor, cause, rack, data } = event;
  const schema = schemaOf(event);
  const optional = { traceparent: traceParent, actor, cause, rack };
  const set = Object.entries(optional).filter(([, value]) => value !== '');
  return {
    specversion: '1.0',
    id,
    source: `/rackwright/stores/${incarnation}`,
    type: schema.typeName,
    subject,
    ...(time === undefined ? {} : { time: toJson(TimestampSchema, time) }),
    datacontenttype: 'application/json',
    // As google.protobuf.Any names a message; a URL without a scheme means https.
    dataschema: `https://type.googleapis.com/${schema.typeName}`,
    ...{ sequence, partitionkey: subject },
    ...Object.fromEntries(set),
    data: data.value === undefined ? {} : toJson(schema, data.value),
  };
}

/** The message that is the event's data. */
export function schemaOf({ data }: Pick<Event, 'data'>): DescMessage {
  const fields = EventSchema.oneofs.flatMap((oneof) => oneof.fields);
  const schema = fields.find(({ localName }) => localName === data.case)?.message;
  if (schema === undefined) throw new Error('an event without data');
  return schema;
}
