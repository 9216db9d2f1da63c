import { create } from '@bufbuild/protobuf';
import { VerificationPolicySchema } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { blockBytes, planChallenge, type Verification } from './challenge.ts';
import {
  blocksForHole,
  blocksForShare,
  defaultVerificationPolicy,
  describeVerification,
  holeFound,
  planVerification,
  regionVerification,
  shareFound,
} from './verification.ts';
import {
  orderedVerification,
  verificationOf,
  verificationPolicyOf,
  verificationPolicyProblem,
  verificationToWire,
} from './verification-wire.ts';

const gib = 1024 ** 3;

function planned(change: object, policy: object = {}): Verification {
  return planVerification({
    method: 'discard',
    sizeBytes: 1000 * gib,
    ...change,
    policy: { ...defaultVerificationPolicy, ...policy },
  });
}

test('the plan finds 0.01 % with 99 % by 46,050 places at any size', () => {
  expect(blocksForShare(0.0001, 0.99)).toBe(46_050);
  for (const sizeBytes of [64 * gib, 1e12, 20e12, 1e15]) {
    expect(planned({ sizeBytes })).toEqual({ level: 'sampled', places: 46_050 });
  }
});

test('small and overwritten disks, metadata, and what a policy asks for are read whole', () => {
  const full = { level: 'full' };
  expect(planned({ sizeBytes: 64 * gib - 512 })).toEqual(full);
  expect(planned({ method: 'overwrite' })).toEqual(full);
  expect(planned({ method: 'overwrite' }, { sampleOverwritten: true })).not.toEqual(full);
  expect(planned({ method: 'metadataOnly' })).toEqual(full);
  expect(planned({}, { full: true })).toEqual(full);
  expect(planned({}, { confidence: 1 })).toEqual(full);
  expect(planned({ sizeBytes: 46_050 * blockBytes }, { fullBelowBytes: 0 })).toEqual(full);
  expect(planned({ sizeBytes: 20e12 }, { holeBytes: 65_536 })).toEqual(full);
  expect(() => planned({}, { share: 0 })).toThrow('the share is above 0');
});

/** The share of seeds with which a hole at a position is missed. */
function missRate(sizeBytes: number, places: number, hole: { from: number; length: number }) {
  const spans = [{ offset: 0, length: sizeBytes }];
  const runs = 400;
  let missed = 0;
  for (let run = 0; run < runs; run++) {
    const seed = Uint8Array.from({ length: 32 }, (_none, at) => (run * 7 + at * run) & 0xff);
    seed.set([run & 0xff, run >> 8]);
    const plan = planChallenge(seed, spans, { level: 'sampled', places });
    if (plan.reading.level !== 'sampled') throw new Error('not sampled');
    const drawn = plan.reading.offsets.filter((offset) => !plan.challenges.includes(offset));
    const end = hole.from + hole.length;
    if (!drawn.some((offset) => offset < end && offset + blockBytes > hole.from)) missed += 1;
  }
  return missed / runs;
}

test('a simulated hole of the promised size is found wherever it lies', () => {
  const sizeBytes = 4096 * blockBytes;
  const holeBytes = 200 * blockBytes;
  const confidence = 0.9;
  const places = blocksForHole(holeBytes, sizeBytes, confidence);
  const width = sizeBytes / places;
  // Within a stratum, and astride two: the worst case that the bound is made for.
  for (const from of [width, 10.5 * width, 11 * width - holeBytes / 2, sizeBytes - holeBytes]) {
    const hole = { from: Math.floor(from / 512) * 512, length: holeBytes };
    // Four standard deviations of 400 runs; blocks of the challenge are left out of `drawn`.
    expect(missRate(sizeBytes, places, hole)).toBeLessThan(1 - confidence + 4 * 0.015 + 0.02);
  }
});

test('a hole astride two strata is missed as often as the formula says: the bound is tight', () => {
  const sizeBytes = 4096 * blockBytes;
  const places = 16;
  const width = 256;
  const h = 128;
  const hole = { from: (width * 5 - h / 2) * blockBytes, length: h * blockBytes };
  const expected = (1 - h / (2 * width)) ** 2;
  expect(Math.abs(missRate(sizeBytes, places, hole) - expected)).toBeLessThan(0.1);
});

