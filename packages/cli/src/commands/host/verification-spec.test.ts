/** `--verification` in words. */
import { expect, test } from 'vitest';
import { UsageError } from '../../failure.ts';
import { parseVerification } from './verification-spec.ts';

test.each([
  [['full'], { full: true }],
  [['share=0.01%', 'confidence=99%'], { sharePpcm: 10_000, confidenceBp: 9_900 }],
  [['hole=1MiB', 'full-below=64GiB'], { holeBytes: 1_048_576n, fullBelowBytes: 68_719_476_736n }],
  [['sample-overwritten'], { sampleOverwritten: true }],
  [['none'], undefined],
])('the words %j become a policy', (words, policy) => {
  expect(parseVerification(words)).toEqual(policy);
});

test.each(['fast', 'share=', 'hole=1 MB', 'confidence=very'])('"%s" is refused', (word) => {
  expect(() => parseVerification([word])).toThrow(UsageError);
});
