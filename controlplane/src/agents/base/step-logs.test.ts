import { create } from '@bufbuild/protobuf';
import { agent } from '@rackwright/messages';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { piecesMax, ringBytesMax, ringsMax, StepLogs } from './step-logs.ts';

function piece(offset: number, text: string, operationId = 'u/1/2/1', hostUid = 'u') {
  const content = new TextEncoder().encode(text);
  return create(agent.StepLogSchema, { operationId, hostUid, offset: BigInt(offset), content });
}

function texts(logs: StepLogs, offset = 0, operationId = 'u/1/2/1', hostUid = 'u'): string[] {
  return logs
    .read(hostUid, operationId, BigInt(offset))
    .map(({ offset, content }) => `${offset} ${new TextDecoder().decode(content)}`);
}

test('the log keeps the output with its gaps, and answers from any place', () => {
  const logs = new StepLogs();
  logs.take(piece(0, 'ab'));
  logs.take(piece(7, 'hij'));
  expect(texts(logs)).toEqual(['0 ab', '7 hij']);
  expect(texts(logs, 1)).toEqual(['1 b', '7 hij']);
  expect(texts(logs, 9)).toEqual(['9 j']);
  expect(texts(logs, 10)).toEqual([]);
});

test('the log takes no piece twice, and none of another host', () => {
  const logs = new StepLogs();
  logs.take(piece(0, 'abc'));
  logs.take(piece(2, 'cd'));
  logs.take(piece(9, 'x', 'v/1/2/1', 'u'));
  expect(texts(logs)).toEqual(['0 abc']);
});

test('a new operation of a host replaces the one before', () => {
  const logs = new StepLogs();
  logs.take(piece(0, 'old'));
  logs.take(piece(0, 'new', 'u/1/3/1'));
  expect(texts(logs)).toEqual([]);
  expect(texts(logs, 0, 'u/1/3/1')).toEqual(['0 new']);
});

test('the log forgets an operation that has ended, and tells who listens', () => {
  const logs = new StepLogs();
  let told = 0;
  const cancel = logs.onChange('u/1/2/1', () => {
    told += 1;
  });
  logs.take(piece(0, 'a'));
  logs.ended('u', 'u/1/2/1');
  expect([texts(logs), told]).toEqual([[], 2]);
  cancel();
  logs.take(piece(0, 'a'));
  expect(told).toBe(2);
});

test('the log keeps the last of as many hosts as it may', () => {
  const logs = new StepLogs();
  for (let host = 0; host <= ringsMax; host += 1) {
    logs.take(piece(0, 'a', `h${host}/1/1/1`, `h${host}`));
  }
  expect(texts(logs, 0, 'h0/1/1/1', 'h0')).toEqual([]);
  expect(texts(logs, 0, `h${ringsMax}/1/1/1`, `h${ringsMax}`)).toEqual(['0 a']);
});

test('the log keeps exactly the end of the output, however it was cut', () => {
  const sizes = fc.array(fc.nat({ max: 40_000 }), { maxLength: 12 });
  fc.assert(
    fc.property(sizes, (lengths) => {
      const logs = new StepLogs();
      let written = '';
      for (const [at, length] of lengths.entries()) {
        const text = String.fromCharCode(97 + at).repeat(length);
        logs.take(piece(written.length, text));
        written += text;
      }
      const kept = logs.read('u', 'u/1/2/1', 0n);
      const text = kept.map(({ content }) => new TextDecoder().decode(content)).join('');
      expect(text).toBe(written.slice(-ringBytesMax));
      const [first] = kept;
      if (first !== undefined) expect(Number(first.offset)).toBe(written.length - text.length);
    }),
  );
});

test('the log keeps the end of an output that comes byte by byte, in few pieces', () => {
  const logs = new StepLogs();
  const written = 2 * ringBytesMax;
  for (let offset = 0; offset < written; offset += 1) logs.take(piece(offset, 'a'));
  const kept = logs.read('u', 'u/1/2/1', 0n);
  expect(kept.length).toBeLessThanOrEqual(piecesMax);
  expect(kept.reduce((bytes, { content }) => bytes + content.length, 0)).toBe(ringBytesMax);
  expect(Number(kept[0]?.offset)).toBe(written - ringBytesMax);
});

test('the log keeps the last pieces of what comes with gaps only', () => {
  const logs = new StepLogs();
  for (let offset = 0; offset < 4 * piecesMax; offset += 2) logs.take(piece(offset, 'a'));
  const kept = logs.read('u', 'u/1/2/1', 0n);
  expect(kept).toHaveLength(piecesMax);
  expect(Number(kept.at(-1)?.offset)).toBe(4 * piecesMax - 2);
});

test('the log holds no more of a message than it keeps', () => {
  const logs = new StepLogs();
  const { operationId, hostUid } = piece(0, 'a');
  const content = Buffer.alloc(4 * ringBytesMax);
  logs.take(create(agent.StepLogSchema, { operationId, hostUid, content }));
  const [kept] = logs.read('u', 'u/1/2/1', 0n);
  expect(kept?.content.buffer.byteLength).toBe(ringBytesMax);
});
