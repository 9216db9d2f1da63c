/** The virtual drives of the simulated BMC: one for CDs, behind one for floppies (DSP0268). */

import { bmcPath, root } from './management.ts';
import type { RedfishJsonObject } from './messages.ts';
import type { RedfishHabits } from './options.ts';
import { collection, link, resource } from './shapes.ts';

/** The path of the list of drives; undefined: there are none. */
export function mediaPath({ virtualMedia }: RedfishHabits): string | undefined {
  switch (virtualMedia) {
    case 'system':
      return `${root}/Systems/1/VirtualMedia`;
    case 'manager':
      return `${bmcPath}/VirtualMedia`;
    case undefined:
      return undefined;
  }
}

/** What the owner of the drives says of them. */
export function mediaLink(owner: 'system' | 'manager', habits: RedfishHabits): RedfishJsonObject {
  const path = mediaPath(habits);
  return path === undefined || habits.virtualMedia !== owner ? {} : { VirtualMedia: link(path) };
}

export type MediaOrder = 'insert' | 'eject';

/** What a request does to the drive for CDs; undefined: it reads, or is of something else. */
export function mediaOrder(
  method: string,
  path: string,
  body: RedfishJsonObject,
  habits: RedfishHabits,
): MediaOrder | undefined {
  const drives = mediaPath(habits);
  if (drives === undefined || !path.startsWith(`${drives}/Cd`)) return undefined;
  const drive = `${drives}/Cd`;
  if (habits.mediaBy === 'patch') {
    if (path !== drive || method !== 'PATCH') return undefined;
    return body['Image'] === null ? 'eject' : 'insert';
  }
  if (method !== 'POST') return undefined;
  if (path === `${drive}/Actions/VirtualMedia.InsertMedia`) return 'insert';
  return path === `${drive}/Actions/VirtualMedia.EjectMedia` ? 'eject' : undefined;
}

/** Undefined: there is no such resource. */
export function mediaAt(
  path: string,
  habits: RedfishHabits,
  image: string | undefined,
): RedfishJsonObject | undefined {
  const drives = mediaPath(habits);
  switch (drives === undefined ? undefined : path.slice(drives.length)) {
    case '':
      return path === drives
        ? collection('VirtualMedia', path, [`${path}/Floppy`, `${path}/Cd`])
        : undefined;
    case '/Floppy':
      return drive(path, 'Floppy', ['Floppy', 'USBStick'], undefined, habits);
    case '/Cd':
      return drive(path, 'Cd', ['CD', 'DVD'], image, habits);
    default:
      return undefined;
  }
}

function drive(
  path: string,
  id: string,
  MediaTypes: readonly string[],
  image: string | undefined,
  { mediaBy }: RedfishHabits,
): RedfishJsonObject {
  const action = (name: string): RedfishJsonObject => ({
    [`#VirtualMedia.${name}`]: { target: `${path}/Actions/VirtualMedia.${name}` },
  });
  return {
    ...resource('VirtualMedia.v1_3_0.VirtualMedia', path, id, `Virtual ${id}`),
    MediaTypes,
    Image: image ?? null,
    Inserted: image !== undefined,
    WriteProtected: true,
    ConnectedVia: image === undefined ? 'NotConnected' : 'URI',
    ...(mediaBy === 'patch'
      ? {}
      : { Actions: { ...action('InsertMedia'), ...action('EjectMedia') } }),
  };
}
