/**
 * The differences between two states of a host, field by field; pure.
 *
 * Invariants:
 * 1. Each difference names its field as the API does: "spec.power", "labels[role]",
 *    "status.inventory.devices[SERIAL].firmware".
 * 2. Members of a list are compared by name where names are unique, otherwise by index.
 * 3. Computed fields (display, progress, agent_connected, etag, update_time) make no difference.
 */
import type { DescEnum, DescField, DescMessage } from '@bufbuild/protobuf';
import {
  type ReflectList,
  type ReflectMap,
  type ReflectMessage,
  reflect,
} from '@bufbuild/protobuf/reflect';
import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import { type Host, HostSchema } from '@rackwright/messages';

/** One field, as text; an absent side has no text. */
export interface HostFieldDifference {
  readonly path: string;
  readonly before: string;
  readonly after: string;
}

const differencesMax = 1_000;
const textCharsMax = 500;

const served: ReadonlySet<string> = new Set([
  'etag',
  'update_time',
  'status.display',
  'status.progress',
  'status.agent_connected',
]);

/** The name fields of list members, by message type: the first that is set counts. */
const naturalKeys: Readonly<Record<string, readonly string[]>> = {
  'rackwright.v1.Fault': ['type'],
  'rackwright.v1.Hold': ['reason'],
  'rackwright.v1.StorageDevice': ['serial', 'wwn', 'device'],
  'rackwright.v1.StorageRegion': ['name'],
  'rackwright.v1.NetworkInterface': ['mac', 'name'],
  'rackwright.v1.LldpNeighbor': ['port_id'],
  'rackwright.v1.MemoryModule': ['slot'],
  'rackwright.v1.FirmwareVersion': ['name'],
};

/** All differences, in the order of the fields; the last one says that there were too many. */
export function diffHosts(before: Host, after: Host): readonly HostFieldDifference[] {
  const found: HostFieldDifference[] = [];
  diffMessage('', reflect(HostSchema, before), reflect(HostSchema, after), found);
  if (found.length <= differencesMax) return found;
  const more = `${found.length - differencesMax} further fields differ`;
  return [...found.slice(0, differencesMax), { path: '…', before: '', after: more }];
}

type Message = ReflectMessage | undefined;

function diffMessage(
  path: string,
  before: Message,
  after: Message,
  found: HostFieldDifference[],
): void {
  const fields = (after ?? before)?.desc.fields ?? [];
  for (const field of fields) {
    const at = path === '' ? field.name : `${path}.${field.name}`;
    if (served.has(at)) continue;
    const a = before?.isSet(field) === true ? before : undefined;
    const b = after?.isSet(field) === true ? after : undefined;
    if (a !== undefined || b !== undefined) diffField(at, field, a, b, found);
  }
}

function diffField(
  path: string,
  field: DescField,
  before: Message,
  after: Message,
  found: HostFieldDifference[],
): void {
  switch (field.fieldKind) {
    case 'message':
      if (isPlain(field.message)) {
        const text = (message: Message) => (message ? timeText(message.get(field)) : '');
        return addIfDifferent(path, text(before), text(after), found);
      }
      return diffMessage(path, before?.get(field), after?.get(field), found);
    case 'list': {
      const a = before === undefined ? [] : members(field, before.get(field));
      const b = after === undefined ? [] : members(field, after.get(field));
      return diffMembers(path, byName(a), byName(b), found, a, b);
    }
    case 'map': {
      const a = before === undefined ? new Map() : entries(field, before.get(field));
      const b = after === undefined ? new Map() : entries(field, after.get(field));
      return diffNamed(path, a, b, found);
    }
    default: {
      const text = (message: Message) =>
        message === undefined ? '' : scalarText(field.enum, message.get(field));
      addIfDifferent(path, text(before), text(after), found);
    }
  }
}

/** A member of a list or map: a message, or a plain value as text. */
type Member = ReflectMessage | string;

function members(field: DescField & { fieldKind: 'list' }, list: ReflectList): Member[] {
  return [...list].map((each) =>
    field.listKind === 'message' ? (each as ReflectMessage) : scalarText(field.enum, each),
  );
}

function entries(field: DescField & { fieldKind: 'map' }, map: ReflectMap): Map<string, Member> {
  return new Map(
    [...map].map(([key, value]) => [
      String(key),
      field.mapKind === 'message' ? (value as ReflectMessage) : scalarText(field.enum, value),
    ]),
  );
}

/** Invariant 2: the members by name; undefined when names are missing or not unique. */
function byName(list: readonly Member[]): Map<string, Member> | undefined {
  const named = new Map<string, Member>();
  for (const member of list) {
    const name = typeof member === 'string' ? undefined : nameOf(member);
    if (name === undefined || named.has(name)) return undefined;
    named.set(name, member);
  }
  return named;
}

function nameOf(member: ReflectMessage): string | undefined {
  for (const name of naturalKeys[member.desc.typeName] ?? []) {
    const field = member.desc.fields.find((each) => each.name === name);
    const value = field === undefined ? '' : member.get(field);
    if (typeof value === 'string' && value !== '') return value;
  }
  return undefined;
}

function diffMembers(
  path: string,
  before: Map<string, Member> | undefined,
  after: Map<string, Member> | undefined,
  found: HostFieldDifference[],
  beforeList: readonly Member[],
  afterList: readonly Member[],
): void {
  if (before !== undefined && after !== undefined) {
    diffNamed(path, before, after, found);
    return;
  }
  const byPosition = (list: readonly Member[]) =>
    new Map(list.map((member, at) => [String(at), member] as const));
  diffNamed(path, byPosition(beforeList), byPosition(afterList), found);
}

function diffNamed(
  path: string,
  before: ReadonlyMap<string, Member>,
  after: ReadonlyMap<string, Member>,
  found: HostFieldDifference[],
): void {
  for (const name of new Set([...before.keys(), ...after.keys()])) {
    const at = `${path}[${name}]`;
    const [a, b] = [before.get(name), after.get(name)];
    if (typeof a === 'string' || typeof b === 'string') {
      addIfDifferent(at, typeof a === 'string' ? a : '', typeof b === 'string' ? b : '', found);
    } else if (a === undefined || b === undefined) {
      const size = found.length;
      diffMessage(at, a, b, found);
      // A message without any set field was still added or removed.
      if (found.length === size)
        found.push({ path: at, before: a ? '{}' : '', after: b ? '{}' : '' });
    } else {
      diffMessage(at, a, b, found);
    }
  }
}

function addIfDifferent(
  path: string,
  before: string,
  after: string,
  found: HostFieldDifference[],
): void {
  if (before !== after) found.push({ path, before: bounded(before), after: bounded(after) });
}

/** Messages that people read as one value. */
function isPlain(message: DescMessage): boolean {
  return message.typeName === 'google.protobuf.Timestamp';
}

function timeText(value: unknown): string {
  const { message } = value as { readonly message: Timestamp };
  return timestampDate(message).toISOString();
}

function scalarText(known: DescEnum | undefined, value: unknown): string {
  if (known !== undefined) {
    const name = known.values.find(({ number }) => number === value)?.localName;
    return name === undefined ? String(value) : name.toLowerCase().replaceAll('_', '-');
  }
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : String(value);
}

function bounded(text: string): string {
  return text.length <= textCharsMax ? text : `${text.slice(0, textCharsMax)}…`;
}
