/** The common form of the simulated BMC's resources. */
import type { RedfishJsonObject } from './messages.ts';

export function resource(type: string, path: string, id: string, name: string): RedfishJsonObject {
  return { '@odata.type': `#${type}`, '@odata.id': path, Id: id, Name: name };
}

export function collection(
  of: string,
  path: string,
  members: readonly string[],
): RedfishJsonObject {
  return {
    '@odata.type': `#${of}Collection.${of}Collection`,
    '@odata.id': path,
    Name: `${of} Collection`,
    Members: members.map(link),
    'Members@odata.count': members.length,
  };
}

export function link(path: string): RedfishJsonObject {
  return { '@odata.id': path };
}

/** The part of a list that a call asks for, and the place of the next one (DSP0266 §7.5). */
export function pageOf(
  list: RedfishJsonObject,
  target: string,
  membersMax: number,
): RedfishJsonObject {
  const { Members: members, '@odata.id': path } = list;
  if (!Array.isArray(members) || typeof path !== 'string') return list;
  const first = Number(/[?&]\$skip=(\d{1,6})/.exec(target)?.[1] ?? 0);
  const end = first + membersMax;
  const next = members.length > end ? { 'Members@odata.nextLink': `${path}?$skip=${end}` } : {};
  return { ...list, Members: members.slice(first, end), ...next };
}
