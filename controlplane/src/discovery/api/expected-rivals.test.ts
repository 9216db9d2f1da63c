import { create, toBinary } from '@bufbuild/protobuf';
import { type ExpectedHost, ExpectedHostSchema, store as wire } from '@rackwright/messages';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { openMemoryStore, type StateStore, storeKey } from '@rackwright/store';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FleetView } from '../../fleet-view/index.ts';
import { refuseRival } from './expected-rivals.ts';

let listed = 0;
let store: StateStore;
let fleetView: FleetView;

beforeEach(async () => {
  listed = 0;
  const faults = ({ kind }: { readonly kind: string }) => {
    if (kind === 'list') listed += 1;
    return { kind: 'none' } as const;
  };
  store = await openMemoryStore({ random: nodeRandom(), faults });
  const log = { info: () => undefined, warn: () => undefined };
  fleetView = new FleetView({ store, clock: nodeClock(), log, retryDelayMs: 10 });
});
afterEach(() => fleetView.stop());

function line(id: string, match: object, host = ''): ExpectedHost {
  return create(ExpectedHostSchema, { name: `expectedHosts/${id}`, match, host });
}

async function write(expectedHost: ExpectedHost): Promise<void> {
  const key = storeKey('expectedHosts', expectedHost.name.slice('expectedHosts/'.length));
  const before = await store.get(key);
  const record = create(wire.ExpectedHostRecordSchema, { expectedHost });
  const expected = before.kind === 'found' ? before.revision : 'absent';
  await store.put(key, toBinary(wire.ExpectedHostRecordSchema, record), expected);
}

const refuse = (made: ExpectedHost) => refuseRival({ fleetView }, made);

test('a thousand new lines cause no second listing of lines', async () => {
  await refuse(line('h0', { serial: 'SN-0' }));
  const before = listed;
  for (let n = 0; n < 1_000; n += 1) {
    const made = line(`h${n}`, { serial: `SN-${n}` });
    await refuse(made);
    await write(made);
  }
  expect(listed).toBe(before);
  await expect(refuse(line('x', { serial: 'sn-7' }))).rejects.toThrow(
    'expected_host.match.serial is that of expectedHosts/h7 too',
  );
  await refuse(line('h7', { serial: 'SN-7' }));
});

test('the current record of a rival in the store decides, whoever wrote it', async () => {
  await write(line('a', { mac: '52:54:00:00:00:01' }));
  const other = line('b', { mac: '52:54:00:00:00:01' });
  await expect(refuse(other)).rejects.toThrow('match.mac is that of expectedHosts/a');
  await write(line('a', { mac: '52:54:00:00:00:01' }, 'hosts/a'));
  await refuse(other);
  await write(line('a', { mac: '52:54:00:00:00:02' }));
  await refuse(other);
  await write(line('c', { bmcAddress: '192.0.2.1' }));
  await expect(refuse(line('d', { bmcAddress: '192.0.2.1' }))).rejects.toThrow(
    'expected_host.match.bmc_address is that of expectedHosts/c too',
  );
});

test('the number of lines is limited; at the limit existing lines can be changed', async () => {
  for (let n = 0; n < 10_000; n += 1) await write(line(`h${n}`, {}));
  await expect(refuse(line('x', {}))).rejects.toThrow('10000 lines already');
  await refuse(line('h3', {}));
});
