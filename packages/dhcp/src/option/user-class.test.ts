import { EncodeError } from '@rackwright/bytes';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hexBytes, testCodec } from './test-codec.ts';
import { userClass } from './user-class.ts';

const ascii = (minLength: number) =>
  fc.string({ unit: 'grapheme-ascii', minLength, maxLength: 30 });

testCodec(userClass, {
  golden: [
    ['69505845', { form: 'plain', classes: ['iPXE'] }],
    ['0469505845', { form: 'listed', classes: ['iPXE'] }],
    ['0469505845026f6b', { form: 'listed', classes: ['iPXE', 'ok'] }],
  ],
  refused: [''],
  values: fc.oneof(
    fc.record({
      form: fc.constant('listed' as const),
      classes: fc.array(ascii(1), { minLength: 1, maxLength: 8 }),
    }),
    fc.record({
      form: fc.constant('plain' as const),
      // The first letter of printable text is a count of 32 or more: too many for a short text.
      classes: fc.tuple(ascii(1).map((text) => text.slice(0, 30))),
    }),
  ),
});

test('the codec takes counts that do not add up for plain text', () => {
  expect(userClass.decode(hexBytes('0569505845'))).toEqual({
    form: 'plain',
    classes: ['\x05iPXE'],
  });
  expect(userClass.decode(hexBytes('0469505845 00'))).toMatchObject({ form: 'plain' });
});

test('the codec refuses a listed class whose count is no byte', () => {
  const classes = ['x'.repeat(256)];
  expect(() => userClass.encode({ form: 'listed', classes })).toThrow(EncodeError);
});
