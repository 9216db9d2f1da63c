/**
 * Settings of a machine's firmware (DSP0268: Bios, AttributeRegistry; DSP0266, settings resource).
 *
 * 1. A change waits for the next boot: only what is read back after that counts.
 * 2. A value that the BMC's own list of settings forbids is not sent. Where no such list can be
 *    read, the BMC is left to judge.
 * 3. No password is read or set.
 */
import { type BiosSettings, type BmcAssertion, type BmcResult, failed, ok } from '../driver.ts';
import { mayHaveHappened, readUntil } from '../read-back.ts';
import { type BiosSetting, type BmcBios, biosSettingsMax } from '../readings.ts';
import { type ActCalls, isRefused, readBy } from './acting.ts';
import type { Get, Resource } from './conversation.ts';
import { type JsonObject, numberAt, objectAt, objectsAt, pathOf, textAt } from './json.ts';
import { listedIn } from './pages.ts';

const valueCharactersMax = 256;
const nameCharactersMax = 128;
const registriesMax = 256;
const valuesShownMax = 16;
const messageCharactersMax = 512;

export async function readBios(system: Resource, get: Get): Promise<BmcResult<BmcBios>> {
  const bios = await findBios(system, get);
  if (bios.kind !== 'ok') return bios;
  const { current, pending } = bios.value;
  const names = Object.keys(current).filter((name) => name.length <= nameCharactersMax);
  const settings = names
    .toSorted()
    .slice(0, biosSettingsMax)
    .map((name) => settingOf(name, current, pending));
  return ok({ settings, complete: settings.length === Object.keys(current).length });
}

/** Has the next boot apply `wanted`. Not `changed`: it holds, and nothing else waits. */
export async function stageBios(
  system: Resource,
  wanted: BiosSettings,
  calls: ActCalls,
): Promise<BmcResult<BmcAssertion>> {
  const bios = await findBios(system, readBy(calls));
  if (bios.kind !== 'ok') return bios;
  const { current, target } = bios.value;
  const names = [...wanted.keys()];
  const unknown = refusalOfUnknown(names, current);
  if (unknown !== undefined) return unknown;
  const isStaged = (now: Pick<Bios, 'current' | 'pending'>, name: string): boolean => {
    const next = settingOf(name, now.current, now.pending);
    return (next.pending ?? next.current) === wanted.get(name);
  };
  const open = names.filter((name) => !isStaged(bios.value, name));
  const isSet = names.every((name) => textOf(current[name]) === wanted.get(name));
  if (open.length === 0) return ok({ changed: !isSet, notes: [] });
  const registry = await readRegistry(bios.value, calls);
  if (registry.kind === 'transient') return registry;
  const entries = registry.kind === 'ok' ? registry.value : undefined;
  const body: Record<string, unknown> = {};
  for (const name of open) {
    const value = valueFor(name, wanted.get(name) ?? '', current[name], entries?.get(name));
    if (value.kind !== 'ok') return value;
    body[name] = value.value;
  }
  const apply = bios.value.appliesOnReset ? onReset : {};
  const change = { Attributes: body, ...apply };
  const changed = await calls.governed((talk) => talk.patch(target, change, calls.signal));
  if (isRefused(changed)) {
    return failed('settingRefused', `the BMC refused ${open.join(', ')}`, changed.backendText);
  }
  if (changed.kind !== 'ok' && !mayHaveHappened(changed)) return changed;
  const { clock, readBack, signal } = calls;
  const read = () => findBios(system, readBy(calls));
  const holds = (now: Bios): boolean => open.every((name) => isStaged(now, name));
  const after = await readUntil(clock, readBack, read, holds, signal);
  if (after.kind !== 'ok') return after;
  if (holds(after.value)) return ok({ changed: true, notes: [] });
  if (changed.kind !== 'ok') return changed;
  const lost = open.filter((name) => !isStaged(after.value, name)).join(', ');
  return failed('notApplied', bounded(`the BMC accepted and did not keep ${lost}`));
}

