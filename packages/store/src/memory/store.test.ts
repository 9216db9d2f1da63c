import { nodeRandom } from '@rackwright/platform/node';
import { expect, test } from 'vitest';
import { bytes } from '../conformance/subject.ts';
import { storeConformance } from '../conformance/suite.ts';
import { asWriteId, findWrite } from '../contract.ts';
import { MemoryDisk } from './disk.ts';
import { type MemoryFault, openMemoryStore } from './store.ts';
import { memoryUnderTest } from './subject.ts';

storeConformance('the memory store', () => memoryUnderTest());

async function faulty(faults: MemoryFault[]) {
  const next = () => faults.shift() ?? { kind: 'none' as const };
  return openMemoryStore({ random: nodeRandom(), faults: next });
}

test('a write whose answer is lost is unknown, and ok when repeated by its id', async () => {
  const store = await faulty([{ kind: 'answerLost' }]);
  const lost = await store.put('hosts.a', bytes('one'), 'absent', asWriteId('write-1'));
  expect(lost).toMatchObject({ kind: 'unknown', writeId: 'write-1' });
  expect(await findWrite(store, 'hosts.a', asWriteId('write-1'))).toEqual({
    kind: 'landed',
    revision: 1,
  });
  const again = await store.put('hosts.a', bytes('one'), 'absent', asWriteId('write-1'));
  expect(again).toEqual({ kind: 'ok', revision: 1, writeId: 'write-1' });
});

test('a write whose request is lost is unknown, and made when repeated', async () => {
  const store = await faulty([{ kind: 'requestLost' }]);
  expect((await store.put('hosts.a', bytes('one'), 'absent')).kind).toBe('unknown');
  expect((await store.get('hosts.a')).kind).toBe('absent');
  expect((await store.put('hosts.a', bytes('one'), 'absent')).kind).toBe('ok');
});

test('a late write lands only if nobody wrote meanwhile', async () => {
  const gate = Promise.withResolvers<void>();
  const store = await faulty([{ kind: 'late', until: gate.promise }]);
  expect((await store.put('hosts.a', bytes('late'), 'absent')).kind).toBe('unknown');
  await store.put('hosts.a', bytes('other'), 'absent', asWriteId('write-2'));
  gate.resolve();
  await gate.promise;
  expect(await store.get('hosts.a')).toMatchObject({ kind: 'found', writeId: 'write-2' });
});

test('a read that fails is unavailable', async () => {
  const store = await faulty([{ kind: 'requestLost' }]);
  await expect(store.get('hosts.a')).rejects.toMatchObject({ code: 'unavailable' });
});

test('a store opened as restored has a new incarnation and revisions that go on', async () => {
  const disk = new MemoryDisk();
  const before = await openMemoryStore({ random: nodeRandom(), disk });
  await before.put('hosts.a', bytes('one'), 'absent');
  const after = await openMemoryStore({ random: nodeRandom(), disk, restored: true });
  expect(after.incarnation).not.toBe(before.incarnation);
  expect(await after.put('hosts.b', bytes('two'), 'absent')).toMatchObject({ revision: 2 });
});
