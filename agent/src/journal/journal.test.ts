import { create, equals } from '@bufbuild/protobuf';
import { agent, asIncarnation, asRevision } from '@rackwright/messages';
import type { Clock, Random } from '@rackwright/platform';
import { quietLog as noLog } from '@rackwright/platform/testing';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodeFrames, framePayloadBytesMax, readFrames } from './frame.ts';
import { Journal } from './journal.ts';
import {
  addRecords,
  applyRecords,
  emptyJournal,
  type JournalState,
  makeRecord,
  type RecordInit,
  recordsOf,
} from './state.ts';
import { MemoryDisk } from './testing/disk.ts';

const path = '/state/journal';

const applyRecord = (state: JournalState, record: agent.JournalRecord) =>
  applyRecords(state, [record]);

function clockAt(startMs: number): Clock {
  let nowMs = startMs;
  return {
    nowMs: () => (nowMs += 1),
    suspendAwareMs: () => nowMs,
    after: () => () => undefined,
  };
}

/** Counts, so that every id differs. */
function countingRandom(): Random {
  let count = 0;
  return {
    bytes: (length) => {
      count += 1;
      return new Uint8Array(length).fill(count);
    },
    fraction: () => 0.5,
  };
}

const random = countingRandom();
const clock = clockAt(1_000_000);

/** One life of a program that uses the journal. */
async function start(disk: MemoryDisk, rewriteAtBytes = 1024 * 1024, frameBytesMax?: number) {
  const life = disk.open();
  const options = {
    ...{ disk: life.disk, path, clock, random, log: noLog, rewriteAtBytes },
    ...(frameBytesMax === undefined ? {} : { frameBytesMax }),
  };
  return { journal: await Journal.open(options), kill: life.kill };
}

function operation(id: string): agent.Operation {
  return create(agent.OperationSchema, { id, hostUid: id.slice(0, id.indexOf('/')) });
}

function received(id: string): RecordInit {
  return { case: 'received', value: { operation: operation(id) } };
}

function ended(id: string, sequence: bigint): RecordInit {
  const result = { case: 'complete', value: {} } as const;
  return { case: 'ended', value: { report: { operationId: id, sequence, result } } };
}

/** In one frame. */
function framed(records: readonly agent.JournalRecord[]): Uint8Array {
  return Buffer.concat(encodeFrames(records, framePayloadBytesMax));
}

function phases(journal: Journal): Record<string, string> {
  return Object.fromEntries([...journal.state.operations].map(([id, known]) => [id, known.phase]));
}

