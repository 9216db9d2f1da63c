import fc from 'fast-check';
import { messageType } from './message-type.ts';
import { testCodec } from './test-codec.ts';

testCodec(messageType, {
  golden: [
    ['01', 'discover'],
    ['02', 'offer'],
    ['03', 'request'],
    ['04', 'decline'],
    ['05', 'ack'],
    ['06', 'nak'],
    ['07', 'release'],
    ['08', 'inform'],
  ],
  refused: ['', '00', '09', 'ff', '0101'],
  values: fc.constantFrom('discover', 'offer', 'request', 'ack', 'inform'),
});
