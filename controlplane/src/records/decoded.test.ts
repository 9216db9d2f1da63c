/** Records that are decoded once and shared. */
import { clone, create, equals, fromBinary, toBinary } from '@bufbuild/protobuf';
import { store as wire } from '@rackwright/api';
import { seededRandom } from '@rackwright/sim';
import { openMemoryStore, type StateStore } from '@rackwright/store';
import { beforeEach, expect, test } from 'vitest';
import {
  copyOf,
  freezeShared,
  readRecord,
  readShared,
  sharedRecordOf,
  writeRecord,
  writeShared,
} from './index.ts';

const schema = wire.HostRecordSchema;
const key = 'hosts.h1';
let store: StateStore;

function record(name: string): wire.HostRecord {
  const change = { actor: 'somebody', cause: `named ${name}`, time: { seconds: 5n, nanos: 7 } };
  const status = { bmcIdentity: { guid: Uint8Array.of(1, 2, 3) } };
  const spec = { bootMacs: ['a', 'b'], rootDevice: {} };
  return create(schema, { host: { name, labels: { a: 'b' }, spec, status }, change });
}

beforeEach(async () => {
  store = await openMemoryStore({ random: seededRandom(1) });
});

test('what is read twice is decoded once, until it is written again', async () => {
  const written = await writeRecord({ store }, schema, key, record('one'), 'absent');
  const first = await readShared(store, schema, key);
  expect((await readShared(store, schema, key))?.record).toBe(first?.record);
  const revision = written.kind === 'ok' ? written.revision : 0;
  await writeRecord({ store }, schema, key, record('two'), revision);
  expect((await readShared(store, schema, key))?.record.host?.name).toBe('two');
});

test('what this process has written is not decoded, and reads as it was written', async () => {
  const mine = record('one');
  await writeShared({ store }, schema, key, mine, 'absent');
  expect((await readShared(store, schema, key))?.record).toBe(mine);
  const decoded = await readRecord(store, schema, key);
  expect(decoded !== undefined && equals(schema, decoded.record, mine)).toBe(true);
});

test('what is read late does not take the place of what is newer', async () => {
  await writeRecord({ store }, schema, key, record('one'), 'absent');
  const late = await store.get(key);
  if (late.kind === 'absent') throw new Error('it was written');
  await writeRecord({ store }, schema, key, record('two'), late.revision);
  const newer = await readShared(store, schema, key);
  expect(sharedRecordOf(store, schema, late).host?.name).toBe('one');
  expect((await readShared(store, schema, key))?.record).toBe(newer?.record);
});

test('a write that lost leaves what stands', async () => {
  await writeRecord({ store }, schema, key, record('one'), 'absent');
  const lost = await writeShared({ store }, schema, key, record('two'), 'absent');
  expect(lost).toEqual({ kind: 'conflict' });
  expect((await readShared(store, schema, key))?.record.host?.name).toBe('one');
});

test('in tests, whoever changes what is shared fails', async () => {
  freezeShared(store);
  await writeRecord({ store }, schema, key, record('one'), 'absent');
  const shared = (await readShared(store, schema, key))?.record;
  expect(() => shared?.requestIds.push('r')).toThrow(TypeError);
  expect(() => Object.assign(shared?.host ?? {}, { name: 'other' })).toThrow(TypeError);
});

test('a copy is what a clone is, unknown fields included, and is changed alone', () => {
  // Field 4000 is one that nobody knows.
  const unknown = Uint8Array.of(0x82, 0xfa, 0x01, 0x01, 0x2a);
  const known = toBinary(schema, record('one'));
  const original = fromBinary(schema, Uint8Array.of(...known, ...unknown));
  const before = toBinary(schema, original);
  const copied = copyOf(original);
  expect(toBinary(schema, copied)).toEqual(toBinary(schema, clone(schema, original)));
  expect(toBinary(schema, copied)).toEqual(before);
  copied.requestIds.push('r');
  const { host } = copied;
  if (host?.spec === undefined || host.status?.bmcIdentity === undefined) throw new Error('lost');
  host.labels['a'] = 'c';
  host.spec.bootMacs.push('c');
  host.status.bmcIdentity.guid[0] = 9;
  delete copied.change;
  expect(toBinary(schema, original)).toEqual(before);
});
