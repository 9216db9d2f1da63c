/** The host with a disk is found by the disk’s name, and never by a scan over all hosts. */
import { create, type DescMessage, type MessageShape } from '@bufbuild/protobuf';
import {
  agent,
  RunPhase,
  StorageDeviceSchema,
  Transport,
  store as wire,
} from '@rackwright/messages';
import { nodeRandom } from '@rackwright/platform/node';
import { openMemoryStore, storeKey } from '@rackwright/store';
import { beforeEach, expect, test } from 'vitest';
import { deleteRecord, type RecordWriter, readRecord, writeRecord } from '../../records/index.ts';
import type { HostEvent } from '../pass/types.ts';
import { noteDisks, releaseDisks } from './known-disks.ts';

const random = nodeRandom();
let writer: RecordWriter;
let reads = 0;

beforeEach(async () => {
  const store = await openMemoryStore({ random });
  const get = store.get.bind(store);
  const list = () => Promise.reject(new Error('nothing may be listed'));
  const counted = async (key: string) => {
    reads += 1;
    return await get(key);
  };
  writer = { store: Object.assign(store, { get: counted, list }) };
});

type Disk = { readonly serial?: string; readonly wwn?: string };

function inventoryOf(disks: readonly Disk[]) {
  const sizeBytes = 1_000_000n;
  const regions = [{ name: 'sda', sizeBytes, logicalBlockBytes: 512 }];
  const devices = disks.map((disk) =>
    create(StorageDeviceSchema, { ...disk, sizeBytes, transport: Transport.SATA, regions }),
  );
  return { devices };
}

/** The host is inspected: stores its disks like a reconcile; returns their owners. */
async function inspect(id: string, disks: readonly Disk[], phase: RunPhase = RunPhase.ENDED) {
  const [name, uid] = [`hosts/${id}`, `u-${id}`];
  const operation = { operation: { id: 'op' } };
  const host = { name, uid, status: { run: { phase } } };
  const record = create(wire.HostRecordSchema, { host, operation });
  const inventory = inventoryOf(disks);
  const value = create(agent.CompleteSchema, { observations: { inventory } });
  const result = { case: 'complete' as const, value };
  const report = create(agent.ReportSchema, { operationId: 'op', hostUid: uid, result });
  const event: HostEvent = { kind: 'report', report };
  const found = await noteDisks(writer, record, event);
  await put(storeKey('hosts', id), wire.HostRecordSchema, record);
  const facts = create(wire.HostFactsSchema, { hostUid: uid, inventory });
  await put(storeKey('facts', id), wire.HostFactsSchema, facts);
  return Object.fromEntries(found);
}

async function put<D extends DescMessage>(key: string, schema: D, record: MessageShape<D>) {
  const kept = await readRecord(writer.store, schema, key);
  await writeRecord(writer, schema, key, record, kept?.revision ?? 'absent');
}

const disk = { serial: 'S3Z8NB0K', wwn: '0x5002538e40a1b2c3' };

test('the second host that says it has a disk hears who has it, by serial or WWN', async () => {
  expect(await inspect('h1', [disk])).toEqual({});
  expect(await inspect('h1', [disk])).toEqual({});
  expect(await inspect('h2', [{ serial: ' s3z8nb0k' }])).toEqual({ ' s3z8nb0k': 'hosts/h1' });
  const other = { serial: 'OTHER-1', wwn: 'naa.5002538e40a1b2c3' };
  expect(await inspect('h3', [other])).toEqual({ 'OTHER-1': 'hosts/h1' });
});

test('a moved disk is the new host’s once the old one is seen without it, or gone', async () => {
  await inspect('h1', [disk]);
  expect(await inspect('h2', [disk])).not.toEqual({});
  await inspect('h1', []);
  expect(await inspect('h2', [disk])).toEqual({});
  expect(await inspect('h1', [disk])).toEqual({ S3Z8NB0K: 'hosts/h2' });
  const gone = await readRecord(writer.store, wire.HostRecordSchema, 'hosts.h2');
  await deleteRecord(writer, 'hosts.h2', gone?.revision ?? 0);
  expect(await inspect('h1', [disk])).toEqual({});
});

test('a host that is under way and may be about to say so keeps its disk', async () => {
  await inspect('h1', [disk], RunPhase.RUNNING);
  await inspect('h1', [], RunPhase.RUNNING);
  expect(await inspect('h2', [disk])).not.toEqual({});
});

test('a name that bad firmware gives to many disks identifies none of them', async () => {
  for (const serial of ['', '0000000', 'QM00001', 'none']) {
    await inspect('h1', [{ serial, wwn: '0x0' }]);
    expect(await inspect('h2', [{ serial, wwn: '0x0' }])).toEqual({});
  }
});

test('the disks of a removed host are released, and those of no other host', async () => {
  await inspect('h1', [disk]);
  const inventory = create(wire.HostFactsSchema, { inventory: inventoryOf([disk]) }).inventory;
  await releaseDisks(writer, { name: 'hosts/h2', uid: 'u-h2' }, inventory);
  expect(await inspect('h2', [disk])).not.toEqual({});
  await releaseDisks(writer, { name: 'hosts/h1', uid: 'u-h1' }, inventory);
  expect(await inspect('h2', [disk])).toEqual({});
});

test('among 20 and among 200 hosts as much is read for one inspection', async () => {
  const read: number[] = [];
  for (const count of [20, 200]) {
    for (let n = read.length === 0 ? 1 : 20; n < count; n++) {
      await inspect(`h${n}`, [{ serial: `SERIAL-${n}` }]);
    }
    reads = 0;
    await inspect(`new${count}`, [{ serial: `NEW-${count}` }, { serial: 'SERIAL-7' }]);
    read.push(reads);
  }
  expect(read[1]).toBe(read[0]);
});
