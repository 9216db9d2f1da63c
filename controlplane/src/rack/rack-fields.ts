/** Filter and order fields of racks, also for watches. */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { Rack } from '@rackwright/messages';
import type { FilterFields } from '../filter/index.ts';

/** The fields of a rack, for `ListRacksRequest.filter`. */
export const rackFields: FilterFields<Rack> = {
  name: { kind: 'text', of: ({ name }) => name, collection: 'racks' },
  uid: { kind: 'text', of: ({ uid }) => uid },
  labels: { kind: 'map', of: ({ labels }) => labels },
  display_name: {
    kind: 'text',
    of: ({ spec }) => spec?.displayName ?? '',
    path: 'spec.display_name',
  },
  connected: {
    kind: 'flag',
    of: ({ status }) => status?.agentConnected === true,
    path: 'status.agent_connected',
  },
  agent_version: {
    kind: 'text',
    of: ({ status }) => status?.agentVersion ?? '',
    path: 'status.agent_version',
  },
  frozen: { kind: 'flag', of: ({ status }) => status?.freeze !== undefined },
  last_seen_time: {
    kind: 'time',
    of: ({ status }) => status?.lastSeenTime && timestampMs(status.lastSeenTime),
    path: 'status.last_seen_time',
  },
  create_time: { kind: 'time', of: ({ createTime }) => createTime && timestampMs(createTime) },
  update_time: { kind: 'time', of: ({ updateTime }) => updateTime && timestampMs(updateTime) },
};
