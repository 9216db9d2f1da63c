/**
 * The event log of a machine over Redfish: a LogService (DSP0268) of its system or of the BMC that
 * manages it.
 */
import { type BmcResult, failed, ok } from '../driver.ts';
import { waysOf } from '../vendors.ts';
import type { Resource } from './conversation.ts';
import { objectAt, pathOf, pathsAt, textAt } from './json.ts';

/** Where a log is cleared, and where its entries are counted. */
export interface EventLog {
  readonly clearPath: string;
  readonly entriesPath: string;
}

export type Get = (path: string) => Promise<BmcResult<Resource>>;

/** Log services of one place that are looked at. */
const servicesMax = 16;

/** The machine's event log; one that goes by another name only where there is no such. */
export async function findEventLog(system: Resource, get: Get): Promise<BmcResult<EventLog>> {
  const places = [system];
  for (const path of pathsAt(objectAt(system.body, 'Links'), 'ManagedBy').slice(0, 1)) {
    const bmc = await get(path);
    if (bmc.kind === 'transient') return bmc;
    if (bmc.kind === 'ok') places.push(bmc.value);
  }
  let other: EventLog | undefined;
  for (const place of places) {
    const services = await servicesOf(place, get);
    if (services.kind !== 'ok') return services;
    for (const service of services.value) {
      const log = clearable(service);
      if (log === undefined) continue;
      const id = textAt(service.body, 'Id') ?? '';
      if (waysOf('eventLogId').some((name) => name.test(id))) return ok(log);
      other ??= log;
    }
  }
  return other === undefined
    ? failed('unsupported', 'the BMC offers no event log that can be cleared')
    : ok(other);
}

async function servicesOf({ body }: Resource, get: Get): Promise<BmcResult<Resource[]>> {
  const path = pathOf(objectAt(body, 'LogServices'));
  if (path === undefined) return ok([]);
  const collection = await get(path);
  if (collection.kind !== 'ok') return collection;
  const services: Resource[] = [];
  for (const member of pathsAt(collection.value.body, 'Members').slice(0, servicesMax)) {
    const service = await get(member);
    if (service.kind === 'transient') return service;
    if (service.kind === 'ok') services.push(service.value);
  }
  return ok(services);
}

function clearable({ body }: Resource): EventLog | undefined {
  const clearPath = pathOf(objectAt(objectAt(body, 'Actions'), '#LogService.ClearLog'), 'target');
  const entriesPath = pathOf(objectAt(body, 'Entries'));
  return clearPath === undefined || entriesPath === undefined
    ? undefined
    : { clearPath, entriesPath };
}

/** How many entries a log has. */
export function entriesIn({ path, body }: Resource): BmcResult<number> {
  const count = body['Members@odata.count'];
  if (typeof count === 'number' && Number.isInteger(count) && count >= 0) return ok(count);
  const members = body['Members'];
  if (Array.isArray(members)) return ok(members.length);
  return failed('malformed', `the BMC does not say how many entries ${path} has`);
}
