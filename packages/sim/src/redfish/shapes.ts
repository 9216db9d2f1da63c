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
