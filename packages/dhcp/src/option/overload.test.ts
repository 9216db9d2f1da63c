import fc from 'fast-check';
import { overload } from './overload.ts';
import { testCodec } from './test-codec.ts';

testCodec(overload, {
  golden: [
    ['01', { bootFile: true, serverName: false }],
    ['02', { bootFile: false, serverName: true }],
    ['03', { bootFile: true, serverName: true }],
  ],
  refused: ['', '00', '04', '0101'],
  values: fc.constantFrom(
    { bootFile: true, serverName: false },
    { bootFile: false, serverName: true },
    { bootFile: true, serverName: true },
  ),
});
