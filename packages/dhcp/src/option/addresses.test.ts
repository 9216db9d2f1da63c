import fc from 'fast-check';
import { addresses } from './addresses.ts';
import { anyAddress, testCodec } from './test-codec.ts';

testCodec(addresses, {
  golden: [
    ['0a4d0001', ['10.77.0.1']],
    ['0a4d00010a4d0002', ['10.77.0.1', '10.77.0.2']],
  ],
  refused: ['', '0a4d00', '0a4d00010a', '0a4d00010a4d00'],
  values: fc.array(anyAddress, { minLength: 1, maxLength: 70 }),
});
