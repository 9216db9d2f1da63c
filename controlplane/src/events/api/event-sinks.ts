/** EventSinkService: destinations of events, and the events that could not be delivered. */
import { clone, create, fromBinary, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  alreadyExists,
  asRevision,
  type BoundService,
  bind,
  type CreateEventSinkRequest,
  type DeadLetterSchema,
  type EventSink,
  EventSinkSchema,
  EventSinkService,
  EventSinkSpecSchema,
  EventSinkStatusSchema,
  failedPrecondition,
  invalidArgument,
  type ListDeadLettersRequest,
  notFound,
  type RequestId,
  type SinkUid,
  type UpdateEventSinkRequest,
  store as wire,
} from '@rackwright/messages';
import { randomId } from '@rackwright/platform';
import { type Entry, type StoreRevision, storeKey } from '@rackwright/store';
import { applyMask, maskPaths } from '../../call/field-mask.ts';
import { filterOf } from '../../call/filtering.ts';
import { idProblem, nameProblem, requireName } from '../../call/names.ts';
import { listPage } from '../../call/paging.ts';
import type { RpcDependencies } from '../../call/ports.ts';
import { checkEtag, etagMismatch, formatPosition } from '../../call/position.ts';
import { checkRequestId } from '../../call/texts.ts';
import { Violations } from '../../call/violations.ts';
import { readFleet } from '../../host/index.ts';
import {
  deleteRecord,
  hasApplied,
  orUnavailable,
  readRecord,
  untilWritten,
  withApplied,
  writeRecord,
} from '../../records/index.ts';
import { eventFields } from '../event-fields.ts';
import {
  cursorKey,
  deadLettersBelow,
  deadLettersMax,
  deadLettersOf,
  forgetSink,
  sinkUidOf,
  webhookUrlProblem,
} from '../index.ts';

const schema = wire.EventSinkRecordSchema;
const updatablePaths = [
  ...['spec.webhook', 'spec.webhook.url', 'spec.webhook.credential'],
  ...['spec.nats', 'spec.filter', 'spec.paused'],
];
/** Each sink follows the store by itself. */
const sinksMax = 16;
/** Ids of events that one request may name. */
const eventsMax = 1_000;
/** Stands for every dead letter of the sink. */
const all = '-';

/** The service over these dependencies. */
export function createEventSinkService(deps: RpcDependencies): BoundService {
  return bind(EventSinkService, {
    createEventSink: (request) => createSink(deps, request),
    getEventSink: async ({ name }) => {
      const { record, revision } = await existing(deps, name);
      return present(deps, record, revision);
    },
    listEventSinks: async (request) => {
      const page = await listPage(deps.store, 'eventSinks', request, '', ({ value, revision }) =>
        present(deps, fromBinary(schema, value), revision),
      );
      return { eventSinks: [...page.items], nextPageToken: page.nextPageToken };
    },
    updateEventSink: (request) => updateSink(deps, request),
    deleteEventSink: (request) => deleteSink(deps, request),
    listDeadLetters: (request) => listDeadLetters(deps, request),
    replayDeadLetters: async ({ name, events }) => ({
      count: await replay(deps, name, events),
    }),
    dropDeadLetters: async ({ name, events }) => ({ count: await drop(deps, name, events) }),
  });
}

function sinkKey(name: string, field = 'name'): string {
  return storeKey('eventSinks', requireName('eventSinks', name, field));
}

async function existing({ store }: RpcDependencies, name: string, field = 'name') {
  const kept = await readRecord(store, schema, sinkKey(name, field));
  if (kept === undefined) throw notFound(name);
  return kept;
}

/** The sink with its delivery status, from its cursor. */
async function present(
  { store }: RpcDependencies,
  { eventSink }: wire.EventSinkRecord,
  revision: StoreRevision,
): Promise<EventSink> {
  const sink =
    eventSink === undefined ? create(EventSinkSchema) : clone(EventSinkSchema, eventSink);
  sink.etag = formatPosition(store, revision);
  const cursor = await readRecord(store, wire.EventCursorRecordSchema, cursorKey(sinkUidOf(sink)));
  const { lastDeliveryTime, problem = '', problemSince } = cursor?.record ?? {};
  const letters = await deadLettersOf(store, sinkUidOf(sink));
  sink.status = create(EventSinkStatusSchema, {
    ...(lastDeliveryTime === undefined ? {} : { lastDeliveryTime }),
    problem,
    ...(problemSince === undefined ? {} : { problemSince }),
    deadLetters: Math.min(letters.length, deadLettersMax),
  });
  return sink;
}

