/** `--verification`: how disks are read back after their erasure, in words that people write. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { VerificationPolicySchema } from '@rackwright/messages';
import { UsageError } from '../../failure.ts';

type Init = Exclude<MessageInitShape<typeof VerificationPolicySchema>, { $typeName: string }>;

/** The flag, for hosts and for the fleet. */
export const verificationFlag = {
  verification: {
    kind: 'parsed',
    parse: String,
    variadic: true,
    optional: true,
    brief:
      'Reading back of erased disks: full, sample-overwritten, full-below=SIZE, share=PERCENT%, ' +
      'hole=SIZE, confidence=PERCENT%; none: the default; may be repeated',
    placeholder: 'word',
  },
} as const;

const sharePpcmPerPercent = 1_000_000;
const confidenceBpPerPercent = 100;

/** The policy of the words; undefined for "none". Throws `UsageError`. */
export function parseVerification(words: readonly string[]): Init | undefined {
  if (words.join() === 'none') return undefined;
  return Object.assign({}, ...words.map(readWord));
}

function readWord(word: string): Init {
  const at = word.indexOf('=');
  const [name, value] = at === -1 ? [word, ''] : [word.slice(0, at), word.slice(at + 1)];
  switch (name) {
    case 'full':
      return { full: true };
    case 'sample-overwritten':
      return { sampleOverwritten: true };
    case 'full-below':
      return { fullBelowBytes: sizeOf(word, value) };
    case 'hole':
      return { holeBytes: sizeOf(word, value) };
    case 'share':
      return { sharePpcm: Math.round(percentOf(word, value) * sharePpcmPerPercent) };
    case 'confidence':
      return { confidenceBp: Math.round(percentOf(word, value) * confidenceBpPerPercent) };
    default:
      throw new UsageError(`--verification is "${word}"; ${verificationFlag.verification.brief}`);
  }
}

const units: Readonly<Record<string, bigint>> = {
  KiB: 1_024n,
  MiB: 1_024n ** 2n,
  GiB: 1_024n ** 3n,
  TiB: 1_024n ** 4n,
};

function sizeOf(word: string, value: string): bigint {
  const [, number, unit = ''] = /^(\d+)([KMGT]iB)?$/.exec(value) ?? [];
  if (number === undefined) {
    throw new UsageError(`--verification is "${word}"; its size must be like 64GiB or 1048576`);
  }
  return BigInt(number) * (units[unit] ?? 1n);
}

function percentOf(word: string, value: string): number {
  const number = /^(\d+(?:\.\d+)?)%?$/.exec(value)?.[1];
  if (number === undefined) {
    throw new UsageError(`--verification is "${word}"; its value must be like 0.01% or 99%`);
  }
  return Number(number);
}
