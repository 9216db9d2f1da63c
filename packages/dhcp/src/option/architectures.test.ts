import fc from 'fast-check';
import { architectures } from './architectures.ts';
import { testCodec } from './test-codec.ts';

testCodec(architectures, {
  golden: [
    ['0000', [0]],
    ['00070010', [7, 16]],
  ],
  refused: ['', '00', '000700'],
  values: fc.array(fc.nat(0xffff), { minLength: 1, maxLength: 100 }),
});
