/**
 * Mutations of an input. Everything comes from the generator that the caller seeds, so the same
 * seed and the same working set give the same inputs.
 */
import { mutateJson } from './mutate-json.ts';
import type { Chance, InputForm } from './target.ts';

export interface MutationSettings {
  readonly form: InputForm;
  readonly tokens: readonly Uint8Array[];
  readonly inputBytesMax: number;
}

const interesting8 = [0, 1, 2, 4, 8, 16, 31, 32, 63, 64, 127, 128, 192, 254, 255, 10, 13, 34, 92];
const interesting16 = [0, 1, 0x7f, 0xff, 0x100, 0x7fff, 0x8000, 0xfffe, 0xffff];
const interesting32 = [0, 1, 0xffff, 0x1_0000, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff];
/** Texts that many readers of text trip over. */
const textTokens = [
  ...['0', '-1', '1e999', '4294967296', '9007199254740993', '99999999999999999999', 'NaN', '0x'],
  ...['"', "'", '\\', '\n', '\r\n', '\t', ' ', '\0', ',', ';', ':', '=', '/', '../', '%00', '%'],
  ...['\u{1f600}', '\ufeff', '\u2028', 'é', '\u0000', '__proto__', 'constructor', 'toString'],
].map((text) => new TextEncoder().encode(text));

type Mutation = (input: Uint8Array, chance: Chance, other: Uint8Array) => Uint8Array;

/** Replaces `count` bytes from `at` on. */
function spliced(input: Uint8Array, at: number, count: number, put: Uint8Array): Uint8Array {
  const result = new Uint8Array(input.length - count + put.length);
  result.set(input.subarray(0, at));
  result.set(put, at);
  result.set(input.subarray(at + count), at + put.length);
  return result;
}

function pickOf<T>(chance: Chance, choices: readonly T[], fallback: T): T {
  return choices[chance.below(Math.max(1, choices.length))] ?? fallback;
}

/** A length that is often short. */
function lengthIn(chance: Chance, limit: number): number {
  const short = chance.below(3) > 0 ? Math.min(limit, 16) : limit;
  return 1 + chance.below(Math.max(1, short));
}

function rangeOf(chance: Chance, input: Uint8Array): [at: number, count: number] {
  const at = chance.below(Math.max(1, input.length));
  return [at, Math.min(lengthIn(chance, input.length), input.length - at)];
}

const flipBit: Mutation = (input, chance) => {
  const result = input.slice();
  const at = chance.below(Math.max(1, input.length));
  if (at < input.length) result[at] = (result[at] as number) ^ (1 << chance.below(8));
  return result;
};

const setByte: Mutation = (input, chance) => {
  const result = input.slice();
  const at = chance.below(Math.max(1, input.length));
  const value = chance.below(2) === 0 ? chance.below(256) : pickOf(chance, interesting8, 0);
  if (at < input.length) result[at] = value;
  return result;
};

const addToByte: Mutation = (input, chance) => {
  const result = input.slice();
  const at = chance.below(Math.max(1, input.length));
  if (at < input.length) result[at] = (result[at] as number) + chance.below(33) - 16;
  return result;
};

/** A field of two, four or eight bytes, in either order, to an extreme. */
const setField: Mutation = (input, chance) => {
  const result = input.slice();
  const width = pickOf(chance, [2, 4, 8], 2);
  if (input.length < width) return result;
  const view = new DataView(result.buffer);
  const at = chance.below(input.length - width + 1);
  const little = chance.below(2) === 0;
  if (width === 2) view.setUint16(at, pickOf(chance, interesting16, 0), little);
  else {
    view.setUint32(at, pickOf(chance, interesting32, 0), little);
    if (width === 8) view.setUint32(at + 4, pickOf(chance, interesting32, 0), little);
  }
  return result;
};

/** A byte that tells how much is left, or nearly so. */
const setLength: Mutation = (input, chance) => {
  const result = input.slice();
  const at = chance.below(Math.max(1, input.length));
  if (at < input.length) result[at] = input.length - at - 1 + chance.below(3) - 1;
  return result;
};

const truncate: Mutation = (input, chance) => input.slice(0, chance.below(input.length + 1));

