import fc from 'fast-check';
import { expect, test } from 'vitest';
import { negotiate } from './options.ts';

const limits = { blockBytesMax: 1468, windowBlocksMax: 16, timeoutSecondsMax: 30 };

test('a request without options gets blocks of 512 bytes, a window of 1 and no OACK', () => {
  expect(negotiate([], 1000, limits)).toEqual({
    blockBytes: 512,
    windowBlocks: 1,
    timeoutSeconds: undefined,
    answer: [],
  });
});

test('the options of EDK2 are answered', () => {
  const asked = [
    ['tsize', '0'],
    ['blksize', '1468'],
    ['windowsize', '4'],
  ] as const;
  expect(negotiate(asked, 174_592, limits)).toMatchObject({
    blockBytes: 1468,
    windowBlocks: 4,
    answer: [
      ['tsize', '174592'],
      ['blksize', '1468'],
      ['windowsize', '4'],
    ],
  });
});

test('the server lowers a block size and a window to our limits', () => {
  const asked = [
    ['blksize', '65464'],
    ['windowsize', '65535'],
  ] as const;
  expect(negotiate(asked, 1, limits)).toMatchObject({ blockBytes: 1468, windowBlocks: 16 });
});

test('a timeout is repeated exactly, or left out if it is longer than our limit', () => {
  expect(negotiate([['timeout', '30']], 1, limits).timeoutSeconds).toBe(30);
  for (const seconds of ['31', '255', '256']) {
    expect(negotiate([['timeout', seconds]], 1, limits)).toMatchObject({
      timeoutSeconds: undefined,
      answer: [],
    });
  }
});

test('the server omits tsize for an empty file, because curl refuses 0', () => {
  expect(negotiate([['tsize', '0']], 0, limits).answer).toEqual([]);
});

test.each([
  ['blksize', '7'],
  ['blksize', '65465'],
  ['blksize', '-8'],
  ['blksize', '0x200'],
  ['blksize', ''],
  ['blksize', '9'.repeat(400)],
  ['windowsize', '0'],
  ['windowsize', '65536'],
  ['timeout', '0'],
  ['tsize', 'many'],
  ['multicast', ''],
])('the option %s with the value "%s" is left out', (name, value) => {
  expect(negotiate([[name, value]], 5, limits).answer).toEqual([]);
});

test('the server knows names in any case and answers in the spelling of the client', () => {
  expect(negotiate([['BlkSize', '1024']], 5, limits)).toMatchObject({
    blockBytes: 1024,
    answer: [['BlkSize', '1024']],
  });
});

test('the first of two options with one name counts', () => {
  const asked = [
    ['blksize', '1024'],
    ['BLKSIZE', '8'],
  ] as const;
  expect(negotiate(asked, 5, limits)).toMatchObject({
    blockBytes: 1024,
    answer: [['blksize', '1024']],
  });
});

test('the server stays inside the limits for any options at all', () => {
  const name = fc.constantFrom('blksize', 'windowsize', 'timeout', 'tsize', 'other');
  const value = fc.oneof(fc.nat(70_000).map(String), fc.string());
  fc.assert(
    fc.property(fc.array(fc.tuple(name, value)), fc.nat(), (asked, fileBytes) => {
      const negotiated = negotiate(asked, fileBytes, limits);
      expect(negotiated.blockBytes).toBeGreaterThanOrEqual(8);
      expect(negotiated.blockBytes).toBeLessThanOrEqual(1468);
      expect(negotiated.windowBlocks).toBeGreaterThanOrEqual(1);
      expect(negotiated.windowBlocks).toBeLessThanOrEqual(16);
    }),
  );
});
