/**
 * The event log of a machine over Redfish: a LogService (DSP0268) of its system or of the BMC that
 * manages it.
 */
import { type BmcResult, failed, ok } from '../driver.ts';
import type { BmcLog, BmcLogEntry } from '../readings.ts';
import { variantsOf } from '../vendors.ts';
import type { Get, Resource } from './conversation.ts';
import { levelNamed } from './health.ts';
import { type JsonObject, objectAt, pathOf, pathsAt, textAt } from './json.ts';
import { listedIn } from './pages.ts';

/** The path that clears a log, and the path of its entries. */
export interface EventLog {
  /** Undefined: it cannot be cleared. */
  readonly clearPath: string | undefined;
  readonly entriesPath: string;
}

/** Log services of one place that are looked at. */
const servicesMax = 16;

/**
 * The machine's event log. A log with another name is taken only where there is no usual one.
 * `isFit`: the abilities that the log needs.
 */
export async function findEventLog(
  system: Resource,
  get: Get,
  isFit: (log: EventLog) => boolean,
): Promise<BmcResult<EventLog>> {
  const owners = [system];
  for (const path of pathsAt(objectAt(system.body, 'Links'), 'ManagedBy').slice(0, 1)) {
    const bmc = await get(path);
    if (bmc.kind === 'transient') return bmc;
    if (bmc.kind === 'ok') owners.push(bmc.value);
  }
  let other: EventLog | undefined;
  for (const owner of owners) {
    const services = await servicesOf(owner, get);
    if (services.kind !== 'ok') return services;
    for (const service of services.value) {
      const log = logAt(service);
      if (log === undefined || !isFit(log)) continue;
      const id = textAt(service.body, 'Id') ?? '';
      if (variantsOf('eventLogId').some((name) => name.test(id))) return ok(log);
      other ??= log;
    }
  }
  return other === undefined
    ? failed('unsupported', 'the BMC offers no such event log of the machine')
    : ok(other);
}

async function servicesOf({ body }: Resource, get: Get): Promise<BmcResult<Resource[]>> {
  const path = pathOf(objectAt(body, 'LogServices'));
  if (path === undefined) return ok([]);
  const listed = await listedIn(path, get, servicesMax);
  if ('kind' in listed) return listed;
  const services: Resource[] = [];
  for (const member of listed.paths) {
    const service = await get(member);
    if (service.kind === 'transient') return service;
    if (service.kind === 'ok') services.push(service.value);
  }
  return ok(services);
}

function logAt({ body }: Resource): EventLog | undefined {
  const clearPath = pathOf(objectAt(objectAt(body, 'Actions'), '#LogService.ClearLog'), 'target');
  const entriesPath = pathOf(objectAt(body, 'Entries'));
  return entriesPath === undefined ? undefined : { clearPath, entriesPath };
}

/** The number of entries of a log. */
export function entriesIn({ path, body }: Resource): BmcResult<number> {
  const count = body['Members@odata.count'];
  if (typeof count === 'number' && Number.isInteger(count) && count >= 0) return ok(count);
  const members = body['Members'];
  if (Array.isArray(members)) return ok(members.length);
  return failed('malformed', `the BMC does not say how many entries ${path} has`);
}

/** Entries that are looked at to find the newest. */
const entriesListedMax = 2_000;

/**
 * At most `entriesMax` entries, the newest first. Services list them from either end, and some give
 * references that cost a request each: then those of the end are read that is the newer one.
 */
export async function readEntries(
  log: EventLog,
  get: Get,
  entriesMax: number,
): Promise<BmcResult<BmcLog>> {
  const listed = await listedIn(log.entriesPath, get, entriesListedMax);
  if ('kind' in listed) return listed;
  const { members, hasMore } = listed;
  const isWhole = members.every((one) => 'Message' in one || 'MessageId' in one);
  const found = isWhole
    ? { entries: members.map(entryOf), complete: true }
    : await readNewest(
        members.flatMap((one) => pathOf(one) ?? []),
        get,
        entriesMax,
      );
  if ('kind' in found) return found;
  const entries = found.entries.toSorted(newerFirst).slice(0, entriesMax);
  const complete = found.complete && !hasMore && entries.length === members.length;
  return ok({ entries, complete });
}

async function readNewest(
  paths: readonly string[],
  get: Get,
  entriesMax: number,
): Promise<BmcLog | Exclude<BmcResult<never>, { kind: 'ok' }>> {
  const ends = [paths[0], paths.at(-1)];
  const times: string[] = [];
  for (const path of paths.length > entriesMax ? ends : []) {
    const entry = path === undefined ? undefined : await get(path);
    if (entry?.kind === 'transient') return entry;
    times.push(entry?.kind === 'ok' ? entryOf(entry.value.body).time : '');
  }
  const [first = '', last = ''] = times;
  const wanted =
    timeMs(first) > timeMs(last) ? paths.slice(0, entriesMax) : paths.slice(-entriesMax);
  const entries: BmcLogEntry[] = [];
  let complete = wanted.length === paths.length;
  for (const path of wanted) {
    const entry = await get(path);
    if (entry.kind === 'transient') return entry;
    if (entry.kind === 'ok') entries.push(entryOf(entry.value.body));
    else complete = false;
  }
  return { entries, complete };
}

function entryOf(body: JsonObject): BmcLogEntry {
  const severity = levelNamed(textAt(body, 'Severity') ?? textAt(body, 'EntryCode'));
  return {
    id: textAt(body, 'Id') ?? '',
    time: textAt(body, 'Created') ?? textAt(body, 'EventTimestamp') ?? '',
    ...(severity === undefined ? {} : { severity }),
    message: textAt(body, 'Message') ?? textAt(body, 'MessageId') ?? '',
  };
}

/** By their times; entries without a time, or of one time, by their numbers. */
function newerFirst(one: BmcLogEntry, other: BmcLogEntry): number {
  return timeMs(other.time) - timeMs(one.time) || numberOf(other.id) - numberOf(one.id);
}

function timeMs(text: string): number {
  const ms = Date.parse(text);
  return Number.isFinite(ms) ? ms : 0;
}

function numberOf(id: string): number {
  return /^\d{1,15}$/.test(id) ? Number(id) : 0;
}
