import fc from 'fast-check';
import { codes } from './codes.ts';
import { testCodec } from './test-codec.ts';

testCodec(codes, {
  golden: [['01032b3c', [1, 3, 43, 60]]],
  refused: [],
  values: fc.array(fc.nat(255)),
});
