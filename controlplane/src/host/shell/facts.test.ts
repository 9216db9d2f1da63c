/** The facts of a host, as two replicas write them. */
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type HostUid, store as wire } from '@rackwright/messages';
import { nodeRandom } from '@rackwright/platform/node';
import { openMemoryStore, storeKey } from '@rackwright/store';
import { expect, test, vi } from 'vitest';
import { readShared } from '../../records/index.ts';
import { writeFacts } from './effects.ts';

type HostFactsInit = Exclude<MessageInitShape<typeof wire.HostFactsSchema>, wire.HostFacts>;

const schema = wire.HostFactsSchema;
const key = storeKey('facts', 'h1');
const bytesOf = (known: HostFactsInit) => toBinary(schema, create(schema, known));
const inventory = { memoryBytes: 64n };

async function opened(known: HostFactsInit) {
  const store = await openMemoryStore({ random: nodeRandom() });
  await store.put(key, bytesOf(known), 'absent');
  const write = (hostUid: HostUid, facts: Partial<wire.HostFacts>) =>
    writeFacts({ store } as never, 'h1', hostUid, facts);
  const read = async () => (await readShared(store, schema, key))?.record;
  return { store, write, read };
}

test('facts that another replica wrote meanwhile stay', async () => {
  const { store, write, read } = await opened({ hostUid: 'u1', runnerVersion: '1' });
  const put = store.put.bind(store);
  vi.spyOn(store, 'put').mockImplementationOnce(async (...given) => {
    const learned = { hostUid: 'u1', runnerVersion: '1', inventory };
    await put(key, bytesOf(learned), given[2]);
    return put(...given);
  });
  await write('u1', { runnerVersion: '2' });
  expect(await read()).toMatchObject({ runnerVersion: '2', inventory });
});

test('no facts stay of an earlier host of the same name', async () => {
  const { write, read } = await opened({ hostUid: 'u0', inventory });
  await write('u1', { runnerVersion: '2' });
  const known = await read();
  expect(known).toMatchObject({ hostUid: 'u1', runnerVersion: '2' });
  expect(known?.inventory).toBeUndefined();
});

test('facts that are no longer known are deleted by one write', async () => {
  const { store, write, read } = await opened({ hostUid: 'u1', bmcDrives: { available: true } });
  const put = vi.spyOn(store, 'put');
  for (let n = 0; n < 2; n += 1) await write('u1', { bmcDrives: undefined });
  expect((await read())?.bmcDrives).toBeUndefined();
  expect(put).toHaveBeenCalledTimes(1);
});