const remove: Mutation = (input, chance) => {
  const [at, count] = rangeOf(chance, input);
  return spliced(input, at, count, new Uint8Array());
};

const duplicate: Mutation = (input, chance) => {
  const [at, count] = rangeOf(chance, input);
  return spliced(input, at, 0, input.slice(at, at + count));
};

/** More would be cut. */
const repeatedBytesMax = 64 * 1024;

/** A range many times: what is quadratic shows. */
const repeat: Mutation = (input, chance) => {
  const [at, count] = rangeOf(chance, input);
  const piece = input.subarray(at, at + count);
  const most = Math.max(1, Math.floor(repeatedBytesMax / Math.max(1, piece.length)));
  const times = Math.min(1 << chance.below(15), most);
  const put = new Uint8Array(piece.length * times);
  for (let index = 0; index < times; index += 1) put.set(piece, index * piece.length);
  return spliced(input, at, count, put);
};

const move: Mutation = (input, chance) => {
  const [at, count] = rangeOf(chance, input);
  const to = chance.below(Math.max(1, input.length));
  const result = input.slice();
  result.set(input.subarray(at, at + Math.min(count, input.length - to)), to);
  return result;
};

const splice: Mutation = (input, chance, other) => {
  const cut = chance.below(input.length + 1);
  const from = chance.below(other.length + 1);
  return spliced(input, cut, input.length - cut, other.slice(from));
};

const insertOther: Mutation = (input, chance, other) => {
  const [at, count] = rangeOf(chance, other);
  return spliced(input, chance.below(input.length + 1), 0, other.slice(at, at + count));
};

const insertBytes: Mutation = (input, chance) => {
  const put = Uint8Array.from({ length: lengthIn(chance, 64) }, () => chance.below(256));
  return spliced(input, chance.below(input.length + 1), 0, put);
};

function insertToken(tokens: readonly Uint8Array[]): Mutation {
  return (input, chance) => {
    const token = pickOf(chance, tokens, new Uint8Array());
    const at = chance.below(input.length + 1);
    const count = chance.below(2) === 0 ? 0 : Math.min(token.length, input.length - at);
    return spliced(input, at, count, token);
  };
}

/** A number that stands in a text, to another one. */
const setNumber: Mutation = (input, chance) => {
  const text = Buffer.from(input.buffer, input.byteOffset, input.length).toString('latin1');
  const found = [...text.matchAll(/\d+/g)];
  const one = found[chance.below(Math.max(1, found.length))];
  if (one === undefined) return input;
  const numbers = [
    '0',
    '1',
    '-1',
    '255',
    '65536',
    '4294967295',
    '9007199254740992',
    '9'.repeat(40),
  ];
  const put = new TextEncoder().encode(pickOf(chance, numbers, '0'));
  return spliced(input, one.index, one[0].length, put);
};

const forAll = [
  ...[flipBit, setByte, setByte, addToByte, truncate, remove, remove, duplicate, repeat, move],
  ...[splice, insertOther, insertBytes],
];

/** Makes inputs of one target. */
export function makeMutator({ form, tokens, inputBytesMax }: MutationSettings) {
  const all: readonly Mutation[] = [
    ...forAll,
    ...(tokens.length === 0 ? [] : [insertToken(tokens), insertToken(tokens), insertToken(tokens)]),
    ...(form === 'bytes'
      ? [setField, setField, setLength, setLength]
      : [insertToken(textTokens), insertToken(textTokens), setNumber, setNumber]),
  ];
  const once = (input: Uint8Array, chance: Chance, other: Uint8Array): Uint8Array => {
    if (form === 'json' && chance.below(8) > 0) return mutateJson(input, chance, tokens) ?? input;
    return pickOf(chance, all, flipBit)(input, chance, other);
  };
  return (input: Uint8Array, chance: Chance, other: Uint8Array): Uint8Array => {
    let result = input;
    const rounds = 1 + Math.min(chance.below(4), chance.below(8));
    for (let round = 0; round < rounds; round += 1) {
      result = once(result, chance, other).subarray(0, inputBytesMax);
    }
    return Uint8Array.from(result);
  };
}
