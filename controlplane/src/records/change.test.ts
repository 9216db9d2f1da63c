/** Changes of one record, among others who change it. */
import { create } from '@bufbuild/protobuf';
import { store as wire } from '@rackwright/messages';
import { seededRandom } from '@rackwright/sim';
import { type MemoryStoreOptions, openMemoryStore, type StateStore } from '@rackwright/store';
import { beforeEach, describe, expect, test } from 'vitest';
import { changeRecord, isBusy, readRecord, untilWritten, writeRecord } from './index.ts';

const schema = wire.RackRecordSchema;
const key = 'racks.r1';
const busyText = 'racks/r1 changes all the time; try again.';

test('a change that lost to another one is made again', async () => {
  const ends = [undefined, undefined, 'written'];
  await expect(untilWritten('racks/r1', async () => ends.shift())).resolves.toBe('written');
});

test('a change that always loses the race is given up with an error', async () => {
  let rounds = 0;
  const trying = untilWritten('racks/r1', async () => {
    rounds += 1;
    return undefined;
  });
  await expect(trying).rejects.toThrow(busyText);
  expect(rounds).toBe(16);
});

describe('a record', () => {
  let store: StateStore;
  /** Called before each write of `key`. */
  let rival: () => Promise<void>;
  let isRivalAtWork = false;

  const faults: MemoryStoreOptions['faults'] = async (call) => {
    if (call.kind === 'put' && call.key === key && !isRivalAtWork) {
      isRivalAtWork = true;
      await rival();
      isRivalAtWork = false;
    }
    return { kind: 'none' };
  };

  /** Adds one, whatever the present record. */
  const pushAhead = async (tombstone: string) => {
    const kept = await readRecord(store, schema, key);
    const record = kept?.record ?? create(schema);
    record.tombstones.push(tombstone);
    await writeRecord({ store }, schema, key, record, kept?.revision ?? 'absent');
  };

  const push = (tombstone: string) => (record: wire.RackRecord) => {
    record.tombstones.push(tombstone);
    return record;
  };

  beforeEach(async () => {
    store = await openMemoryStore({ random: seededRandom(1), faults });
    rival = () => Promise.resolve();
  });

  const stored = async () => (await readRecord(store, schema, key))?.record.tombstones;

  test('is changed from what a faster writer left, after evidence of each round', async () => {
    await pushAhead('a');
    let rounds = 0;
    rival = async () => {
      rounds += 1;
      if (rounds < 3) await pushAhead(`rival ${rounds}`);
    };
    const evidence: string[][] = [];
    const changed = await changeRecord({ store }, schema, key, push('mine'), {
      evidence: async (before, next) => {
        expect(next.tombstones).toEqual([...before.tombstones, 'mine']);
        expect(await stored()).toEqual(before.tombstones);
        evidence.push([...before.tombstones]);
      },
    });
    expect(changed?.isWritten).toBe(true);
    expect(changed?.record.tombstones).toEqual(['a', 'rival 1', 'rival 2', 'mine']);
    expect(await readRecord(store, schema, key)).toEqual({
      record: changed?.record,
      revision: changed?.revision,
    });
    expect(evidence).toEqual([['a'], ['a', 'rival 1'], ['a', 'rival 1', 'rival 2']]);
  });

  test.each<[string, (record: wire.RackRecord) => wire.RackRecord | undefined]>([
    ['is the same afterwards', (record) => create(schema, record)],
    [
      'is to be left, whatever the draft says',
      (record) => void record.tombstones.push('thrown away'),
    ],
  ])('a record that %s is not written', async (_text, change) => {
    await pushAhead('a');
    const before = await readRecord(store, schema, key);
    const changed = await changeRecord({ store }, schema, key, change, {
      evidence: () => Promise.reject(new Error('nothing is cited')),
    });
    expect(changed).toEqual({ ...before, isWritten: false });
    expect(await readRecord(store, schema, key)).toEqual(before);
  });

  test('a record that is not there is not changed', async () => {
    expect(await changeRecord({ store }, schema, key, push('a'))).toBeUndefined();
    expect(await stored()).toBeUndefined();
  });

  test('a missing record begins with the given value, unless the change declines', async () => {
    const absent = () => create(schema, { tombstones: ['first'] });
    const leave = (record: wire.RackRecord) => record;
    expect(await changeRecord({ store }, schema, key, leave, { absent })).toBeUndefined();
    expect(await stored()).toBeUndefined();
    let rounds = 0;
    rival = async () => {
      rounds += 1;
      if (rounds === 1) await pushAhead('rival');
    };
    await changeRecord({ store }, schema, key, push('mine'), { absent });
    expect(await stored()).toEqual(['rival', 'mine']);
  });

  test('a record that others change all the time is given up after its rounds', async () => {
    await pushAhead('a');
    rival = () => pushAhead('rival');
    const trying = changeRecord({ store }, schema, key, push('mine'), { roundsMax: 3 });
    await expect(trying).rejects.toThrow(busyText);
    await expect(trying).rejects.toSatisfy(isBusy);
    expect(await stored()).toEqual(['a', 'rival', 'rival', 'rival']);
    const named = changeRecord({ store }, schema, key, push('mine'), { name: 'the rack' });
    await expect(named).rejects.toThrow('the rack changes all the time');
  });

  test('is left alone by a change that throws', async () => {
    await pushAhead('a');
    const failing = changeRecord({ store }, schema, key, () => {
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(await stored()).toEqual(['a']);
  });
});
