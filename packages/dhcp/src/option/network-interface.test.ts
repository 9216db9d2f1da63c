import fc from 'fast-check';
import { networkInterface } from './network-interface.ts';
import { testCodec } from './test-codec.ts';

testCodec(networkInterface, {
  golden: [['010201', { type: 1, major: 2, minor: 1 }]],
  refused: ['', '01', '0102', '01020100'],
  values: fc.record({ type: fc.nat(255), major: fc.nat(255), minor: fc.nat(255) }),
});
