/** The last outcome that is plausible, and the first that is not. */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { MediaType, StorageDeviceSchema } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import { expect, test } from 'vitest';
import {
  describeImplausible,
  impliedCounts,
  impliedReading,
  plausibilityProblems,
} from './plausibility.ts';
import { verificationToWire } from './verification-wire.ts';
import { deviceFactsOf } from './wire.ts';

const seed = new Uint8Array(32).fill(5);
const other = new Uint8Array(32).fill(6);
const sizeBytes = 2_000_000_000_000n;
const sampled = { level: 'sampled', places: 500 } as const;
const ordered = { verification: verificationToWire(sampled) };
const startMs = 1_000_000;

function deviceOf(mediaType: MediaType, rotational = false) {
  return create(StorageDeviceSchema, {
    ...{ serial: 'S', sizeBytes, mediaType, rotational },
    regions: [{ name: 'sda', sizeBytes, logicalBlockBytes: 512 }],
  });
}

interface Said {
  readonly media?: MediaType;
  readonly rotational?: boolean;
  readonly methodMs: number;
  readonly wholeMs?: number;
}

/** Overwritten in `methodMs`, read back in a second. */
function outcome({ media = MediaType.HDD, rotational = false, methodMs, wholeMs }: Said) {
  const device = deviceOf(media, rotational);
  const counts = impliedCounts(deviceFactsOf(device), 'overwrite', seed, sampled);
  return create(agent.DeviceOutcomeSchema, {
    ...{ device, challengeSeed: seed, bytesWritten: sizeBytes },
    ...{ method: agent.ErasureMethod.OVERWRITE, verdict: agent.VerdictKind.ERASED },
    ...{ verification: ordered.verification, bytesExamined: BigInt(counts.bytesExamined) },
    ...{ placesRead: BigInt(counts.placesRead), bytesRead: BigInt(counts.bytesRead) },
    challengeBlocksWritten: BigInt(counts.challengeBlocks),
    ...{ methodMs: BigInt(methodMs), verifyMs: 1000n },
    startTime: timestampFromMs(startMs),
    endTime: timestampFromMs(startMs + (wholeMs ?? methodMs + 1000)),
  });
}

/** Milliseconds in which the whole disk is written at so many bytes per second, less the slack. */
const msAt = (speed: number) => (Number(sizeBytes) * 1000) / speed - 1000;

test.each([
  ['hard disk', MediaType.HDD, false, 2e9],
  ['SSD', MediaType.SSD, false, 20e9],
  ['card', MediaType.FLASH_CARD, false, 4e9],
  ['disk of unknown kind that turns', MediaType.UNSPECIFIED, true, 2e9],
  ['disk of unknown kind', MediaType.UNSPECIFIED, false, 400e9],
] as const)('a %s writes no faster than its kind', (_, media, rotational, most) => {
  const slow = { media, rotational, methodMs: Math.ceil(msAt(most)) };
  expect(plausibilityProblems(outcome(slow), ordered)).toEqual([]);
  const fast = { ...slow, methodMs: Math.floor(msAt(most * 1.01)) };
  expect(plausibilityProblems(outcome(fast), ordered)).toMatchObject([
    { kind: 'speed', direction: 'write', most },
  ]);
});

test('the bytes of all readings count for the speed of reading', () => {
  const truth = outcome({ methodMs: 2_000_000 });
  const read = (bytesOfReadings: bigint) =>
    plausibilityProblems(Object.assign(truth, { bytesOfReadings }), ordered);
  expect(read(4_000_000_000n)).toEqual([]);
  expect(read(4_100_000_000n)).toEqual([
    { kind: 'speed', direction: 'read', found: 2_050_000_000, most: 2e9 },
  ]);
});

test('a runner that tells no times of its parts has had the whole time for each', () => {
  const silent = (wholeMs: number) => {
    const said = outcome({ methodMs: 0, wholeMs });
    return plausibilityProblems(Object.assign(said, { verifyMs: 0n }), ordered);
  };
  expect(silent(Math.ceil(msAt(2e9)))).toEqual([]);
  expect(silent(Math.floor(msAt(2.1e9)))).toMatchObject([{ direction: 'write' }]);
});

