/** What the derivation of events says of one change of a record. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import type { EventSchema, RackName } from '@rackwright/messages';

/** The data of one event: a closed list, by the cases of `Event.data`. */
export type EventContent = Exclude<
  NonNullable<MessageInitShape<typeof EventSchema>['data']>,
  { case: undefined }
>;

/** One change of a record; `undefined` stands for a record that is not there. */
export interface Step<R> {
  /** The key of the record, by its segments. */
  readonly segments: readonly string[];
  readonly before: R | undefined;
  readonly after: R | undefined;
}

/** What one change of a record comes to. */
export interface EventDraft {
  /** "hosts/HOST" */
  readonly subject: string;
  /** "racks/RACK"; empty: it is of none. */
  readonly rack?: RackName;
  /** Labels of the host that it is about. */
  readonly labels?: Readonly<Record<string, string>>;
  /** When the record says that it was; unset: when the store took it. */
  readonly time?: Timestamp | undefined;
  readonly actor?: string | undefined;
  readonly cause?: string | undefined;
  readonly traceParent?: string;
  /** Ends the id; unset: the place of each among the contents. */
  readonly place?: string;
  /** Each an event, in an order that never changes for the same change. */
  readonly contents: readonly EventContent[];
}

/** What is in `after` and not in `before`, by what each is known by. */
export function added<T>(
  before: readonly T[],
  after: readonly T[],
  keyOf: (item: T) => string,
): readonly T[] {
  const known = new Set(before.map(keyOf));
  return after.filter((item) => !known.has(keyOf(item)));
}
