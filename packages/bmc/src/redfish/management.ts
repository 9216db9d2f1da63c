/**
 * Acts of a Redfish BMC beside power and the next boot: its lamp, its own restart, the persistent
 * boot order; and the list of firmware. A success of an action means "accepted": only what is read
 * back counts.
 */
import { type BmcAssertion, type BmcResult, failed, ok } from '../driver.ts';
import { mayHaveHappened, readUntil } from '../read-back.ts';
import { type BmcFirmware, type FirmwareComponent, firmwareComponentsMax } from '../readings.ts';
import { variantsOf } from '../vendors.ts';
import { type ActCalls, readBy } from './acting.ts';
import type { Get, Resource } from './conversation.ts';
import { type JsonObject, objectAt, pathOf, textAt, textsAt } from './json.ts';
import { listedIn } from './pages.ts';
import { chassisPathOf } from './system.ts';

/** The resource of a machine's lamp: its chassis, or its system. */
interface Indicator {
  readonly resource: Resource;
  readonly property: 'LocationIndicatorActive' | 'IndicatorLED';
}

/** The lamp that a service has; its answer decides which property that is. */
function indicatorAmong(resources: readonly Resource[]): BmcResult<Indicator> {
  for (const property of variantsOf('indicator')) {
    const resource = resources.find(({ body }) => property in body);
    if (resource !== undefined) return ok({ resource, property });
  }
  return failed('unsupported', 'the BMC offers no lamp of the machine');
}

/** `Blinking` is lit: some blink to show where a machine is. */
function isLit({ resource, property }: Indicator): boolean {
  const value = resource.body[property];
  return property === 'LocationIndicatorActive' ? value === true : isLitWord(value);
}

function isLitWord(value: unknown): boolean {
  return value === 'Lit' || value === 'Blinking';
}

/** Lights the lamp of the machine or puts it out, and reads it back. */
export async function switchIndicator(
  system: Resource,
  lit: boolean,
  calls: ActCalls,
): Promise<BmcResult<BmcAssertion>> {
  const { governed, clock, readBack, signal } = calls;
  const get = readBy(calls);
  const path = chassisPathOf(system);
  const chassis = path === undefined ? undefined : await get(path);
  if (chassis?.kind === 'transient') return chassis;
  const found = indicatorAmong([...(chassis?.kind === 'ok' ? [chassis.value] : []), system]);
  if (found.kind !== 'ok') return found;
  if (isLit(found.value) === lit) return ok({ changed: false, notes: [] });
  const { resource, property } = found.value;
  let result: BmcResult<void> = ok(undefined);
  for (const body of indicatorBodies(property, lit)) {
    result = await governed((talk) => talk.patch(resource, body, signal));
    if (result.kind !== 'failed' || result.type !== 'rejected') break;
  }
  if (result.kind !== 'ok' && !mayHaveHappened(result)) return result;
  const read = async () => {
    const now = await get(resource.path);
    return now.kind === 'ok' ? ok(isLit({ resource: now.value, property })) : now;
  };
  const after = await readUntil(clock, readBack, read, (seen) => seen === lit, signal);
  if (after.kind !== 'ok') return after;
  if (after.value === lit) return ok({ changed: true, notes: [] });
  if (result.kind !== 'ok') return result;
  const message = `the BMC accepted to switch the lamp ${lit ? 'on' : 'off'} and did not`;
  return failed('notApplied', message);
}

/** The body of the PATCH; the words of `IndicatorLED` are tried in this order. */
function indicatorBodies(property: Indicator['property'], lit: boolean): readonly JsonObject[] {
  if (property === 'LocationIndicatorActive') return [{ LocationIndicatorActive: lit }];
  return (lit ? ['Lit', 'Blinking'] : ['Off']).map((IndicatorLED) => ({ IndicatorLED }));
}

/** The reset type for the BMC itself: graceful where it can. */
export function bmcReset({ body }: Resource): BmcResult<{ path: string; type: string }> {
  const action = objectAt(objectAt(body, 'Actions'), '#Manager.Reset');
  const path = pathOf(action, 'target');
  if (path === undefined) return failed('unsupported', 'the BMC offers no restart of itself');
  const offered = textsAt(action, 'ResetType@Redfish.AllowableValues');
  const wanted = ['GracefulRestart', 'ForceRestart'];
  const type = wanted.find((one) => offered?.includes(one) ?? true);
  if (type !== undefined) return ok({ path, type });
  return failed('unsupported', 'the BMC cannot restart itself', `it offers ${offered?.join(', ')}`);
}

/** The list of the firmware of a service; every component costs a request. */
export async function readFirmware(root: JsonObject, get: Get): Promise<BmcResult<BmcFirmware>> {
  const path = pathOf(objectAt(root, 'UpdateService'));
  const service = path === undefined ? undefined : await get(path);
  if (service !== undefined && service.kind !== 'ok') return service;
  const at = service && pathOf(objectAt(service.value.body, 'FirmwareInventory'));
  if (at === undefined) return failed('unsupported', 'the BMC offers no list of firmware');
  const listed = await listedIn(at, get, firmwareComponentsMax);
  if ('kind' in listed) return listed;
  const components: FirmwareComponent[] = [];
  for (const member of listed.paths) {
    const item = await get(member);
    if (item.kind === 'transient') return item;
    if (item.kind === 'ok') components.push(...componentOf(item.value.body));
  }
  return ok({
    components,
    complete: components.length === listed.members.length && !listed.hasMore,
  });
}

function componentOf(body: JsonObject): readonly FirmwareComponent[] {
  const id = textAt(body, 'Id');
  const updateable = body['Updateable'];
  if (id === undefined) return [];
  return [
    {
      id,
      name: textAt(body, 'Name') ?? id,
      version: textAt(body, 'Version') ?? '',
      ...(typeof updateable === 'boolean' ? { updateable } : {}),
    },
  ];
}
