import { EncodeError } from '@rackwright/bytes';
import { expect, test } from 'vitest';
import { address } from './address.ts';
import { anyAddress, testCodec } from './test-codec.ts';

testCodec(address, {
  golden: [
    ['0a4d0001', '10.77.0.1'],
    ['ffffffff', '255.255.255.255'],
  ],
  refused: ['', '0a', '0a4d', '0a4d00', '0a4d000100'],
  values: anyAddress,
});

test('the codec refuses to write what is no dotted address', () => {
  for (const text of [
    '',
    '10.77.0',
    '10.77.0.256',
    '10.77.0.01',
    '10.77.0.1.1',
    'a.b.c.d',
    '::1',
  ]) {
    expect(() => address.encode(text)).toThrow(EncodeError);
  }
});
