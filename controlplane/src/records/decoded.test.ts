/** Records that are decoded once and shared. */
import { clone, create, equals, fromBinary, toBinary } from '@bufbuild/protobuf';
import { WireType } from '@bufbuild/protobuf/wire';
import { store as wire } from '@rackwright/messages';
import { seededRandom } from '@rackwright/sim';
import { asWriteId, openMemoryStore, type StateStore } from '@rackwright/store';
import { beforeEach, expect, test } from 'vitest';
import { keepShared } from './decoded.ts';
import {
  copyOf,
  freezeShared,
  readRecord,
  readShared,
  sameMessage,
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
  const diskSpeeds = [{ device: 'sda', readsPerSecond: 5 }];
  const host = { name, labels: { a: 'b' }, spec, status };
  return create(schema, { host, change, diskSpeeds });
}

beforeEach(async () => {
  store = await openMemoryStore({ random: seededRandom(1) });
});

test('a record that is read twice is decoded once, until it is written again', async () => {
  const written = await writeRecord({ store }, schema, key, record('one'), 'absent');
  const first = await readShared(store, schema, key);
  expect((await readShared(store, schema, key))?.record).toBe(first?.record);
  const revision = written.kind === 'ok' ? written.revision : 0;
  await writeRecord({ store }, schema, key, record('two'), revision);
  expect((await readShared(store, schema, key))?.record.host?.name).toBe('two');
});

test('a record that this process wrote is not decoded, and reads as written', async () => {
  const mine = record('one');
  await writeShared({ store }, schema, key, mine, 'absent');
  expect((await readShared(store, schema, key))?.record).toBe(mine);
  const decoded = await readRecord(store, schema, key);
  expect(decoded !== undefined && equals(schema, decoded.record, mine)).toBe(true);
});

test('a record that is read late does not take the place of a newer one', async () => {
  await writeRecord({ store }, schema, key, record('one'), 'absent');
  const late = await store.get(key);
  if (late.kind === 'absent') throw new Error('it was written');
  await writeRecord({ store }, schema, key, record('two'), late.revision);
  const newer = await readShared(store, schema, key);
  expect(sharedRecordOf(store, schema, late).host?.name).toBe('one');
  expect((await readShared(store, schema, key))?.record).toBe(newer?.record);
});

test('a write that lost a race leaves the decoded record', async () => {
  await writeRecord({ store }, schema, key, record('one'), 'absent');
  const lost = await writeShared({ store }, schema, key, record('two'), 'absent');
  expect(lost).toEqual({ kind: 'conflict' });
  expect((await readShared(store, schema, key))?.record.host?.name).toBe('one');
});

test('in tests a change to a shared record throws', async () => {
  freezeShared(store);
  await writeRecord({ store }, schema, key, record('one'), 'absent');
  const shared = (await readShared(store, schema, key))?.record;
  expect(() => shared?.requestIds.push('r')).toThrow(TypeError);
  expect(() => Object.assign(shared?.host ?? {}, { name: 'other' })).toThrow(TypeError);
});

test('a copy is what a clone is, unknown fields included, and is changed alone', () => {
  // Field 4000 is unknown.
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
  // As the next erasure of that disk does.
  for (const speed of copied.diskSpeeds) speed.readsPerSecond = 9;
  delete copied.change;
  expect(toBinary(schema, original)).toEqual(before);
});

test('decoded records are kept up to 64 MiB, and the longest unused goes first', async () => {
  const mebibyte = 1024 * 1024;
  const entryOf = (at: number) => {
    const value = new Uint8Array(mebibyte);
    return { key: `hosts.h${at}`, value, revision: at + 1, writeId: asWriteId(`w${at}`) };
  };
  // Nothing is decoded here: it is stored as written by this process.
  const kept = Array.from({ length: 64 }, (_, at) => {
    const mine = record(`h${at}`);
    keepShared(store, schema, { ...entryOf(at), bytes: mebibyte }, mine);
    return mine;
  });
  for (const at of [0, 15]) expect(sharedRecordOf(store, schema, entryOf(at))).toBe(kept[at]);
  // One more: the least recently used ones are dropped, a tenth at once.
  keepShared(store, schema, { ...entryOf(64), bytes: mebibyte }, record('more'));
  for (const at of [0, 9, 15, 63]) {
    expect(sharedRecordOf(store, schema, entryOf(at))).toBe(kept[at]);
  }
  for (const at of [1, 8]) expect(() => sharedRecordOf(store, schema, entryOf(at))).toThrow();
});

