import { expect, test } from 'vitest';
import { blockBytes, challengeContent, planChallenge } from './challenge.ts';
import { type ErasureMethod, erasureMethods } from './method.ts';
import { type BlockReadResult, combineVerdicts, startVerdict, type Verdict } from './verdict.ts';

const seed = new Uint8Array(32).fill(3);
const spans = [{ offset: 0, length: 10 * 1024 * 1024 }];
const plan = planChallenge(seed, spans, { level: 'sampled', places: 1024 });
const offsets = plan.reading.level === 'sampled' ? plan.reading.offsets : [];
const challenged = plan.challenges[5] ?? 0;
const plain = offsets.find((offset) => !plan.challenges.includes(offset)) ?? 0;

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
  for (const offset of offsets) {
    const bytes = content(offset);
    if (bytes === undefined) continue;
    const read: BlockReadResult =
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

test('the verdict is erased, with places and bytes, when all planned places read zero', () => {
  expect(judge(() => zeros)).toEqual({
    kind: 'erased',
    level: 'sampled',
    placesRead: offsets.length,
    bytesRead: offsets.length * blockBytes,
    bytesExamined: 10 * 1024 * 1024,
  });
});

test('the first byte that is left is named', () => {
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

test('an I/O error, a missing place, a short block or no reading is unverified', () => {
  const at = (bad: Uint8Array | Error | undefined) =>
    judge((offset) => (offset === plain ? bad : zeros)).kind;
  expect(at(new Error('EIO'))).toBe('unverified');
  expect(at(undefined)).toBe('unverified');
  expect(at(zeros.subarray(0, 512))).toBe('unverified');
  expect(judge(() => undefined).kind).toBe('unverified');
});

test('proof of data outranks an I/O error before it', () => {
  const verdict = judge((offset) => {
    if (offset === 0) return new Error('EIO');
    return offset === challenged ? noise : zeros;
  });
  expect(verdict.kind).toBe('notErased');
});

test('a place that is read twice does not count for another that was never read', () => {
  const reader = startVerdict({ method: 'overwrite', plan, seed, challengeProved: true });
  for (const _ of offsets) reader.add({ kind: 'block', offset: 0, bytes: zeros });
  expect(reader.finish().kind).toBe('unverified');
});

test('the verdict accepts the declared value of deallocated blocks, and only that one', () => {
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

test.each(erasureMethods)('%s proves nothing unless a written challenge was seen', (method) => {
  for (const content of [zeros, ones, noise]) {
    const verdict = judge(() => content, { method, deallocatedByte: 255, challengeProved: false });
    expect(verdict).toMatchObject({
      kind: 'unverified',
      reason: expect.stringMatching(/nothing proves that a challenge was written/),
    });
  }
});

test('regions combine to the worst verdict or to sums', () => {
  const sums = { placesRead: 2, bytesRead: 8192, bytesExamined: 16_384 };
  const erased: Verdict = { kind: 'erased', level: 'sampled', ...sums };
  const whole: Verdict = { kind: 'erased', level: 'full', ...sums };
  const doubt: Verdict = { kind: 'unverified', reason: 'r' };
  const left: Verdict = { kind: 'notErased', reason: 'l', offset: 1 };
  expect(combineVerdicts([erased, whole])).toEqual({
    kind: 'erased',
    level: 'sampled',
    placesRead: 4,
    bytesRead: 16_384,
    bytesExamined: 32_768,
  });
  expect(combineVerdicts([whole, whole])).toMatchObject({ level: 'full' });
  expect(combineVerdicts([erased, doubt])).toBe(doubt);
  expect(combineVerdicts([doubt, left])).toBe(left);
  expect(combineVerdicts([]).kind).toBe('unverified');
});

const mib = 1024 * 1024;
const fullPlan = planChallenge(seed, [{ offset: 0, length: 3 * mib + 512 }], { level: 'full' });
const pieces = [0, mib, 2 * mib, 3 * mib];

/** The verdict of a full reading of these pieces of a device that reads as `disk`. */
function judgeWhole(
  disk: Uint8Array,
  order: readonly number[] = pieces,
  options: { method?: ErasureMethod; deallocatedByte?: 0 | 255 } = {},
): Verdict {
  const { method = 'overwrite', ...rest } = options;
  const reader = startVerdict({ method, plan: fullPlan, seed, challengeProved: true, ...rest });
  for (const offset of order) {
    reader.add({ kind: 'block', offset, bytes: disk.subarray(offset, offset + mib) });
  }
  return reader.finish();
}

test('a full reading says erased only when every byte was read once, in any order', () => {
  const disk = new Uint8Array(3 * mib + 512);
  const erased = {
    kind: 'erased',
    level: 'full',
    placesRead: 769,
    bytesRead: disk.length,
    bytesExamined: disk.length,
  };
  expect(judgeWhole(disk)).toEqual(erased);
  expect(judgeWhole(disk, [2 * mib, 0, 3 * mib, mib])).toEqual(erased);
  for (let left = 0; left < pieces.length; left++) {
    expect(judgeWhole(disk, pieces.toSpliced(left, 1)).kind).toBe('unverified');
    expect(judgeWhole(disk, [...pieces, pieces[left] ?? 0]).kind).toBe('unverified');
  }
  expect(judgeWhole(disk, [...pieces, 512]).kind).toBe('unverified');
  expect(judgeWhole(disk, [...pieces, 4 * mib]).kind).toBe('unverified');
});

test('a full reading finds any single byte, and only that one', () => {
  for (const place of [0, 1, mib - 1, mib, 2 * mib + 4097, 3 * mib + 511]) {
    const disk = new Uint8Array(3 * mib + 512);
    disk[place] = 1;
    expect(judgeWhole(disk)).toMatchObject({ kind: 'notErased', offset: place });
  }
});

test('a full reading takes zeros and declared ones side by side, block by block', () => {
  const disk = new Uint8Array(3 * mib + 512).fill(255, 8192, 2 * mib);
  const options = { method: 'discard', deallocatedByte: 255 } as const;
  expect(judgeWhole(disk, pieces, options).kind).toBe('erased');
  expect(judgeWhole(disk).kind).toBe('notErased');
  disk[8192 + 5] = 0;
  expect(judgeWhole(disk, pieces, options)).toMatchObject({ kind: 'notErased', offset: 8197 });
});

test('a full reading after a cryptographic erase looks for the challenge only', () => {
  const disk = new Uint8Array(3 * mib + 512).map((_byte, index) => (index * 31 + 7) & 0xff);
  const options = { method: 'nvmeFormatCrypto' } as const;
  expect(judgeWhole(disk, pieces, options).kind).toBe('erased');
  // The last challenge block ends where the device ends and lies in two pieces.
  for (const place of [fullPlan.challenges[7] ?? 0, 3 * mib + 512 - blockBytes]) {
    const left = disk.slice();
    left.set(challengeContent(seed, place), place);
    expect(judgeWhole(left, pieces, options)).toMatchObject({ kind: 'notErased', offset: place });
  }
});
