/** The result of deriving events from one change of a record. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import type { EventSchema, RackName } from '@rackwright/messages';

/** The data of one event: a closed list, by the cases of `Event.data`. */
export type EventContent = Exclude<
  NonNullable<MessageInitShape<typeof EventSchema>['data']>,
  { case: undefined }
>;

/** One change of a record; `undefined` stands for an absent record. */
export interface RecordChange<R> {
  /** The key of the record, by its segments. */
  readonly segments: readonly string[];
  readonly before: R | undefined;
  readonly after: R | undefined;
}

/** The events of one change, before they get their ids. */
export interface EventDraft {
  /** "hosts/HOST" */
  readonly subject: string;
  /** "racks/RACK"; empty: of no rack. */
  readonly rack?: RackName;
  /** Labels of the host that the event is about. */
  readonly labels?: Readonly<Record<string, string>>;
  /** The time in the record; unset: the time at which the store accepted the change. */
  readonly time?: Timestamp | undefined;
  readonly actor?: string | undefined;
  readonly cause?: string | undefined;
  readonly traceParent?: string;
  /** The end of the id; unset: the index among the contents. */
  readonly position?: string;
  /** Each an event, in an order that never changes for the same change. */
  readonly contents: readonly EventContent[];
}

/** The items of `after` that are not in `before`, by their keys. */
export function added<T>(
  before: readonly T[],
  after: readonly T[],
  keyOf: (item: T) => string,
): readonly T[] {
  const known = new Set(before.map(keyOf));
  return after.filter((item) => !known.has(keyOf(item)));
}
