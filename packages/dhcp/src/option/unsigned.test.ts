import fc from 'fast-check';
import { describe } from 'vitest';
import { testCodec } from './test-codec.ts';
import { unsigned16, unsigned32 } from './unsigned.ts';

describe('16 bits', () => {
  testCodec(unsigned16, {
    golden: [['05c0', 1472]],
    refused: ['', '05', '05c000'],
    values: fc.nat(0xffff),
  });
});

describe('32 bits', () => {
  testCodec(unsigned32, {
    golden: [
      ['0000012c', 300],
      ['ffffffff', 0xffff_ffff],
    ],
    refused: ['', '00', '0000', '000001', '0000012c00'],
    values: fc.nat(0xffff_ffff),
  });
});