async function checkSpec(deps: RpcDependencies, sink: EventSink): Promise<void> {
  const violations = new Violations();
  const { target, filter = '' } = sink.spec ?? {};
  if (target?.case === 'webhook') {
    const { url, credential } = target.value;
    const fleet = (await readFleet(deps.store))?.fleet;
    const problem = url === '' ? 'is missing; give the URL of the receiver' : undefined;
    const field = 'event_sink.spec.webhook';
    violations.addIf(`${field}.url`, problem ?? webhookUrlProblem(fleet, url));
    const badName = nameProblem('credentials', credential);
    violations.addIf(`${field}.credential`, badName);
    if (badName === undefined && !(await exists(deps, credential))) {
      violations.add(`${field}.credential`, `is ${credential}, which does not exist; create it`);
    }
  } else if (target?.case === 'nats') {
    if (deps.store.publish === undefined) {
      const why = `is for a store on NATS, and this one is ${deps.store.driver}; give a webhook`;
      violations.add('event_sink.spec.nats', why);
    }
  } else {
    violations.add('event_sink.spec', 'has no target; give a webhook, or nats');
  }
  violations.throwIfAny();
  filterOf(eventFields, filter);
}

async function exists({ store }: RpcDependencies, name: string): Promise<boolean> {
  return (await orUnavailable(store.get(storeKey(...name.split('/'))))).kind === 'found';
}

async function createSink(
  deps: RpcDependencies,
  request: CreateEventSinkRequest,
): Promise<EventSink> {
  const { eventSinkId, requestId, eventSink: given } = request;
  const { store, clock, random } = deps;
  const violations = new Violations();
  violations.addIf('event_sink_id', idProblem(eventSinkId));
  checkRequestId(requestId, violations);
  violations.throwIfAny();
  const name = `eventSinks/${eventSinkId}`;
  const time = timestampFromMs(clock.nowMs());
  const spec = clone(EventSinkSpecSchema, given?.spec ?? create(EventSinkSpecSchema));
  const eventSink = create(EventSinkSchema, { name, spec });
  await checkSpec(deps, eventSink);
  const key = sinkKey(name);
  const made = await readRecord(store, schema, key);
  if (made !== undefined) return sameSink(deps, made, requestId, name);
  const { entries } = await orUnavailable(store.list('eventSinks', { limit: sinksMax }));
  if (entries.length >= sinksMax) {
    throw failedPrecondition(
      'TOO_MANY_EVENT_SINKS',
      `There are ${sinksMax} event sinks, as many as may be. Delete one first.`,
    );
  }
  Object.assign(eventSink, { uid: randomId(random), createTime: time, updateTime: time });
  // The sink gets every change after this revision.
  const beginRevision = asRevision(await orUnavailable(store.latestRevision()));
  const requestIds = withApplied([], requestId);
  const record = create(schema, { eventSink, requestIds, beginRevision });
  if (request.validateOnly) return present(deps, record, 0);
  const written = await writeRecord(deps, schema, key, record, 'absent');
  if (written.kind === 'conflict') {
    return sameSink(deps, await existing(deps, name), requestId, name);
  }
  deps.log.info({ sink: name, actor: deps.actor }, 'event sink created');
  return present(deps, record, written.revision);
}

/** The sink that an earlier try of the same request made; any other one is a conflict. */
function sameSink(
  deps: RpcDependencies,
  { record, revision }: { record: wire.EventSinkRecord; revision: StoreRevision },
  requestId: RequestId,
  name: string,
): Promise<EventSink> {
  if (!hasApplied(record, requestId)) throw alreadyExists(`${name} exists already.`);
  return present(deps, record, revision);
}

async function updateSink(
  deps: RpcDependencies,
  { eventSink: wanted, updateMask, validateOnly }: UpdateEventSinkRequest,
): Promise<EventSink> {
  if (wanted === undefined) {
    const description = 'is missing; give its name and what changes';
    throw invalidArgument([{ field: 'event_sink', description }]);
  }
  const key = sinkKey(wanted.name, 'event_sink.name');
  return untilWritten(wanted.name, async () => {
    const { record, revision } = await existing(deps, wanted.name, 'event_sink.name');
    checkEtag(deps.store, wanted.etag, revision, wanted.name);
    const violations = new Violations();
    const paths = maskPaths(EventSinkSchema, updateMask, wanted, updatablePaths, violations);
    violations.throwIfAny();
    const next = clone(schema, record);
    const sink = next.eventSink ?? create(EventSinkSchema);
    applyMask(EventSinkSchema, sink, wanted, paths);
    await checkSpec(deps, sink);
    sink.updateTime = timestampFromMs(deps.clock.nowMs());
    next.eventSink = sink;
    if (validateOnly === true) return present(deps, next, revision);
    const written = await writeRecord(deps, schema, key, next, revision);
    if (written.kind === 'conflict') return undefined;
    deps.log.info({ sink: wanted.name, actor: deps.actor }, 'event sink changed');
    return present(deps, next, written.revision);
  });
}