describe('R9: identity', () => {
  test('keeps its id and raises its generation at each start', async () => {
    const disk = new MemoryDisk();
    const first = await start(disk);
    const second = await start(disk);
    expect(second.journal.state.id).toBe(first.journal.state.id);
    expect(first.journal.state.id).toMatch(/^[0-9a-f]{32}$/);
    expect([first, second].map(({ journal }) => journal.state.generation)).toEqual([1n, 2n]);
  });

  test('lives a life of its own after each start, also from the same older copy', async () => {
    const disk = new MemoryDisk();
    const first = await start(disk);
    const copy = disk.bytes(path) ?? new Uint8Array();
    const second = await start(disk);
    disk.replace(path, copy);
    const again = await start(disk);
    const lives = [first, second, again].map(({ journal }) => journal.state.life);
    expect(new Set(lives).size).toBe(3);
    expect(again.journal.state.generation).toBe(second.journal.state.generation);
    expect(second.journal.state.earlierLives).toEqual([lives[0]]);
    expect(again.journal.state.earlierLives).toEqual([lives[0]]);
  });

  test('remembers at most 32 lives', async () => {
    const disk = new MemoryDisk();
    for (let life = 0; life < 40; life++) await start(disk);
    const { journal } = await start(disk);
    expect(journal.state.earlierLives).toHaveLength(32);
  });

  test('raises the generation before it can be seen, whenever the program dies', async () => {
    const disk = new MemoryDisk();
    await start(disk);
    const life = disk.open();
    const opening = Journal.open({ disk: life.disk, path, clock, random, log: noLog });
    life.kill();
    void opening;
    const { journal } = await start(disk);
    expect(journal.state.generation).toBe(2n);
  });

  test('takes a new id when the file is gone', async () => {
    const disk = new MemoryDisk();
    const first = await start(disk);
    disk.remove(path);
    const second = await start(disk);
    expect(second.journal.state.id).not.toBe(first.journal.state.id);
    expect(second.journal.state.generation).toBe(1n);
  });

  test('takes a new id when what had been durable is damaged, and keeps that file', async () => {
    const disk = new MemoryDisk();
    const first = await start(disk);
    await first.journal.append(received('h/1/1/1'));
    await first.journal.append(received('h/1/1/2'));
    const whole = disk.bytes(path) as Uint8Array;
    const damaged = whole.slice();
    damaged[20] = (damaged[20] as number) ^ 1;
    disk.replace(path, damaged);
    const second = await start(disk);
    expect(second.journal.state.id).not.toBe(first.journal.state.id);
    expect(second.journal.state.operations.size).toBe(0);
    expect(disk.bytes(`${path}.damaged`)).toEqual(damaged);
  });

  test('takes a new id rather than skip a record that a newer version wrote', async () => {
    const disk = new MemoryDisk();
    const first = await start(disk);
    const life = disk.open();
    const file = await life.disk.openAppend(path);
    await file.append(framed([create(agent.JournalRecordSchema, {})]));
    const second = await start(disk);
    expect(second.journal.state.id).not.toBe(first.journal.state.id);
  });

  test('refuses to start on a disk that takes nothing', async () => {
    const disk = new MemoryDisk();
    disk.failing = true;
    await expect(start(disk)).rejects.toThrow('EIO');
  });
});

describe('append', () => {
  test('each record is there after a restart', async () => {
    const disk = new MemoryDisk();
    const { journal } = await start(disk);
    await journal.append(received('h/1/1/1'), received('h/1/2/1'));
    await journal.append({ case: 'begun', value: { operationId: 'h/1/1/1' } });
    await journal.append(ended('h/1/1/1', 7n));
    const again = await start(disk);
    expect(phases(again.journal)).toEqual({ 'h/1/1/1': 'ended', 'h/1/2/1': 'received' });
    expect(again.journal.state.lastSequence).toBe(7n);
    expect(again.journal.state.latestTimeMs).toBe(journal.state.latestTimeMs);
  });

  test('its latest time never falls, also when the clock goes back or at a start', async () => {
    const disk = new MemoryDisk();
    const life = disk.open();
    let nowMs = 5_000_000;
    const wall: Clock = { ...clock, nowMs: () => nowMs };
    const options = { disk: life.disk, path, clock: wall, random, log: noLog };
    const journal = await Journal.open(options);
    await journal.append(received('h/1/1/1'));
    expect(journal.state.latestTimeMs).toBe(5_000_000);
    nowMs = 1_000;
    await journal.append(received('h/1/2/1'));
    expect(journal.state.latestTimeMs).toBe(5_000_000);
    const again = await Journal.open({ ...options, disk: disk.open().disk, rewriteAtBytes: 1 });
    expect(again.state.latestTimeMs).toBe(5_000_000);
    await again.append(received('h/1/3/1'));
    expect((await Journal.open({ ...options, disk: disk.open().disk })).state.latestTimeMs).toBe(
      5_000_000,
    );
  });

  test('keeps the order of calls that were made at once', async () => {
    const disk = new MemoryDisk();
    const { journal } = await start(disk);
    const ids = Array.from({ length: 20 }, (_, at) => `h/1/${at}/1`);
    await Promise.all(ids.map((id) => journal.append(received(id))));
    expect([...(await start(disk)).journal.state.operations.keys()]).toEqual(ids);
  });

  test('cuts a torn tail wherever it was torn, and goes on', async () => {
    for (let kept = 0; kept < 1; kept += 0.05) {
      const disk = new MemoryDisk();
      const first = await start(disk);
      await first.journal.append(received('h/1/1/1'));
      disk.keptFraction = kept;
      const torn = first.journal.append(received('h/1/2/1'), received('h/1/3/1'));
      first.kill();
      void torn;
      const second = await start(disk);
      expect(second.journal.state.id).toBe(first.journal.state.id);
      expect(phases(second.journal)).toEqual({ 'h/1/1/1': 'received' });
      await second.journal.append(received('h/1/4/1'));
      const third = await start(disk);
      expect(phases(third.journal)).toEqual({ 'h/1/1/1': 'received', 'h/1/4/1': 'received' });
    }
  });

  test('R4: rejects when the disk does, and never writes behind what failed', async () => {
    const disk = new MemoryDisk();
    const { journal } = await start(disk);
    await journal.append(received('h/1/1/1'));
    disk.failing = true;
    const begun: RecordInit = { case: 'begun', value: { operationId: 'h/1/1/1' } };
    await expect(journal.append(begun)).rejects.toThrow('EIO');
    expect(phases(journal)).toEqual({ 'h/1/1/1': 'received' });
    await expect(journal.append(begun)).rejects.toThrow('EIO');
    disk.failing = false;
    await journal.append(received('h/1/2/1'));
    expect(readFrames(disk.bytes(path) as Uint8Array).kind).toBe('intact');
    const again = await start(disk);
    expect(phases(again.journal)).toEqual({ 'h/1/1/1': 'received', 'h/1/2/1': 'received' });
  });
});

