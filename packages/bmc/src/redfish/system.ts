/**
 * The properties that the driver reads from a ComputerSystem (DSP0268), and the choice among
 * several.
 */
import { type BmcIdentity, type BmcResult, failed, ok, type PowerState } from '../driver.ts';
import { vendorDifference } from '../vendors.ts';
import { FirstFailure } from './acting.ts';
import type { Get, Resource } from './conversation.ts';
import { type JsonObject, objectAt, pathOf, pathsAt, textAt, textsAt } from './json.ts';

export interface BootFacts {
  readonly target: string | undefined;
  readonly enabled: string | undefined;
  readonly mode: string | undefined;
  /** Undefined: it does not list its targets. */
  readonly targets: readonly string[] | undefined;
}

export interface ResetFacts {
  /** The path of the action. */
  readonly path: string;
  readonly types: readonly string[] | undefined;
  /** The path that lists the types instead. */
  readonly actionPath: string | undefined;
}

export function bootFacts({ body }: Resource): BootFacts {
  const boot = objectAt(body, 'Boot');
  return {
    target: textAt(boot, 'BootSourceOverrideTarget'),
    enabled: textAt(boot, 'BootSourceOverrideEnabled'),
    mode: textAt(boot, 'BootSourceOverrideMode'),
    targets: textsAt(boot, 'BootSourceOverrideTarget@Redfish.AllowableValues'),
  };
}

/** The settings that the next boot applies (DSP0266, `@Redfish.Settings`); undefined: none. */
export async function settingsOf(
  { body }: Resource,
  get: Get,
): Promise<BmcResult<Resource | undefined>> {
  const path = pathOf(objectAt(objectAt(body, '@Redfish.Settings'), 'SettingsObject'));
  const found = path === undefined ? undefined : await get(path);
  return found === undefined || found.kind === 'failed' ? ok(undefined) : found;
}

/** Undefined: the system cannot be reset. */
export function resetFacts({ body }: Resource): ResetFacts | undefined {
  const action = objectAt(objectAt(body, 'Actions'), '#ComputerSystem.Reset');
  const path = pathOf(action, 'target');
  if (path === undefined) return undefined;
  return {
    path,
    types: textsAt(action, 'ResetType@Redfish.AllowableValues'),
    actionPath: pathOf(action, '@Redfish.ActionInfo'),
  };
}

/** The reset types of an ActionInfo. */
export function resetTypes(choices: JsonObject): readonly string[] | undefined {
  const parameters = choices['Parameters'];
  if (!Array.isArray(parameters)) return undefined;
  const found = parameters.find((one: JsonObject | null) => one?.['Name'] === 'ResetType');
  return found === undefined ? undefined : textsAt(found as JsonObject, 'AllowableValues');
}

/** A system that is being switched counts as before, and holds neither state. */
export interface PowerReading {
  readonly power: PowerState;
  readonly isChanging: boolean;
}

/** DSP0268, Resource `PowerState`. */
const powerWords: ReadonlyMap<string | undefined, PowerReading> = new Map([
  ['On', { power: 'on', isChanging: false }],
  ['Paused', { power: 'on', isChanging: false }],
  ['PoweringOff', { power: 'on', isChanging: true }],
  ['Off', { power: 'off', isChanging: false }],
  ['PoweringOn', { power: 'off', isChanging: true }],
]);

export function powerIn({ body }: Resource): BmcResult<PowerReading> {
  const reading = powerWords.get(textAt(body, 'PowerState'));
  if (reading !== undefined) return ok(reading);
  const value = JSON.stringify(body['PowerState'] ?? null).slice(0, 64);
  return failed('malformed', 'the BMC does not say whether the system is on', value);
}

export function identityOf({ body }: Resource, chassis: JsonObject | undefined): BmcIdentity {
  const manufacturer = textAt(body, 'Manufacturer');
  const { serialProperty } = vendorDifference({ manufacturer });
  const serialNumber = textAt(body, 'SerialNumber');
  const guidHex = guidHexOf(textAt(body, 'UUID'));
  const product = textAt(body, 'Model');
  const serial = textAt(body, serialProperty) ?? serialNumber;
  const chassisSerial = chassis === undefined ? undefined : textAt(chassis, 'SerialNumber');
  const boardSerial =
    serialProperty === 'SKU' && serial !== serialNumber ? serialNumber : undefined;
  return {
    ...(guidHex === undefined ? {} : { guidHex }),
    ...(manufacturer === undefined ? {} : { manufacturer }),
    ...(product === undefined ? {} : { product }),
    ...(serial === undefined ? {} : { serial }),
    ...(boardSerial === undefined ? {} : { boardSerial }),
    ...(chassisSerial === undefined ? {} : { chassisSerial }),
  };
}

/** The hex digits of a UUID in the order of its text; undefined: it is none. */
export function guidHexOf(text: string | undefined): string | undefined {
  const digits = text?.replaceAll('-', '').toLowerCase();
  return digits !== undefined && /^[0-9a-f]{32}$/.test(digits) ? digits : undefined;
}

export function chassisPathOf({ body }: Resource): string | undefined {
  return pathsAt(objectAt(body, 'Links'), 'Chassis')[0];
}

/** Known properties of the system that is meant. */
export interface ExpectedSystem {
  readonly guidHex?: string;
  readonly serial?: string;
}

/** The properties by which a system is found again; undefined: it shows none. */
export function knownOf(system: Resource): ExpectedSystem | undefined {
  const { guidHex, serial } = identityOf(system, undefined);
  if (guidHex === undefined && serial === undefined) return undefined;
  return {
    ...(guidHex === undefined ? {} : { guidHex }),
    ...(serial === undefined ? {} : { serial }),
  };
}

/** Whether this is the one: something that is known must be equal, and nothing different. */
function isExpected(system: Resource, { guidHex, serial }: ExpectedSystem): boolean {
  const identity = identityOf(system, undefined);
  const pairs = [
    [guidHex, identity.guidHex],
    [serial, identity.serial],
  ].filter(([wanted, seen]) => wanted !== undefined && seen !== undefined);
  return pairs.length > 0 && pairs.every(([wanted, seen]) => wanted === seen);
}

/** The one of several systems that fits the known properties of the host, or none. */
export async function systemAmong(
  paths: readonly string[],
  expected: ExpectedSystem | undefined,
  get: Get,
): Promise<BmcResult<Resource>> {
  const fitting: Resource[] = [];
  const unread = new FirstFailure();
  for (const path of expected === undefined ? [] : paths) {
    const system = await get(path);
    if (system.kind === 'transient') return system;
    if (system.kind === 'ok' && expected !== undefined && isExpected(system.value, expected)) {
      fitting.push(system.value);
    }
    unread.note(system);
  }
  const [only] = fitting;
  if (only !== undefined && fitting.length === 1) return ok(only);
  if (unread.failure !== undefined && fitting.length === 0) return unread.failure;
  const fit = fitting.length === 0 ? 'none of them fits' : `${fitting.length} of them fit`;
  const message = `the BMC manages ${paths.length} systems, and ${fit} what is known of the host`;
  return failed('ambiguous', message, paths.join(', ').slice(0, 512));
}