/** Waits until `wanted` holds; the caller orders the boot that applies it. */
export async function checkBios(
  system: Resource,
  wanted: BiosSettings,
  calls: ActCalls,
): Promise<BmcResult<BmcAssertion>> {
  const { clock, readBack, signal } = calls;
  const first = await findBios(system, readBy(calls));
  if (first.kind === 'failed') return first;
  const unknown = first.kind === 'ok' && refusalOfUnknown([...wanted.keys()], first.value.current);
  if (unknown) return unknown;
  const openIn = ({ current }: Bios): string[] =>
    [...wanted.keys()].filter((name) => textOf(current[name]) !== wanted.get(name));
  const read = () => findBios(system, readBy(calls));
  const after = await readUntil(clock, readBack, read, (now) => openIn(now).length === 0, signal);
  if (after.kind !== 'ok') return after;
  const open = openIn(after.value);
  if (open.length === 0) return ok({ changed: false, notes: [] });
  const { current, pending } = after.value;
  const text = open
    .slice(0, valuesShownMax)
    .map((name) => `${name} is ${shown(name, current)}`)
    .join(', ');
  const waits = open.every((name) => textOf(pending[name]) === wanted.get(name));
  if (waits) return failed('stillPending', 'no boot has taken the settings yet', bounded(text));
  const message = `the firmware did not take ${open.join(', ')}`;
  return failed('notApplied', bounded(message), bounded(text));
}

function refusalOfUnknown(names: readonly string[], current: JsonObject) {
  const unknown = names.filter((name) => !Object.hasOwn(current, name));
  if (unknown.length === 0) return undefined;
  return failed('settingUnknown', bounded(`the firmware has no setting ${unknown.join(', ')}`));
}

const onReset = {
  '@Redfish.SettingsApplyTime': {
    '@odata.type': '#Settings.v1_3_0.PreferredApplyTime',
    ApplyTime: 'OnReset',
  },
};

interface Bios {
  readonly current: JsonObject;
  readonly pending: JsonObject;
  /** The resource to change: the settings resource, or the one itself where it has none. */
  readonly target: Resource;
  readonly appliesOnReset: boolean;
  readonly registry: string | undefined;
}

async function findBios(system: Resource, get: Get): Promise<BmcResult<Bios>> {
  const path = pathOf(objectAt(system.body, 'Bios'));
  if (path === undefined) return failed('unsupported', 'the BMC shows no settings of the firmware');
  const bios = await get(path);
  if (bios.kind !== 'ok') return bios;
  const { body } = bios.value;
  const settings = objectAt(body, '@Redfish.Settings');
  const settingsPath = pathOf(objectAt(settings, 'SettingsObject'));
  const target = settingsPath === undefined ? bios : await get(settingsPath);
  if (target.kind !== 'ok') return target;
  const times = [settings['SupportedApplyTimes'], body['@Redfish.SettingsApplyTime']];
  return ok({
    current: objectAt(body, 'Attributes'),
    pending: settingsPath === undefined ? {} : objectAt(target.value.body, 'Attributes'),
    target: target.value,
    appliesOnReset: times.some((one) => Array.isArray(one) && one.includes('OnReset')),
    registry: textAt(body, 'AttributeRegistry'),
  });
}

function settingOf(name: string, current: JsonObject, pending: JsonObject): BiosSetting {
  const now = shown(name, current);
  if (!Object.hasOwn(pending, name)) return { name, current: now };
  const next = shown(name, pending);
  return next === now ? { name, current: now } : { name, current: now, pending: next };
}

/** (3) Services show no passwords by the standard. This hides them also where a service does. */
function shown(name: string, values: JsonObject): string {
  return isPassword(name) ? '' : textOf(values[name]);
}

function isPassword(name: string): boolean {
  return /passw(or)?d|pwd/i.test(name);
}

function textOf(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return value.replaceAll(/\p{Cc}/gu, '').slice(0, valueCharactersMax);
    case 'number':
    case 'boolean':
      return String(value);
    default:
      return '';
  }
}

