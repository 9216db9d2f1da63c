/**
 * A host's past: its record's revisions page by page, and the host as it was at a time.
 *
 * Invariants:
 * 1. The response for a time is the record of that time; no present data is mixed in.
 * 2. A time before the oldest stored revision is refused, and the error names that revision's time.
 * 3. One call reads a bounded number of revisions. A page that reaches the bound ends early, with a
 *    token to continue; a query for a time beyond the bound is refused.
 */
import { clone, create, fromBinary, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type Timestamp,
  timestampDate,
  timestampFromMs,
  timestampMs,
} from '@bufbuild/protobuf/wkt';
import {
  ApiFailure,
  asRevision,
  type Host,
  type HostId,
  type HostRevisionSchema,
  HostSchema,
  HostStatusSchema,
  type HostUid,
  invalidArgument,
  type ListHostRevisionsRequest,
  type ListHostRevisionsResponseSchema,
  notFound,
  store as wire,
} from '@rackwright/messages';
import {
  type Change,
  type KeyHistory,
  PAST_CHANGES_MAX,
  type StoreRevision,
} from '@rackwright/store';
import { factsKey, hostKey, hostRecordOf } from '../call/host-view.ts';
import { requireName } from '../call/names.ts';
import { pageBytesMax, pageSizeOf } from '../call/paging.ts';
import type { RpcDependencies } from '../call/ports.ts';
import { formatPageToken, formatPosition, parsePageToken } from '../call/position.ts';
import { Violations } from '../call/violations.ts';
import { displayOf } from '../host/index.ts';
import { idOfKey, orUnavailable } from '../records/index.ts';

/** Revisions that one page reads, also when most lie outside its time range. */
const changesPerPageMax = 4_096;
/** The most revisions that a query for a past time reads, of the record and of the facts. */
const changesBackMax = 16_384;
/** Revisions read at a time. */
const readAtOnce = 64;
/** The largest lead of a caller's clock over ours. */
const aheadMsMax = 60_000;

type StoreDependencies = Pick<RpcDependencies, 'store'>;
type PastDependencies = Pick<RpcDependencies, 'store' | 'clock'>;

/** Handles one ListHostRevisions. */
export async function listHostRevisions(
  deps: StoreDependencies,
  request: ListHostRevisionsRequest,
): Promise<MessageInitShape<typeof ListHostRevisionsResponseSchema>> {
  const key = hostKey(requireName('hosts', request.name));
  const size = pageSizeOf(request.pageSize);
  const range = checkRange(request);
  const filter = JSON.stringify([request.name, range.startMs, range.endMs]);
  const token = parsePageToken(deps.store, filter, request.pageToken);
  const page: MessageInitShape<typeof HostRevisionSchema>[] = [];
  let bytes = 0;
  let changesRead = 0;
  const from = token === '' ? undefined : Number(token);
  for await (const change of changesBack(deps, key, from)) {
    const full = page.length >= size || bytes > pageBytesMax || changesRead >= changesPerPageMax;
    if (full) {
      const nextPageToken = formatPageToken(deps.store, filter, String(change.revision));
      return { revisions: page, nextPageToken };
    }
    changesRead += 1;
    const atMs = timeOf(change);
    if (atMs < range.startMs) break;
    if (change.kind === 'delete' || atMs >= range.endMs) continue;
    bytes += change.value.byteLength;
    page.push(revisionOf(deps, change));
  }
  if (changesRead === 0 && from === undefined) throw notFound(request.name);
  return { revisions: page, nextPageToken: '' };
}

/** A host as it was at a time. */
export interface HostThen {
  readonly host: Host;
  readonly revision: StoreRevision;
}

/** The host at a time. Throws `notFound` when it did not exist, `outOfRange` (invariant 2). */
export async function hostAt(
  deps: PastDependencies,
  name: string,
  readTime: Timestamp,
  field = 'read_time',
): Promise<HostThen> {
  const hostId = requireName('hosts', name);
  const atMs = checkPastTime(deps, readTime, field);
  const { change, before, oldest } = await lastUntil(deps, hostKey(hostId), atMs);
  if (change?.kind === 'put') {
    const record = hostRecordOf(change);
    const facts = await factsAt(deps, hostId, record.host?.uid ?? '', atMs);
    return { host: pastHost(deps, record, change.revision, facts), revision: change.revision };
  }
  if (change === undefined && oldest === undefined) throw notFound(name);
  if (change === undefined && before === 'gone') throw tooOld(name, oldest);
  throw new ApiFailure({
    kind: 'notFound',
    message: `${name} did not exist at ${instant(atMs)}.`,
    reason: 'RESOURCE_NOT_FOUND',
    metadata: { resource: name },
  });
}

/** The record in API form, without present data (invariant 1). */
export function pastHost(
  { store }: StoreDependencies,
  record: wire.HostRecord,
  revision: StoreRevision,
  facts: wire.HostFacts | undefined,
): Host {
  const host = record.host === undefined ? create(HostSchema) : clone(HostSchema, record.host);
  host.etag = formatPosition(store, revision);
  if (record.change?.time !== undefined) host.updateTime = record.change.time;
  host.status ??= create(HostStatusSchema);
  if (facts?.inventory !== undefined) host.status.inventory = facts.inventory;
  host.status.display = displayOf(host.status);
  return host;
}

