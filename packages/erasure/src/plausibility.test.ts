import { create } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { MediaType, StorageDeviceSchema } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  describeImplausible,
  impliedCounts,
  impliedReading,
  type PlausibilityProblem,
  plausibilityProblems,
} from './plausibility.ts';
import { verificationToWire } from './verification-wire.ts';
import { deviceFactsOf } from './wire.ts';

const seed = new Uint8Array(32).fill(5);
const sampled = { level: 'sampled', places: 500 } as const;

/** A true outcome of one disk: counts as they follow, at 100 MB/s. */
function outcome(sizeBytes: number, change: Partial<agent.DeviceOutcome> = {}) {
  const device = create(StorageDeviceSchema, {
    serial: 'S',
    sizeBytes: BigInt(sizeBytes),
    mediaType: MediaType.HDD,
    regions: [{ name: 'sda', sizeBytes: BigInt(sizeBytes), logicalBlockBytes: 512 }],
  });
  const counts = impliedCounts(deviceFactsOf(device), 'overwrite', seed, sampled);
  const methodMs = Math.ceil(sizeBytes / 100_000);
  const message = create(agent.DeviceOutcomeSchema, {
    device,
    method: agent.ErasureMethod.OVERWRITE,
    verdict: agent.VerdictKind.ERASED,
    verification: verificationToWire(sampled),
    placesRead: BigInt(counts.placesRead),
    bytesRead: BigInt(counts.bytesRead),
    bytesExamined: BigInt(counts.bytesExamined),
    challengeBlocksWritten: BigInt(counts.challengeBlocks),
    bytesWritten: BigInt(sizeBytes),
    challengeSeed: seed,
    methodMs: BigInt(methodMs),
    verifyMs: 5000n,
    startTime: timestampFromMs(1_000_000),
    endTime: timestampFromMs(1_000_000 + methodMs + 6000),
  });
  return Object.assign(message, change);
}

const ordered = create(agent.DevicePlanSchema, { verification: verificationToWire(sampled) });
const size = 2e12;

function problems(change: Partial<agent.DeviceOutcome>): PlausibilityProblem[] {
  return plausibilityProblems(outcome(size, change), ordered);
}

test('the check accepts true evidence', () => {
  const sizes = fc.integer({ min: 16, max: 2 ** 33 });
  fc.assert(
    fc.property(sizes, (sectors) => {
      expect(plausibilityProblems(outcome(sectors * 512), ordered)).toEqual([]);
    }),
    { numRuns: 50 },
  );
});

test.each(['placesRead', 'bytesRead', 'bytesExamined'] as const)(
  'evidence of other %s is refused',
  (name) => {
    const truth = outcome(size)[name];
    for (const found of [truth - 1n, truth + 1n]) {
      expect(problems({ [name]: found })).toEqual([
        { kind: 'count', count: name, found: Number(found), wanted: Number(truth) },
      ]);
    }
  },
);

test('fewer challenge blocks or bytes written, and another way of reading, are refused', () => {
  expect(problems({ challengeBlocksWritten: 63n })).toMatchObject([{ count: 'challengeBlocks' }]);
  expect(problems({ bytesWritten: BigInt(size) - 512n })).toMatchObject([
    { count: 'bytesWritten' },
  ]);
  const verification = verificationToWire({ level: 'sampled', places: 499 });
  expect(problems({ verification })).toMatchObject([{ kind: 'verification' }]);
});

test('a 2 TB hard disk overwritten in a minute is refused, and so are times out of order', () => {
  const fast = { methodMs: 60_000n, endTime: timestampFromMs(1_070_000) };
  const [problem] = problems(fast);
  expect(problem).toMatchObject({ kind: 'speed', direction: 'write', most: 2e9 });
  expect(problem && describeImplausible(problem)).toMatch(
    /^no such device writes 3278688\d* bytes/,
  );
  expect(problems({ endTime: timestampFromMs(999_000) })).toEqual([
    { kind: 'order', order: 'endBeforeStart' },
  ]);
  expect(problems({ verifyMs: 1_000_000_000n })).toEqual([
    { kind: 'order', order: 'longerThanItself' },
  ]);
});

test('evidence that was faster by our clock than by its own is refused', () => {
  const within = (orderAgeMs: number) => plausibilityProblems(outcome(size), ordered, orderAgeMs);
  expect(within(20_100_000)).toEqual([]);
  expect(within(800).map(describeImplausible)).toEqual([
    'it took longer than its order is old',
    expect.stringMatching(/^no such device writes \d+ bytes per second, at most 2000000000$/),
  ]);
});

test('other places count in an erasure or check that reads again after a delay', () => {
  const again = { ...ordered, rereadDelay: durationFromMs(1000) };
  const facts = deviceFactsOf(outcome(size).device ?? create(StorageDeviceSchema));
  const { placesRead, bytesRead } = impliedReading(facts, 'overwrite', seed, again);
  expect(placesRead).toBeGreaterThan(1100);
  const twice = outcome(size, { placesRead: BigInt(placesRead), bytesRead: BigInt(bytesRead) });
  expect(plausibilityProblems(twice, again)).toEqual([]);
  expect(plausibilityProblems(outcome(size), again)).not.toEqual([]);
});

test('the check does not judge an outcome that claims no erasure', () => {
  expect(problems({ verdict: agent.VerdictKind.UNVERIFIED, placesRead: 3n })).toEqual([]);
});
