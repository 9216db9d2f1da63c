/** A host for this folder's tests. */
import { create } from '@bufbuild/protobuf';
import { HostSchema } from '@rackwright/messages';

export const bareHost = create(HostSchema, {
  name: 'hosts/h1',
  uid: '4f6c',
  labels: { role: 'worker' },
  spec: {
    rack: 'racks/r1',
    bmc: { address: '192.0.2.7', credential: 'credentials/bmc' },
    bootMacs: ['52:54:00:00:00:01'],
  },
});
