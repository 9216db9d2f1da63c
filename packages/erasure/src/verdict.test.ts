import { expect, test } from 'vitest';
import { blockBytes, challengeContent, planChallenge } from './challenge.ts';
import { type ErasureMethod, erasureMethods } from './method.ts';
import { type BlockRead, combineVerdicts, startVerdict, type Verdict } from './verdict.ts';

const seed = new Uint8Array(32).fill(3);
const plan = planChallenge(seed, [{ offset: 0, length: 10 * 1024 * 1024 }]);
const challenged = plan.challenges[5] ?? 0;
const plain = plan.readBacks.find((offset) => !plan.challenges.includes(offset)) ?? 0;

/** The verdict when every planned place reads as `content` says; undefined is left out. */
function judge(
  content: (offset: number) => Uint8Array | Error | undefined,
  options: { method?: ErasureMethod; deallocatedByte?: 0 | 255; challengeProved?: boolean } = {},
): Verdict {
  const reader = startVerdict({
    method: options.method ?? 'overwrite',
    plan,
    seed,
    challengeProved: options.challengeProved ?? true,
    ...(options.deallocatedByte === undefined ? {} : { deallocatedByte: options.deallocatedByte }),
  });
  for (const offset of plan.readBacks) {
    const bytes = content(offset);
    if (bytes === undefined) continue;
    const read: BlockRead =
      bytes instanceof Error
        ? { kind: 'ioError', offset, message: bytes.message }
        : { kind: 'block', offset, bytes };
    if (!reader.add(read)) break;
  }
  return reader.finish();
}

const zeros = new Uint8Array(blockBytes);
const ones = new Uint8Array(blockBytes).fill(0xff);
const noise = new Uint8Array(blockBytes).map((_byte, index) => (index * 7 + 1) & 0xff);

test('says erased with places and bytes when all that was planned reads as zero', () => {
  expect(judge(() => zeros)).toEqual({
    kind: 'erased',
    placesRead: 1088,
    bytesRead: 1088 * blockBytes,
  });
});

test('names the first byte that is left', () => {
  const verdict = judge((offset) => {
    if (offset !== plain) return zeros;
    const block = zeros.slice();
    block[100] = 0x5a;
    return block;
  });
  expect(verdict).toEqual({
    kind: 'notErased',
    offset: plain + 100,
    reason: `byte 0x5a is left at offset ${plain + 100} where 0x00 was expected`,
  });
});

test('is unverified by an I/O error, a missing place, a short block or no reading at all', () => {
  const at = (bad: Uint8Array | Error | undefined) =>
    judge((offset) => (offset === plain ? bad : zeros)).kind;
  expect(at(new Error('EIO'))).toBe('unverified');
  expect(at(undefined)).toBe('unverified');
  expect(at(zeros.subarray(0, 512))).toBe('unverified');
  expect(judge(() => undefined).kind).toBe('unverified');
});

test('lets proof of data outrank an I/O error before it', () => {
  const verdict = judge((offset) => {
    if (offset === 0) return new Error('EIO');
    return offset === challenged ? noise : zeros;
  });
  expect(verdict.kind).toBe('notErased');
});

test('does not count a place twice for another that was never read', () => {
  const reader = startVerdict({ method: 'overwrite', plan, seed, challengeProved: true });
  for (const _ of plan.readBacks) reader.add({ kind: 'block', offset: 0, bytes: zeros });
  expect(reader.finish().kind).toBe('unverified');
});

test('accepts the declared value of deallocated blocks, and only that one', () => {
  expect(judge(() => ones, { method: 'discard', deallocatedByte: 255 }).kind).toBe('erased');
  expect(judge(() => ones, { method: 'discard' }).kind).toBe('notErased');
  const mixed = (offset: number) => (offset === plain ? zeros : ones);
  expect(judge(mixed, { method: 'discard', deallocatedByte: 255 }).kind).toBe('erased');
});

test('after a cryptographic erase accepts noise but no sector of the challenge', () => {
  const method = 'nvmeFormatCrypto';
  expect(judge(() => noise, { method }).kind).toBe('erased');
  const left = judge(
    (offset) => {
      if (offset !== challenged) return noise;
      const block = noise.slice();
      block.set(challengeContent(seed, offset).subarray(512, 1024), 512);
      return block;
    },
    { method },
  );
  expect(left).toMatchObject({ kind: 'notErased', offset: challenged + 512 });
});

test.each(erasureMethods)('proves nothing by %s without a challenge seen written', (method) => {
  for (const content of [zeros, ones, noise]) {
    const verdict = judge(() => content, { method, deallocatedByte: 255, challengeProved: false });
    expect(verdict).toMatchObject({
      kind: 'unverified',
      reason: expect.stringMatching(/nothing proves that a challenge was written/),
    });
  }
});

test('combines regions to the worst verdict or to sums', () => {
  const erased: Verdict = { kind: 'erased', placesRead: 2, bytesRead: 8192 };
  const doubt: Verdict = { kind: 'unverified', reason: 'r' };
  const left: Verdict = { kind: 'notErased', reason: 'l', offset: 1 };
  expect(combineVerdicts([erased, erased])).toEqual({
    kind: 'erased',
    placesRead: 4,
    bytesRead: 16_384,
  });
  expect(combineVerdicts([erased, doubt])).toBe(doubt);
  expect(combineVerdicts([doubt, left])).toBe(left);
  expect(combineVerdicts([]).kind).toBe('unverified');
});
