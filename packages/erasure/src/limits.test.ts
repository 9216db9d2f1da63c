/** Values on a limit, and right behind it. */
import { create } from '@bufbuild/protobuf';
import { VerificationPolicySchema } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { regionSeed, seedBytesMax, seedBytesMin } from './challenge.ts';
import { startCoverage } from './coverage.ts';
import { diskNames } from './disk-names.ts';
import { boundDeviceLog } from './statement.ts';
import { verificationPolicyProblem } from './verification-wire.ts';

test('a seed of the shortest and of the longest length is accepted, and no other is', () => {
  const seeded = (length: number) => () => regionSeed(new Uint8Array(length), 'S1', 'sda');
  expect(seeded(seedBytesMin)()).toHaveLength(32);
  expect(seeded(seedBytesMax)()).toHaveLength(32);
  expect(seeded(seedBytesMin - 1)).toThrow(RangeError);
  expect(seeded(seedBytesMax + 1)).toThrow(RangeError);
});

test('a reading counts only where all of it is in one span of the plan', () => {
  const plan = startCoverage([
    { offset: 100, length: 10 },
    { offset: 200, length: 10 },
  ]);
  for (const [offset, length] of [
    [90, 10],
    [95, 10],
    [105, 10],
    [110, 1],
    [150, 10],
    [100, 0],
    [100, 110],
  ] as const) {
    expect(plan.take(offset, length)).toBe(`${length} bytes at ${offset} are not in the plan`);
  }
  expect(plan.missing()).toBe(20);
  expect(plan.take(100, 10)).toBeUndefined();
  expect(plan.take(200, 10)).toBeUndefined();
  expect(plan.missing()).toBe(0);
});

test('only the beginning of a WWN may be the name of its kind', () => {
  const wwns = (wwn: string) => diskNames({ serial: '', wwn }).map(({ value }) => value);
  expect(wwns('eui.0025385b71b0a3c1')).toEqual(['0025385B71B0A3C1']);
  expect(wwns('0025385b71b0a3c10x')).toEqual([]);
  expect(wwns('0025385b0x71b0a3c1a4')).toEqual([]);
});

test('a log that is too long keeps its ends, and says how much is between them', () => {
  const lines = Array.from({ length: 10 }, (_, at) => `line ${at}`);
  expect(boundDeviceLog(lines, 10)).toEqual(lines);
  expect(boundDeviceLog(lines, 5)).toEqual([
    ...['line 0', 'line 1', '(6 lines left out)', 'line 8', 'line 9'],
  ]);
});

test('a policy may ask for the whole share, and for no more', () => {
  const problem = (sharePpcm: number) =>
    verificationPolicyProblem(create(VerificationPolicySchema, { sharePpcm }));
  expect(problem(100_000_000)).toBeUndefined();
  expect(problem(100_000_001)).toContain('share_ppcm');
});