test('a value that replaces another of its key counts once towards the limit', async () => {
  const bytes = 24 * 1024 * 1024;
  const other = record('other');
  keepShared(
    store,
    schema,
    { key: 'hosts.h2', revision: 1, writeId: asWriteId('a'), bytes },
    other,
  );
  for (let revision = 2; revision < 10; revision += 1) {
    keepShared(store, schema, { key, revision, writeId: asWriteId('b'), bytes }, record('again'));
  }
  const entry = {
    key: 'hosts.h2',
    revision: 1,
    writeId: asWriteId('a'),
    value: new Uint8Array(bytes),
  };
  expect(sharedRecordOf(store, schema, entry)).toBe(other);
});

test('a record of another id or kind at the same revision is decoded', () => {
  const mine = record('mine');
  keepShared(store, schema, { key, revision: 1, writeId: asWriteId('a'), bytes: 1 }, mine);
  const value = toBinary(schema, record('theirs'));
  const entry = { key, revision: 1, value };
  expect(sharedRecordOf(store, schema, { ...entry, writeId: asWriteId('b') }).host?.name).toBe(
    'theirs',
  );
  keepShared(store, schema, { key, revision: 2, writeId: asWriteId('a'), bytes: 1 }, mine);
  const same = { key, revision: 2, writeId: asWriteId('a'), value: new Uint8Array() };
  expect(sharedRecordOf(store, wire.RackRecordSchema, same)).not.toBe(mine);
});

test('a record can be changed unless the store is frozen, and then no part of it', async () => {
  const free = record('free');
  keepShared(store, schema, { key, revision: 1, writeId: asWriteId('a'), bytes: 1 }, free);
  free.host = create(schema, { host: { name: 'changed' } }).host;
  freezeShared(store);
  const held = record('held');
  keepShared(store, schema, { key, revision: 2, writeId: asWriteId('b'), bytes: 1 }, held);
  expect(() => Object.assign(held, { change: undefined })).toThrow(TypeError);
  expect(() => Object.assign(held.host ?? {}, { name: 'x' })).toThrow(TypeError);
  expect(() => held.host?.spec?.bootMacs.push('c')).toThrow(TypeError);
});

test('two messages are the same where protobuf says so, and unknown fields count', () => {
  const original = record('h1');
  const changes: ((draft: typeof original) => void)[] = [
    ({ host }) => host?.spec?.bootMacs.push('x'),
    ({ host }) => {
      if (host?.status !== undefined) host.status.poweredOn = false;
    },
    ({ host }) => {
      if (host !== undefined) host.labels['site'] = 'a';
    },
    (draft) => {
      draft.runCount += 1n;
    },
    (draft) => {
      delete draft.host;
    },
    (draft) => {
      draft.$unknown = [{ no: 9_999, wireType: WireType.Varint, data: Uint8Array.of(1) }];
    },
  ];
  expect(sameMessage(original, copyOf(original))).toBe(true);
  const decoded = fromBinary(schema, toBinary(schema, original));
  expect(sameMessage(original, decoded)).toBe(true);
  for (const change of changes) {
    const draft = copyOf(original);
    change(draft);
    expect(sameMessage(original, draft)).toBe(false);
    expect(sameMessage(draft, original)).toBe(false);
    expect(sameMessage(draft, copyOf(draft))).toBe(true);
  }
  const unset = { ...copyOf(original), change: undefined };
  delete original.change;
  expect(sameMessage(original, unset as never)).toBe(true);
});

test('labels with the names of Object properties are compared as any others', () => {
  const labelled = (labels: object) => create(schema, { host: { labels: { ...labels } } });
  const names = ['constructor', 'toString', 'hasOwnProperty', 'valueOf'];
  for (const name of names) {
    expect(sameMessage(labelled({ [name]: 'a' }), labelled({ [name]: 'a' }))).toBe(true);
    for (const other of [{}, { [name]: 'b' }, { a: 'a' }, { [name]: 'a', a: 'a' }]) {
      expect(sameMessage(labelled({ [name]: 'a' }), labelled(other))).toBe(false);
      expect(sameMessage(labelled(other), labelled({ [name]: 'a' }))).toBe(false);
    }
  }
});
