import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import {
  type ByteSpan,
  blockBytes,
  type ChallengePlan,
  challengeContent,
  challengeCount,
  markContent,
  planChallenge,
  planMarks,
  regionSeed,
} from './challenge.ts';
import { metadataSpanBytes, metadataSpans } from './metadata.ts';

const seed = regionSeed(new Uint8Array(32).fill(7), 'SERIAL', '0');

function whole(sizeBytes: number): ByteSpan[] {
  return [{ offset: 0, length: sizeBytes }];
}

const sampled = { level: 'sampled', places: 1024 } as const;

function offsetsOf({ reading }: ChallengePlan): readonly number[] {
  if (reading.level !== 'sampled') throw new Error('not sampled');
  return reading.offsets;
}

test('the plan challenges 64 places and reads one more of each stratum', () => {
  const size = 100 * 1024 ** 3;
  const plan = planChallenge(seed, whole(size), sampled);
  const offsets = offsetsOf(plan);
  expect(plan.challenges).toHaveLength(64);
  expect(offsets).toHaveLength(64 + 1024);
  expect(plan.challenges[0]).toBe(0);
  expect(plan.challenges.at(-1)).toBe(size - blockBytes);
  expect(plan.challenges.every((offset) => offsets.includes(offset))).toBe(true);
  const strata = offsets.filter((offset) => !plan.challenges.includes(offset));
  const width = size / 1024;
  expect(strata.map((offset) => Math.floor(offset / width))).toEqual([...Array(1024).keys()]);
});