describe('rewriting', () => {
  test('loses no open operation, unanswered report or grant, and bounds the file', async () => {
    const disk = new MemoryDisk();
    const { journal } = await start(disk, 4096);
    const grant = { operationId: 'h/1/1/1', hostUid: 'h', bootToken: 'a'.repeat(32) };
    await journal.append({ case: 'grantOpened', value: grant });
    const bound = { operationId: 'h/1/1/1', publicKey: Uint8Array.of(1, 2) };
    await journal.append({ case: 'grantBound', value: bound });
    await journal.append(received('h/0/1/1'), ended('h/0/1/1', 1n));
    await journal.append(received('h/0/2/1'));
    for (let count = 2n; count < 200n; count += 1n) {
      const id = `g/${count}/1/1`;
      await journal.append(received(id), ended(id, count));
      await journal.append(
        { case: 'answered', value: { operationId: id } },
        { case: 'forgotten', value: { operationId: id } },
      );
    }
    expect((disk.bytes(path) as Uint8Array).length).toBeLessThan(8192);
    const { state } = (await start(disk)).journal;
    expect([...state.operations.keys()]).toEqual(['h/0/1/1', 'h/0/2/1']);
    expect(state.operations.get('h/0/1/1')).toMatchObject({ phase: 'ended', answered: false });
    expect(state.grants.get('h/1/1/1')?.publicKey).toEqual(bound.publicKey);
    expect(state.lastSequence).toBe(199n);
  });

  test('keeps a state that is larger than a frame, and takes records that are', async () => {
    const disk = new MemoryDisk();
    const frameBytesMax = 4096;
    const { journal } = await start(disk, undefined, frameBytesMax);
    const ids = Array.from({ length: 900 }, (_, at) => `h/1/${at}/1`);
    await journal.append(...ids.slice(0, 300).map(received));
    await Promise.all(ids.slice(300).map((id) => journal.append(received(id))));
    const sizeBytes = (disk.bytes(path) as Uint8Array).length;
    expect(sizeBytes).toBeGreaterThan(2 * frameBytesMax);
    const again = (await start(disk, undefined, frameBytesMax)).journal;
    expect([...again.state.operations.keys()]).toEqual(ids);
    await again.append(...ids.map((operationId, at) => ended(operationId, BigInt(at))));
    const forgotten = ids.slice(1).map((operationId) => ({ operationId }));
    await again.append(...forgotten.map((value) => ({ case: 'forgotten', value }) as const));
    const { state } = (await start(disk, undefined, frameBytesMax)).journal;
    expect([...state.operations.keys()]).toEqual(ids.slice(0, 1));
    expect(state.lastSequence).toBe(899n);
  });
});