function revisionOf(
  deps: StoreDependencies,
  change: Extract<Change, { kind: 'put' }>,
): MessageInitShape<typeof HostRevisionSchema> {
  const record = hostRecordOf(change);
  const { actor = '', cause = '', time } = record.change ?? {};
  return {
    revision: asRevision(change.revision),
    actor,
    cause,
    ...(time === undefined ? {} : { time }),
    ...(record.host === undefined
      ? {}
      : { host: pastHost(deps, record, change.revision, undefined) }),
  };
}

/** Changes of a key, newest first, read a few at a time. */
async function* changesBack(
  { store }: StoreDependencies,
  key: string,
  from: StoreRevision | undefined,
): AsyncGenerator<Change, KeyHistory['before']['kind'], undefined> {
  let next = from;
  for (let limit = readAtOnce; ; limit = Math.min(limit * 2, PAST_CHANGES_MAX)) {
    const page = await orUnavailable(store.historyBackwards(key, limit, next));
    yield* page.changes;
    if (page.before.kind !== 'more') return page.before.kind;
    next = page.before.from;
  }
}

interface LastUntil {
  /** The last change up to that time. */
  readonly change?: Change;
  /** The state before the oldest stored change, when that change is later. */
  readonly before?: KeyHistory['before']['kind'];
  /** The time of the oldest stored change; undefined when there is none. */
  readonly oldest?: number;
}

async function lastUntil(deps: StoreDependencies, key: string, atMs: number): Promise<LastUntil> {
  const changes = changesBack(deps, key, undefined);
  let oldest: number | undefined;
  for (let changesRead = 0; ; changesRead += 1) {
    if (changesRead >= changesBackMax) throw tooFar(key, oldest ?? 0);
    const next = await changes.next();
    if (next.done === true) {
      return { before: next.value, ...(oldest === undefined ? {} : { oldest }) };
    }
    const changeMs = timeOf(next.value);
    if (changeMs <= atMs) return { change: next.value, oldest: changeMs };
    oldest = changeMs;
  }
}

/** The facts observed up to then of the host with this uid. */
async function factsAt(
  deps: StoreDependencies,
  hostId: HostId,
  uid: HostUid,
  atMs: number,
): Promise<wire.HostFacts | undefined> {
  let changesRead = 0;
  for await (const change of changesBack(deps, factsKey(hostId), undefined)) {
    changesRead += 1;
    if (changesRead > changesBackMax) throw tooFar(change.key, timeOf(change));
    if (timeOf(change) > atMs) continue;
    if (change.kind === 'delete') return undefined;
    const facts = fromBinary(wire.HostFactsSchema, change.value);
    return facts.hostUid === uid ? facts : undefined;
  }
  return undefined;
}

/** A host's record has its own write time; for other records the store has it. */
function timeOf(change: Change): number {
  const storedMs = change.atMs ?? Number.POSITIVE_INFINITY;
  if (change.kind === 'delete' || !change.key.startsWith('hosts.')) return storedMs;
  const { time } = hostRecordOf(change).change ?? {};
  return time === undefined ? storedMs : timestampMs(time);
}

function checkRange({ startTime, endTime }: ListHostRevisionsRequest) {
  const startMs = startTime === undefined ? 0 : timestampMs(startTime);
  const endMs = endTime === undefined ? Number.MAX_SAFE_INTEGER : timestampMs(endTime);
  const violations = new Violations();
  if (endMs <= startMs) {
    violations.add('end_time', `is ${instant(endMs)}; it must be after start_time`);
  }
  violations.throwIfAny();
  return { startMs, endMs };
}

function checkPastTime({ clock }: PastDependencies, time: Timestamp, field: string): number {
  const atMs = timestampMs(time);
  if (atMs <= clock.nowMs() + aheadMsMax) return atMs;
  const description = `is ${instant(atMs)}, which lies ahead; it must be a time in the past`;
  throw invalidArgument([{ field, description }]);
}

/** Invariant 2. */
function tooOld(name: string, oldest: number | undefined): ApiFailure {
  const since = oldest === undefined ? 'nothing' : `nothing from before ${instant(oldest)}`;
  return new ApiFailure({
    kind: 'outOfRange',
    reason: 'READ_TIME_TOO_OLD',
    message: `Of ${name} ${since} is kept any more; ask for a time from then on.`,
  });
}

/** Invariant 3. */
function tooFar(key: string, since: number): ApiFailure {
  const id = idOfKey(key);
  const count = `${changesBackMax} changes since ${instant(since)}`;
  return new ApiFailure({
    kind: 'outOfRange',
    reason: 'READ_TIME_TOO_FAR',
    message:
      `Of hosts/${id} ${count} are gone over, and the time lies before them: ` +
      'ask for a later one, or list its revisions with a start and an end.',
  });
}

function instant(atMs: number): string {
  return timestampDate(timestampFromMs(Math.min(atMs, 8_000_000_000_000_000))).toISOString();
}