test('the count of challenges equals the plan; where all blocks fit none is drawn by lot', () => {
  const block = fc.integer({ min: 1, max: 90 });
  const rest = fc.integer({ min: 0, max: 7 });
  const gap = fc.integer({ min: 0, max: 3 });
  const anySpans = fc.array(fc.tuple(block, rest, gap), { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(anySpans, fc.nat(255), (drawn, byte) => {
      const spans: ByteSpan[] = [];
      let offset = 0;
      for (const [blocks, sectors, blocksApart] of drawn) {
        const length = (blocks + (spans.length === 0 ? 1 : 0)) * blockBytes + sectors * 512;
        spans.push({ offset, length });
        offset += (blocks + 2 + blocksApart) * blockBytes;
      }
      const own = regionSeed(new Uint8Array(32).fill(byte), 'S', '0');
      const { challenges } = planChallenge(own, spans, { level: 'full' });
      expect(challengeCount(own, spans)).toBe(challenges.length);
    }),
  );
  const hashed = vi.spyOn(Buffer, 'concat');
  expect(challengeCount(seed, whole(1024 ** 2))).toBe(64);
  expect(hashed).not.toHaveBeenCalled();
  planChallenge(seed, whole(1024 ** 2), { level: 'full' });
  expect(hashed).toHaveBeenCalled();
  hashed.mockRestore();
});

test('the plan reads whole spans at the full level', () => {
  const plan = planChallenge(seed, whole(1024 ** 2), { level: 'full' });
  expect(plan.challenges).toHaveLength(64);
  expect(plan.reading).toEqual({ level: 'full', spans: whole(1024 ** 2) });
  expect(plan.bytesExamined).toBe(1024 ** 2);
});

test('46,050 places on 20 TB are planned within a second of processor time', () => {
  const start = process.threadCpuUsage();
  const plan = planChallenge(seed, whole(20e12), { level: 'sampled', places: 46_050 });
  // What a busy machine takes meanwhile does not count.
  expect(process.threadCpuUsage(start).user).toBeLessThan(1_000_000);
  const offsets = offsetsOf(plan);
  expect(offsets.length).toBeGreaterThan(46_100);
  expect(offsets.length).toBeLessThanOrEqual(46_050 + 64);
  for (let at = 1; at < offsets.length; at++) {
    if ((offsets[at] ?? 0) <= (offsets[at - 1] ?? 0)) expect.fail(`not ascending at ${at}`);
  }
});

test('the plan is the same for the same seed and another for another seed', () => {
  const size = 10 * 1024 ** 3;
  expect(planChallenge(seed, whole(size), sampled)).toEqual(
    planChallenge(seed, whole(size), sampled),
  );
  const other = regionSeed(new Uint8Array(32).fill(7), 'OTHER', '0');
  expect(planChallenge(other, whole(size), sampled)).not.toEqual(
    planChallenge(seed, whole(size), sampled),
  );
});

test('the places of a seed are those that an earlier version drew', () => {
  expect(
    planChallenge(seed, whole(1024 ** 3), sampled).challenges.slice(0, 4),
  ).toMatchInlineSnapshot(`
    [
      0,
      2375680,
      39972864,
      59244544,
    ]
  `);
});

test('the plan reads every byte of a small device', () => {
  for (const size of [8192, 8704, 63 * 4096, 64 * 4096, 65 * 4096, 1000 * 4096 + 512]) {
    const plan = planChallenge(seed, whole(size), sampled);
    const read = new Uint8Array(size);
    for (const offset of offsetsOf(plan)) read.fill(1, offset, offset + blockBytes);
    expect(read.indexOf(0)).toBe(-1);
  }
});

test('challenges never overlap or leave the device, whatever its size', () => {
  const sizes = fc.oneof(fc.integer({ min: 16, max: 4000 }), fc.integer({ min: 16, max: 2 ** 40 }));
  fc.assert(
    fc.property(sizes, fc.uint8Array({ minLength: 32, maxLength: 32 }), (sectors, bytes) => {
      const size = sectors * 512;
      const plan = planChallenge(bytes, whole(size), sampled);
      const { challenges } = plan;
      const readBacks = offsetsOf(plan);
      for (const [index, offset] of challenges.entries()) {
        const next = challenges[index + 1] ?? size;
        expect(offset + blockBytes).toBeLessThanOrEqual(next);
        expect(offset % 512).toBe(0);
      }
      expect(new Set(readBacks).size).toBe(readBacks.length);
      expect(readBacks.at(-1)).toBeLessThanOrEqual(size - blockBytes);
    }),
    { numRuns: 200 },
  );
});

test('the bytes of challenge blocks differ by offset, device and seed', () => {
  const content = challengeContent(seed, 4096);
  expect(content).toHaveLength(blockBytes);
  expect(content).toEqual(challengeContent(seed, 4096));
  expect(content).not.toEqual(challengeContent(seed, 8192));
  const sectors = new Set<string>();
  for (let at = 0; at < blockBytes; at += 512) {
    sectors.add(Buffer.from(content.subarray(at, at + 512)).toString('hex'));
  }
  expect(sectors.size).toBe(8);
});

test('a seed that is too short or too long is refused', () => {
  expect(() => regionSeed(new Uint8Array(15), 'S', '0')).toThrow('16 to 64 bytes, not 15');
  expect(() => regionSeed(new Uint8Array(65), 'S', '0')).toThrow('not 65');
});

test('metadata spans cover both ends of disk and partitions, merged and in order', () => {
  const mib = 1024 * 1024;
  const region = { name: 'sda', sizeBytes: 100 * mib, logicalBlockBytes: 512 };
  const spans = metadataSpans(region, [
    { region: 'sda', offsetBytes: mib, sizeBytes: 50 * mib },
    { region: 'sdb', offsetBytes: 70 * mib, sizeBytes: mib },
  ]);
  expect(spans).toEqual([
    { offset: 0, length: 2 * mib },
    { offset: 50 * mib, length: mib },
    { offset: 99 * mib, length: metadataSpanBytes },
  ]);
  const plan = planChallenge(seed, spans, sampled);
  const inside = (offset: number) =>
    spans.some((s) => offset >= s.offset && offset + blockBytes <= s.offset + s.length);
  expect(offsetsOf(plan).every(inside)).toBe(true);
  expect(offsetsOf(plan)).toContain(99 * mib);
});

test('one metadata span covers a small disk', () => {
  const region = { name: 'sda', sizeBytes: 1_000_448, logicalBlockBytes: 512 };
  expect(metadataSpans(region, [])).toEqual([{ offset: 0, length: 1_000_448 }]);
});

test('marks lie in blocks of no challenge, and there are none where every block is one', () => {
  const spans = [{ offset: 0, length: 200 * blockBytes }];
  const plan = planChallenge(seed, spans, { level: 'full' });
  const marks = planMarks(seed, spans, plan);
  expect(marks).toHaveLength(16);
  expect(marks.filter((mark) => plan.challenges.includes(mark))).toEqual([]);
  expect(markContent(seed, marks[0] ?? 0)).not.toEqual(challengeContent(seed, marks[0] ?? 0));
  const small = [{ offset: 0, length: 32 * blockBytes }];
  expect(planMarks(seed, small, planChallenge(seed, small, { level: 'full' }))).toEqual([]);
});