async function deleteSink(
  deps: RpcDependencies,
  { name, etag }: { readonly name: string; readonly etag: string },
): Promise<EventSink> {
  const { record, revision } = await existing(deps, name);
  checkEtag(deps.store, etag, revision, name);
  const shown = await present(deps, record, revision);
  const gone = await deleteRecord(deps, sinkKey(name), revision);
  if (gone.kind === 'conflict') throw etagMismatch(name);
  deps.log.info({ sink: name, actor: deps.actor }, 'event sink deleted');
  await forgetSink(deps, sinkUidOf(record.eventSink));
  return shown;
}

async function listDeadLetters(deps: RpcDependencies, request: ListDeadLettersRequest) {
  const { parent } = request;
  const { record } = await existing(deps, parent, 'parent');
  const below = deadLettersBelow(sinkUidOf(record.eventSink));
  const page = await listPage(deps.store, below, request, parent, (entry) =>
    presentLetter(parent, fromBinary(wire.DeadLetterRecordSchema, entry.value)),
  );
  return { deadLetters: [...page.items], nextPageToken: page.nextPageToken };
}

function presentLetter(
  parent: string,
  { event, attempts, problem, time, replay: replayRequested }: wire.DeadLetterRecord,
): MessageInitShape<typeof DeadLetterSchema> {
  const name = `${parent}/deadLetters/${event?.id ?? ''}`;
  return {
    ...{ name, attempts, problem, replayRequested },
    ...(event === undefined ? {} : { event }),
    ...(time === undefined ? {} : { time }),
  };
}

/** The dead letters of these events; throws `notFound` for an event without one. */
async function named(
  { store }: RpcDependencies,
  name: string,
  uid: SinkUid,
  events: readonly string[],
): Promise<readonly Entry[]> {
  if (events.length > eventsMax) {
    const description = `has ${events.length} entries; at most ${eventsMax} are named at once`;
    throw invalidArgument([{ field: 'events', description }]);
  }
  const letters = await deadLettersOf(store, uid);
  if (events.length === 0 || events.includes(all)) return letters;
  const byId = new Map(letters.map((entry) => [entry.key.split('.').at(-1) ?? '', entry]));
  return events.map((id) => {
    const entry = byId.get(id);
    if (entry === undefined) throw notFound(`${name}/deadLetters/${id}`);
    return entry;
  });
}

/** Marks the letters, and then the sink, which wakes its worker. */
async function replay(
  deps: RpcDependencies,
  name: string,
  events: readonly string[],
): Promise<number> {
  const { record } = await existing(deps, name);
  let count = 0;
  for (const { key, value, revision } of await named(
    deps,
    name,
    sinkUidOf(record.eventSink),
    events,
  )) {
    const letter = fromBinary(wire.DeadLetterRecordSchema, value);
    letter.replay = true;
    const written = await writeRecord(deps, wire.DeadLetterRecordSchema, key, letter, revision);
    if (written.kind === 'ok') count += 1;
  }
  if (count > 0) await wake(deps, name);
  return count;
}

async function wake(deps: RpcDependencies, name: string): Promise<void> {
  await untilWritten(name, async () => {
    const { record, revision } = await existing(deps, name);
    record.replays += 1n;
    const written = await writeRecord(deps, schema, sinkKey(name), record, revision);
    return written.kind === 'ok' ? true : undefined;
  });
}

async function drop(
  deps: RpcDependencies,
  name: string,
  events: readonly string[],
): Promise<number> {
  const { record } = await existing(deps, name);
  if (events.length === 0) {
    const description = `is empty; name the events that are dropped, or "${all}" for all`;
    throw invalidArgument([{ field: 'events', description }]);
  }
  let count = 0;
  for (const { key, revision } of await named(deps, name, sinkUidOf(record.eventSink), events)) {
    const gone = await deleteRecord(deps, key, revision);
    if (gone.kind === 'ok') count += 1;
  }
  return count;
}
