import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ipxe, relayAgent } from './sub-options.ts';
import { hexBytes, testCodec } from './test-codec.ts';

const value = fc.uint8Array({ maxLength: 255 });
const many = (code: fc.Arbitrary<number>) => fc.array(fc.tuple(code, value), { maxLength: 7 });

describe('relay agent', () => {
  testCodec(relayAgent, {
    golden: [
      [
        '0104000a0102 0206525400780001',
        [
          [1, hexBytes('000a0102')],
          [2, hexBytes('525400780001')],
        ],
      ],
      ['ff0100', [[255, hexBytes('00')]]],
    ],
    refused: ['01', '0102', '010200', '0101aa02'],
    values: many(fc.nat(255)),
  });
});

describe('iPXE', () => {
  testCodec(ipxe, {
    golden: [
      [
        'eb03010000 b00101 ff',
        [
          [0xeb, hexBytes('010000')],
          [176, hexBytes('01')],
        ],
      ],
    ],
    refused: ['b0', 'b002', 'b00201', 'b00101b0'],
    values: many(fc.integer({ min: 1, max: 254 })),
  });

  test('does without the end and skips padding', () => {
    expect(ipxe.decode(hexBytes('00b00101'))).toEqual([[176, hexBytes('01')]]);
    expect(ipxe.decode(hexBytes('ffb00101'))).toEqual([]);
  });
});