const ids = fc.constantFrom('h/1/1/1', 'h/1/1/2', 'g/4/2/1');
const bodies: fc.Arbitrary<RecordInit> = fc.oneof(
  ids.map(received),
  ids.map((operationId): RecordInit => ({ case: 'begun', value: { operationId } })),
  fc.tuple(ids, fc.bigInt({ min: 1n, max: 99n })).map(([id, at]) => ended(id, at)),
  ids.map((operationId): RecordInit => ({ case: 'answered', value: { operationId } })),
  ids.map((operationId): RecordInit => ({ case: 'forgotten', value: { operationId } })),
  ids.map((operationId): RecordInit => ({ case: 'grantOpened', value: { operationId } })),
  fc.tuple(ids, fc.uint8Array({ minLength: 1, maxLength: 3 })).map(
    ([operationId, publicKey]): RecordInit => ({
      case: 'grantBound',
      value: { operationId, publicKey },
    }),
  ),
  ids.map((operationId): RecordInit => ({ case: 'grantClosed', value: { operationId } })),
  fc.tuple(fc.constantFrom('i1', 'i2'), fc.bigInt({ min: 0n, max: 99n })).map(
    ([incarnation, revision]): RecordInit => ({
      case: 'storeSeen',
      value: { incarnation: asIncarnation(incarnation), revision: asRevision(revision) },
    }),
  ),
);

describe('the state', () => {
  test('is the same after any records were written as few as possible', () => {
    fc.assert(
      fc.property(fc.array(bodies, { maxLength: 30 }), (list) => {
        const started: RecordInit = { case: 'started', value: { id: 'j', generation: 3n } };
        const records = [started, ...list].map((body, at) => makeRecord(1000 + at, body));
        const state = applyRecords(emptyJournal, records);
        expect(records.reduce(applyRecord, emptyJournal)).toEqual(state);
        expect(recordsOf(state).reduce(applyRecord, emptyJournal)).toEqual(state);
        const none = applyRecords(emptyJournal, []);
        const added = records.reduce((own, record) => addRecords(own, [record]), none);
        expect(added).toEqual(state);
        expect(emptyJournal.operations.size, 'no copy was made').toBe(0);
      }),
    );
  });

  test('never lowers a phase: an ended operation neither begins nor ends again', () => {
    const list = [received('h/1/1/1'), ended('h/1/1/1', 1n)];
    const again: RecordInit[] = [
      received('h/1/1/1'),
      { case: 'begun', value: { operationId: 'h/1/1/1' } },
      ended('h/1/1/1', 2n),
    ];
    const fold = (all: RecordInit[]) =>
      all.map((body) => makeRecord(5, body)).reduce(applyRecord, emptyJournal);
    expect(fold([...list, ...again]).operations).toEqual(fold(list).operations);
  });
});

test('any batch reads back; a cut anywhere is a torn end and leaves whole frames', () => {
  fc.assert(
    fc.property(fc.array(bodies, { minLength: 1, maxLength: 5 }), fc.nat(), (list, seed) => {
      const records = list.map((body) => makeRecord(77, body));
      const first = framed(records);
      const second = first;
      const file = Uint8Array.of(...first, ...second);
      const whole = readFrames(file);
      if (whole.kind !== 'intact') throw new Error(whole.kind);
      expect(whole.records.length).toBe(2 * records.length);
      whole.records.forEach((record, at) => {
        const wanted = records[at % records.length] as agent.JournalRecord;
        expect(equals(agent.JournalRecordSchema, record, wanted)).toBe(true);
      });
      const cut = first.length + (seed % second.length);
      const torn = readFrames(file.subarray(0, cut));
      if (torn.kind === 'damaged') throw new Error(torn.problem);
      expect(torn.records.length).toBe(records.length);
    }),
  );
});