test('parts take no longer than the whole, but for a second', () => {
  const parts = (wholeMs: number) =>
    plausibilityProblems(outcome({ methodMs: 2_000_000, wholeMs }), ordered);
  expect(parts(2_000_000)).toEqual([]);
  expect(parts(1_999_999)).toEqual([{ kind: 'order', order: 'longerThanItself' }]);
  expect(plausibilityProblems(outcome({ methodMs: 0, wholeMs: 0 }), ordered)).not.toContainEqual({
    ...{ kind: 'order', order: 'endBeforeStart' },
  });
});

test('no part takes longer than its order is old, but for a minute and one per cent', () => {
  const aged = (orderAgeMs: number) =>
    plausibilityProblems(outcome({ methodMs: 2_000_000 }), ordered, orderAgeMs);
  const leastMs = (2_001_000 - 60_000) / 1.01;
  expect(aged(Math.ceil(leastMs))).toEqual([]);
  expect(aged(Math.floor(leastMs) - 1)).toEqual([{ kind: 'order', order: 'longerThanItsOrder' }]);
});

test('evidence without device, method or time cannot be checked', () => {
  const truth = () => outcome({ methodMs: 2_000_000 });
  const problemsWith = (change: Partial<agent.DeviceOutcome>) =>
    plausibilityProblems(Object.assign(truth(), change), ordered).map(describeImplausible);
  const nameless = ['it cannot be checked: it names no device or no method'];
  expect(problemsWith({ device: undefined })).toEqual(nameless);
  expect(problemsWith({ method: agent.ErasureMethod.UNSPECIFIED })).toEqual(nameless);
  const timeless = ['it cannot be checked: it names no start or no end'];
  expect(problemsWith({ startTime: undefined })).toEqual(timeless);
  expect(problemsWith({ endTime: undefined })).toEqual(timeless);
});

test('a reading in another way than ordered is reported with both ways', () => {
  const truth = outcome({ methodMs: 2_000_000 });
  const full = { verification: verificationToWire({ level: 'full' }) };
  const [problem] = plausibilityProblems(truth, full);
  expect(problem && describeImplausible(problem)).toMatch(
    /^it was read back .*"sampled".*, and .*"full".* was ordered$/,
  );
  const [count] = plausibilityProblems(Object.assign(truth, { placesRead: 3n }), ordered);
  expect(count && describeImplausible(count)).toMatch(
    /^placesRead is 3; size, seed and order make it \d+$/,
  );
});

test('an order to read in a later boot counts both seeds, and lets nothing be written', () => {
  const facts = deviceFactsOf(deviceOf(MediaType.HDD));
  const later = { ...ordered, erasedSeed: seed };
  const counts = impliedReading(facts, 'overwrite', other, later);
  const first = impliedCounts(facts, 'overwrite', seed, sampled);
  const again = impliedCounts(facts, 'overwrite', other, sampled);
  expect(counts.placesRead).toBe(first.placesRead + again.placesRead);
  expect(counts.bytesRead).toBe(first.bytesRead + again.bytesRead);
  expect(counts.challengeBlocks).toBe(first.challengeBlocks);
  const read = Object.assign(outcome({ methodMs: 0, wholeMs: 60_000 }), {
    ...{ challengeSeed: other, bytesWritten: 0n },
    ...{ placesRead: BigInt(counts.placesRead), bytesRead: BigInt(counts.bytesRead) },
  });
  expect(plausibilityProblems(read, later)).toEqual([]);
  const written = Object.assign(read, { bytesWritten: 1n });
  expect(plausibilityProblems(written, later)).toEqual([
    { kind: 'count', count: 'bytesWritten', found: 1, wanted: 0 },
  ]);
});

test('a full reading has no other places', () => {
  const facts = deviceFactsOf(deviceOf(MediaType.HDD));
  const full = { verification: verificationToWire({ level: 'full' }) };
  const once = impliedCounts(facts, 'overwrite', seed, { level: 'full' });
  expect(impliedReading(facts, 'overwrite', other, { ...full, erasedSeed: seed })).toEqual(once);
  expect(once).toMatchObject({ bytesRead: Number(sizeBytes), placesRead: 488_281_250 });
});
