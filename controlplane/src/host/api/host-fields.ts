/** Filter and order fields of hosts: the view's rows have all of them. */
import {
  FailureTypeSchema,
  HostGoalSchema,
  HostStateSchema,
  RunKindSchema,
} from '@rackwright/messages';
import type { FilterFields } from '../../filter/index.ts';
import type { HostRow } from '../../fleet-view/index.ts';

/** The fields of a row with its name, for `ListHostsRequest.filter`. */
export const hostFields: FilterFields<HostRow> = {
  name: { kind: 'text', of: ({ hostId }) => `hosts/${hostId}`, collection: 'hosts' },
  uid: { kind: 'text', of: ({ uid }) => uid },
  rack: { kind: 'text', of: ({ rack }) => rack, collection: 'racks', path: 'spec.rack' },
  credential: {
    kind: 'text',
    of: ({ credential }) => credential,
    collection: 'credentials',
    path: 'spec.bmc.credential',
  },
  labels: { kind: 'map', of: ({ labels }) => labels },
  'bmc.address': {
    kind: 'text',
    of: ({ bmcAddress }) => bmcAddress,
    folds: true,
    path: 'spec.bmc.address',
  },
  boot_macs: { kind: 'texts', of: ({ bootMacs }) => bootMacs, folds: true, path: 'spec.boot_macs' },
  serial: { kind: 'texts', of: ({ serials }) => serials, folds: true },
  goal: { kind: 'choice', of: ({ goal }) => goal, choices: HostGoalSchema, path: 'spec.goal' },
  retired: { kind: 'flag', of: ({ retired }) => retired, path: 'spec.retired' },
  state: {
    kind: 'choice',
    of: ({ state }) => state,
    choices: HostStateSchema,
    path: 'status.state',
  },
  dirty: { kind: 'flag', of: ({ dirty }) => dirty, path: 'status.dirty' },
  power: { kind: 'flag', of: ({ poweredOn }) => poweredOn, path: 'status.powered_on' },
  claim: { kind: 'text', of: ({ claim }) => claim, path: 'status.claim.by' },
  image: { kind: 'text', of: ({ image }) => image, path: 'status.image' },
  run: { kind: 'choice', of: ({ runKind }) => runKind, choices: RunKindSchema },
  waiting: { kind: 'text', of: ({ waiting }) => waiting },
  fault: { kind: 'texts', of: ({ faults }) => faults },
  failure: {
    kind: 'choice',
    of: ({ failure }) => failure,
    choices: FailureTypeSchema,
    path: 'status.last_error.failure.type',
  },
  held: { kind: 'flag', of: ({ held }) => held },
  deleting: { kind: 'flag', of: ({ deleting }) => deleting },
  create_time: { kind: 'time', of: ({ createMs }) => createMs },
  update_time: { kind: 'time', of: ({ updateMs }) => updateMs },
};
