import { create } from '@bufbuild/protobuf';
import { adviceFor } from '@rackwright/controlplane/testing';
import { BmcProtocol, failureNames, store } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { understand } from './errands.ts';

const record = create(store.HostRecordSchema, {
  host: {
    name: 'hosts/h1',
    spec: {
      bmc: { address: '10.0.0.1', protocol: BmcProtocol.IPMI, credential: 'credentials/bmc' },
    },
    status: {},
  },
  image: `registry.example/os@sha256:${'1'.repeat(64)}`,
});

test.each([...failureNames, 'unreachable' as const])(
  'somebody who does what is advised against %s knows what each line means',
  (name) => {
    const lines = adviceFor(name, record);
    expect(lines).not.toEqual([]);
    for (const line of lines) expect(understand(line, undefined).kind, line).not.toBe('unclear');
  },
);