type Registry = ReadonlyMap<string, JsonObject>;

/** The BMC's own list of settings (DSP0268, AttributeRegistry); a failure: it has none to read. */
async function readRegistry(
  { registry: wanted }: Bios,
  calls: ActCalls,
): Promise<BmcResult<Registry>> {
  const none = failed('unsupported', 'the BMC lists no settings');
  if (wanted === undefined) return none;
  const get = readBy(calls);
  const root = await calls.governed((talk) => talk.open(calls.signal));
  if (root.kind !== 'ok') return root;
  const path = pathOf(objectAt(root.value, 'Registries'));
  const list = path === undefined ? none : await listedIn(path, get, registriesMax);
  if ('kind' in list) return list;
  const at = list.paths.find((one) => one.slice(one.lastIndexOf('/') + 1).startsWith(wanted));
  const file = at === undefined ? none : await get(at);
  if (file.kind !== 'ok') return file;
  const [uri] = objectsAt(file.value.body, 'Location').flatMap((one) => pathOf(one, 'Uri') ?? []);
  const registry = uri === undefined ? none : await get(uri);
  if (registry.kind !== 'ok') return registry;
  const entries = objectsAt(objectAt(registry.value.body, 'RegistryEntries'), 'Attributes');
  return ok(new Map(entries.map((entry) => [textAt(entry, 'AttributeName') ?? '', entry])));
}

/** The value as the BMC takes it, or why it does not. */
function valueFor(
  name: string,
  text: string,
  now: unknown,
  entry: JsonObject = {},
): BmcResult<string | number | boolean> {
  const refuse: Refuse = (why) => failed('settingRefused', bounded(`${name} ${why}`));
  const type = textAt(entry, 'Type') ?? typeNames[typeof now];
  if (type === 'Password' || isPassword(name)) return refuse('is a password, which no step sets');
  if (entry['ReadOnly'] === true) return refuse('can be read only');
  switch (type) {
    case 'Boolean':
      if (text === 'true' || text === 'false') return ok(text === 'true');
      return refuse(`must be true or false, not ${text}`);
    case 'Integer':
      return integerFor(text, entry, refuse);
    case 'Enumeration':
      return wordFor(text, entry, refuse);
    default:
      return textFor(text, entry, refuse);
  }
}

type Refuse = (why: string) => BmcResult<never>;

function wordFor(text: string, entry: JsonObject, refuse: Refuse): BmcResult<string> {
  const values = objectsAt(entry, 'Value').flatMap((one) => textAt(one, 'ValueName') ?? []);
  if (values.length === 0 || values.includes(text)) return ok(text);
  return refuse(`must be one of ${values.slice(0, valuesShownMax).join(', ')}, not ${text}`);
}

function textFor(text: string, entry: JsonObject, refuse: Refuse): BmcResult<string> {
  const least = numberAt(entry, 'MinLength') ?? 0;
  const most = numberAt(entry, 'MaxLength') ?? valueCharactersMax;
  if (text.length >= least && text.length <= most) return ok(text);
  return refuse(`must have ${least} to ${most} characters`);
}

const typeNames: Readonly<Record<string, string>> = { boolean: 'Boolean', number: 'Integer' };

function integerFor(text: string, entry: JsonObject, refuse: Refuse): BmcResult<number> {
  const [least, most] = [numberAt(entry, 'LowerBound'), numberAt(entry, 'UpperBound')];
  const isWhole = /^-?\d{1,15}$/.test(text) && String(Number(text)) === text;
  const value = isWhole ? Number(text) : undefined;
  const fits = value !== undefined && value >= (least ?? value) && value <= (most ?? value);
  if (value !== undefined && fits) return ok(value);
  return refuse(`must be a whole number ${least ?? 'any'} to ${most ?? 'any'}, not ${text}`);
}

function bounded(text: string): string {
  return text.slice(0, messageCharactersMax);
}