test('one draw per stratum misses a left share no oftener than independent draws', () => {
  // The probability itself, for any pattern of left blocks: Π(1 - p_i) against (1 - p)^n.
  const patterns = fc.array(fc.boolean(), { minLength: 4, maxLength: 400 });
  fc.assert(
    fc.property(patterns, fc.integer({ min: 1, max: 60 }), (left, wanted) => {
      const strata = Math.min(wanted, left.length);
      const width = left.length / strata;
      let misses = 1;
      for (let stratum = 0; stratum < strata; stratum++) {
        const [from, to] = [stratum * width, (stratum + 1) * width];
        const covered = left.reduce((sum, isLeft, block) => {
          return sum + (isLeft ? Math.max(0, Math.min(to, block + 1) - Math.max(from, block)) : 0);
        }, 0);
        misses *= 1 - covered / width;
      }
      const share = left.filter(Boolean).length / left.length;
      expect(misses).toBeLessThanOrEqual((1 - share) ** strata + 1e-9);
    }),
  );
});

test('the confidence follows from the places that were read, as was asked for', () => {
  expect(shareFound(46_050, 0.99)).toBeLessThanOrEqual(0.0001);
  const sizes = fc.integer({ min: 1000, max: 10 ** 9 });
  fc.assert(
    fc.property(sizes, fc.integer({ min: 1, max: 10 ** 8 }), (blocks, holeBytes) => {
      const sizeBytes = blocks * blockBytes;
      const places = blocksForHole(holeBytes, sizeBytes, 0.99);
      if (places > blocks) return;
      const found = holeFound(places, sizeBytes, 0.99);
      expect(Math.ceil(found / blockBytes)).toBeLessThanOrEqual(Math.ceil(holeBytes / blockBytes));
    }),
  );
});

test('the plan describes reads, time and what can be missed', () => {
  const speed = { bytesPerSecond: 200e6, readsPerSecond: 100 };
  const question = { method: 'discard', sizeBytes: 20e12, speed, confidence: 0.99 } as const;
  const sampled = { level: 'sampled', places: 46_050 } as const;
  expect(describeVerification({ ...question, verification: sampled })).toMatchObject({
    reads: 46_050,
    bytes: 46_050 * 4096,
    seconds: expect.closeTo(461.4, 0),
    canMiss: expect.stringMatching(/^with 99 % confidence, at least 0.01 % that is left is found/),
  });
  const full = describeVerification({ ...question, verification: { level: 'full' } });
  expect(full).toMatchObject({ seconds: 100_000, bytes: 20e12 });
  const crypto = { ...question, method: 'nvmeFormatCrypto', verification: sampled } as const;
  expect(describeVerification(crypto).canMiss).toMatch(/only the challenge blocks/);
});

test('the plan spreads places over regions by size', () => {
  const sampled = { level: 'sampled', places: 1000 } as const;
  expect(regionVerification(sampled, 1, 3)).toEqual({ level: 'sampled', places: 334 });
  expect(regionVerification({ level: 'full' }, 1, 3)).toEqual({ level: 'full' });
});

test('verification and policy are read from the wire; unknown values are refused', () => {
  for (const verification of [{ level: 'full' }, { level: 'sampled', places: 7 }] as const) {
    expect(verificationOf(verificationToWire(verification))).toEqual(verification);
  }
  const level = agent.VerificationLevel.SAMPLED;
  expect(verificationOf(create(agent.VerificationSchema, { level }))).toBeUndefined();
  expect(verificationOf(undefined)).toBeUndefined();
  expect(orderedVerification(create(agent.DevicePlanSchema))).toEqual({ level: 'full' });
  const policy = create(VerificationPolicySchema, { sharePpcm: 10_000, confidenceBp: 9_500 });
  expect(verificationPolicyOf(policy)).toMatchObject({ share: 0.0001, confidence: 0.95 });
  const holes = { ...defaultVerificationPolicy, holeBytes: 5 };
  expect(verificationPolicyOf(policy, holes)).not.toHaveProperty('holeBytes');
  expect(verificationPolicyOf(create(VerificationPolicySchema), holes)).toEqual(holes);
  expect(verificationPolicyProblem(policy)).toBeUndefined();
  const wrong = create(VerificationPolicySchema, { confidenceBp: 10_001 });
  expect(verificationPolicyProblem(wrong)).toBe('confidence_bp is 1 to 10000, not 10001');
});
