/**
 * One round of calculation whose results are known: the same for processors of every make. The
 * results were computed by other programs, too.
 */

/** Bytes that one round hashes, encrypts and packs. */
export const roundBytes = 13 * 1024 * 1024;

/** The right result of each part of a round, in hexadecimal digits, in their order. */
export const knownResults: readonly (readonly [part: string, result: string])[] = [
  ['SHA-256', '9febd1c6ecb9fd07b314524eef09d6ee5f5ce021609221051d84dc02809e8660'],
  ['AES-256', 'c55a465d5d06ac654962a79114cc908676c98406fe6e2fb829cd5c4d1fc32248'],
  ['floating point', '36ed585697b59d3451483277e4624e1f442790c8568a82b9776b99053b20fb94'],
  ['integers', '757ecb6f-29ca4b14'],
  ['long integers', '12267cfd02ca0db3a01535a64b7d5a2896f0c0e0dc9e7847a4c588a3e3e4c2d6'],
  ['packing', 'df5417012447f3fb973055c29da9741a228eff276ac8a6c20d5e1dd498ba37fa'],
];

/** From bytes to their result. */
type Calculation = (bytes: Uint8Array<ArrayBuffer>) => Uint8Array | string;

/**
 * The parts of a round, in the order of `knownResults`. Each runs in a thread from its own text:
 * none may name anything outside itself.
 */
export const calculations: readonly Calculation[] = [
  function hash(bytes) {
    const { createHash } = process.getBuiltinModule('node:crypto');
    const chained = bytes.slice();
    for (let round = 0; round < 8; round += 1) {
      chained.set(createHash('sha256').update(chained).digest(), round * 32);
    }
    return chained;
  },
  function encrypt(bytes) {
    const { createCipheriv } = process.getBuiltinModule('node:crypto');
    const cipher = createCipheriv('aes-256-ctr', bytes.subarray(0, 32), bytes.subarray(32, 48));
    for (let round = 0; round < 3; round += 1) cipher.update(bytes);
    return cipher.update(bytes);
  },
  function multiplyMatrices(bytes) {
    const words = new Uint32Array(bytes.buffer);
    const side = 96;
    const cells = (from: number) =>
      Float64Array.from({ length: side * side }, (_, at) => (words[at + from] ?? 0) / 2 ** 31 - 1);
    const [a, b] = [cells(0), cells(side * side)];
    const product = new Float64Array(side * side);
    for (let row = 0; row < side; row += 1) {
      for (let column = 0; column < side; column += 1) {
        let sum = 0;
        for (let at = 0; at < side; at += 1) {
          sum += (a[row * side + at] ?? 0) * (b[at * side + column] ?? 0);
        }
        product[row * side + column] = Math.sqrt(Math.abs(sum)) / (1 + Math.abs(sum));
      }
    }
    // Every machine that the runner is made for is little-endian.
    return new Uint8Array(product.buffer);
  },
  function mixIntegers() {
    let [a, b] = [0x243f6a88, 0x85a308d3];
    for (let round = 0; round < 2_000_000; round += 1) {
      a = (Math.imul(a, 0x41c64e6d) + b) | 0;
      b = ((b << 7) | (b >>> 25)) ^ (a % 1_009);
    }
    return `${(a >>> 0).toString(16)}-${(b >>> 0).toString(16)}`;
  },
  function squareLongIntegers(bytes) {
    const { createHash } = process.getBuiltinModule('node:crypto');
    const modulus = 2n ** 521n - 1n;
    let power = BigInt(`0x${createHash('sha256').update(bytes).digest('hex')}`);
    for (let round = 0; round < 4_000; round += 1) power = (power * power + 3n) % modulus;
    return power.toString(16).slice(0, 64);
  },
  function packAndUnpack(bytes) {
    const { deflateRawSync, inflateRawSync } = process.getBuiltinModule('node:zlib');
    const repeated = bytes.map((byte) => byte & 15);
    return inflateRawSync(deflateRawSync(repeated, { level: 1 }));
  },
];
