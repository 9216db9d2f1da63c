/** A creation that loses one of its addresses to another one after its record was written. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { store as wire } from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import {
  addSurroundings,
  type Fixture,
  failureOf,
  specOf,
  startFixture,
} from '../../services/rpc.fixture.ts';
import { reservedValues } from '../index.ts';

let fixture: Fixture;

beforeEach(async () => {
  fixture = await startFixture();
  await addSurroundings(fixture);
});

afterEach(async () => {
  vi.restoreAllMocks();
  await fixture.stop();
});

/** As a reconcile of the host would write its record. */
async function writeAgain(key: string): Promise<void> {
  const found = await fixture.store.get(key);
  if (found.kind !== 'found') throw new Error(`${key} is not there`);
  const record = fromBinary(wire.HostRecordSchema, found.value);
  record.runCount += 1n;
  await fixture.store.put(key, toBinary(wire.HostRecordSchema, record), found.revision);
}

/** Another creation, which has read before this one's record existed. */
async function takeFirstAddress(): Promise<void> {
  const { spec } = await fixture.hosts.getHost({ name: 'hosts/h1' });
  const [value] = spec === undefined ? [] : reservedValues(spec);
  if (value === undefined) throw new Error('the host has no address');
  const found = await fixture.store.get(value.key);
  if (found.kind !== 'found') throw new Error('the address is not reserved');
  const rival = create(wire.ReservationSchema, { holder: 'hosts/h2', holderUid: 'u2' });
  await fixture.store.put(value.key, toBinary(wire.ReservationSchema, rival), found.revision);
}

test('a refused creation leaves no host, even if the first pass has written it', async () => {
  const { hosts, store } = fixture;
  const key = storeKey('hosts', 'h1');
  const put = store.put.bind(store);
  let written = false;
  vi.spyOn(store, 'put').mockImplementation(async (...args) => {
    const result = await put(...args);
    if (args[0] !== key || written) return result;
    written = true;
    await writeAgain(key);
    await takeFirstAddress();
    return result;
  });
  const failure = await failureOf(hosts.createHost({ hostId: 'h1', host: { spec: specOf(1) } }));
  expect(failure.message).toContain('took one of the addresses of hosts/h1');
  expect((await store.get(key)).kind).toBe('absent');
  const again = await hosts.createHost({ hostId: 'h3', host: { spec: specOf(1) } });
  expect(again.name).toBe('hosts/h3');
});
