/** The boundaries of frames, and the report about a broken one among whole ones. */
import { create, toBinary } from '@bufbuild/protobuf';
import { agent } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { encodeFrames, framePayloadBytesMax, readFrames } from './frame.ts';

function record(id: string): agent.JournalRecord {
  return create(agent.JournalRecordSchema, {
    record: { case: 'begun', value: { operationId: id } },
  });
}

const idsOf = (file: Uint8Array): readonly string[] => {
  const contents = readFrames(file);
  if (contents.kind === 'damaged') throw new Error(contents.problem);
  return contents.records.map(({ record: { value } }) =>
    value !== undefined && 'operationId' in value ? value.operationId : '',
  );
};
const frameOf = (id: string): Uint8Array =>
  Buffer.concat(encodeFrames([record(id)], framePayloadBytesMax));
/** The size of one record in a frame. */
const bytesOf = (id: string): number => toBinary(agent.JournalRecordSchema, record(id)).length + 4;

test('a frame holds as many records as fit, and one that fits into none by itself', () => {
  const ids = ['one', 'two', 'six'];
  const three = ids.map(record);
  const size = bytesOf('one');
  const counts = (bytesMax: number) =>
    encodeFrames(three, bytesMax).map((frame) => idsOf(frame).length);
  expect(counts(3 * size)).toEqual([3]);
  expect(counts(3 * size - 1)).toEqual([2, 1]);
  expect(counts(2 * size)).toEqual([2, 1]);
  expect(counts(size)).toEqual([1, 1, 1]);
  expect(counts(1)).toEqual([1, 1, 1]);
  expect(encodeFrames([], 100).map(idsOf)).toEqual([[]]);
  for (const bytesMax of [1, 2 * size, 3 * size]) {
    expect(idsOf(Buffer.concat(encodeFrames(three, bytesMax)))).toEqual(ids);
  }
});

test('a record that would not be read again is not written', () => {
  const id = 'x'.repeat(framePayloadBytesMax);
  expect(() => encodeFrames([record(id)], framePayloadBytesMax)).toThrow('is not read again');
});

const [first, second, third] = ['one', 'two', 'six'].map(frameOf) as [Buffer, Buffer, Buffer];
const file = Buffer.concat([first, second, third]);

test('a broken frame before a whole one is damage, wherever its byte is', () => {
  for (let at = first.length; at < first.length + second.length; at += 1) {
    const broken = Buffer.from(file);
    broken[at] = (broken[at] ?? 0) ^ 0xff;
    const behind = first.length + second.length;
    expect(readFrames(broken), `byte ${at}`).toEqual({
      kind: 'damaged',
      problem: `the frame at byte ${first.length} is damaged, the one at byte ${behind} is whole`,
    });
  }
});

test('a broken last frame is a torn write: what was before it stands', () => {
  const lastAt = first.length + second.length;
  for (let at = lastAt; at < file.length; at += 1) {
    const broken = Buffer.from(file);
    broken[at] = (broken[at] ?? 0) ^ 0xff;
    for (const torn of [broken, file.subarray(0, at)]) {
      if (torn.length === lastAt) continue;
      expect(readFrames(torn), `byte ${at}`).toMatchObject({
        ...{ kind: 'torn', cutBytes: torn.length - lastAt },
      });
      expect(idsOf(torn)).toEqual(['one', 'two']);
    }
  }
});

test('a frame with too large a length is none', () => {
  const lying = Buffer.from(third);
  lying.writeUInt32BE(framePayloadBytesMax + 1, 4);
  expect(readFrames(lying)).toMatchObject({ kind: 'torn', records: [] });
});
