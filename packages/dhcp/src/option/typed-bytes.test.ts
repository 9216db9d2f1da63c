import fc from 'fast-check';
import { describe } from 'vitest';
import { hexBytes, testCodec } from './test-codec.ts';
import { clientIdentifier, machineIdentifier } from './typed-bytes.ts';

describe('client identifier', () => {
  testCodec(clientIdentifier, {
    golden: [['01525400780001', { type: 1, bytes: hexBytes('525400780001') }]],
    refused: ['', '01'],
    values: fc.record({
      type: fc.nat(255),
      bytes: fc.uint8Array({ minLength: 1, maxLength: 300 }),
    }),
  });
});

describe('machine identifier', () => {
  const uuid = '8f14e45fceea467a9c2b3d0e55aa0f01';
  testCodec(machineIdentifier, {
    golden: [[`00${uuid}`, { type: 0, bytes: hexBytes(uuid) }]],
    refused: ['', '00', `00${uuid.slice(2)}`, `00${uuid}00`],
    values: fc.record({
      type: fc.nat(255),
      bytes: fc.uint8Array({ minLength: 16, maxLength: 16 }),
    }),
  });
});
