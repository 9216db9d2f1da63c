/** Many writers update one record at once: no update is lost. */
import { create } from '@bufbuild/protobuf';
import { store as wire } from '@rackwright/messages';
import { seededRandom } from '@rackwright/sim';
import { openMemoryStore } from '@rackwright/store';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { changeRecord, deleteRecord, readRecord, writeRecord } from './index.ts';

const schema = wire.RackRecordSchema;
const key = 'racks.r1';
/** More than the conflicts among this many writers. */
const roundsMax = 100;

test('a write while a change is being made is kept, and the change is made again', async () => {
  const store = await openMemoryStore({ random: seededRandom(1) });
  const first = create(schema, { tombstones: ['first'] });
  const written = await writeRecord({ store }, schema, key, first, 'absent');
  if (written.kind === 'conflict') throw new Error('nobody else writes yet');
  let rounds = 0;
  await changeRecord({ store }, schema, key, async (record) => {
    rounds += 1;
    if (rounds === 1) {
      const rival = create(schema, { tombstones: [...record.tombstones, 'rival'] });
      await writeRecord({ store }, schema, key, rival, written.revision);
    }
    record.tombstones.push('mine');
    return record;
  });
  expect((await readRecord(store, schema, key))?.record.tombstones).toEqual([
    'first',
    'rival',
    'mine',
  ]);
  expect(rounds).toBe(2);
});

test('a record that is deleted while a change is being made does not come back', async () => {
  const store = await openMemoryStore({ random: seededRandom(1) });
  const written = await writeRecord({ store }, schema, key, create(schema), 'absent');
  if (written.kind === 'conflict') throw new Error('nobody else writes yet');
  const changed = await changeRecord({ store }, schema, key, async (record) => {
    await deleteRecord({ store }, key, written.revision);
    record.tombstones.push('mine');
    return record;
  });
  expect(changed).toBeUndefined();
  expect(await readRecord(store, schema, key)).toBeUndefined();
});

test('many writers lose no update, in whatever order their calls come', async () => {
  const writers = fc.array(fc.record({ changes: fc.integer({ min: 1, max: 3 }) }), {
    minLength: 2,
    maxLength: 5,
  });
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), writers, async (scheduler, each) => {
      const store = await openMemoryStore({
        random: seededRandom(1),
        faults: async () => {
          await scheduler.schedule(Promise.resolve());
          return { kind: 'none' };
        },
      });
      const acknowledged: string[] = [];
      const work = each.map(async ({ changes }, writer) => {
        for (let count = 0; count < changes; count += 1) {
          const name = `${writer}/${count}`;
          const change = async (record: wire.RackRecord) => {
            await scheduler.schedule(Promise.resolve());
            record.tombstones.push(name);
            return record;
          };
          await changeRecord({ store }, schema, key, change, {
            absent: () => create(schema),
            roundsMax,
          });
          acknowledged.push(name);
        }
      });
      await scheduler.waitFor(Promise.all(work));
      const read = readRecord(store, schema, key);
      const stored = (await scheduler.waitFor(read))?.record.tombstones ?? [];
      expect(stored.toSorted()).toEqual(acknowledged.toSorted());
    }),
  );
});
