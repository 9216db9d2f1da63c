import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { expect, test } from 'vitest';
import { burnInLines, burnInName, burnInText } from './burn-in.ts';
import { BurnInKind, BurnInSchema } from './gen/rackwright/v1/burn_in_pb.ts';

const times = { startTime: timestampFromMs(0), endTime: timestampFromMs(600_000) };

test('the summary reports what passed, how fast and how hot', () => {
  const parts = [
    { name: '8 threads', bytes: 13_000n, passes: 1_234n, writtenPerSecond: 850_000_000n },
  ];
  const kept = { kind: BurnInKind.CPU, passed: true, ...times, parts, celsiusMax: 71 };
  const burnIn = create(BurnInSchema, kept);
  expect(burnInName(burnIn)).toBe('cpu burn-in');
  expect(burnInText(burnIn)).toBe('passed after 10 minutes, at most 71 °C');
  expect(burnInLines(burnIn)).toEqual(['8 threads: 850 MB/s calculated, 1234 passes, no errors']);
});

test('the summary reports what failed, and where', () => {
  const finding = '4 → 5 pending sectors';
  const rates = { writtenPerSecond: 200_000_000n, readPerSecond: 210_000_000n };
  const parts = [{ name: 'S-1', bytes: 2n ** 30n, passes: 1n, errors: 1n, finding, ...rates }];
  const problem = `disk S-1 (sda): ${finding}`;
  const burnIn = create(BurnInSchema, { kind: BurnInKind.DISK, parts, problem });
  expect(burnInText(burnIn)).toBe(`failed: ${problem}`);
  expect(burnInLines(burnIn)).toEqual([
    `S-1: 1024 MiB, 200 MB/s written, 210 MB/s read, 1 error, ${finding}`,
  ]);
  const memory = [{ name: 'memory', passes: 2n, correctedErrors: 3n }];
  const ecc = create(BurnInSchema, { kind: BurnInKind.MEMORY, parts: memory });
  expect(burnInLines(ecc)[0]).toMatch(/2 passes, no errors, 3 corrected by ECC$/);
});

test('the summary reports how much went over a network card, and by which link', () => {
  const rates = { writtenPerSecond: 33_000_000n, readPerSecond: 32_000_000n };
  const parts = [{ name: 'eno1', bytes: 2n ** 30n, passes: 16n, linkMbps: 10_000, ...rates }];
  const burnIn = create(BurnInSchema, { kind: BurnInKind.NETWORK, passed: true, parts });
  expect(burnInName(burnIn)).toBe('network burn-in');
  expect(burnInLines(burnIn)).toEqual([
    'eno1: 1024 MiB, 33 MB/s sent, 32 MB/s received, link of 10000 Mbit/s, 16 passes, no errors',
  ]);
});
