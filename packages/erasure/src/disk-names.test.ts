import { expect, test } from 'vitest';
import { diskNames } from './disk-names.ts';

test('a disk is known by its serial and its WWN, however they are spelt', () => {
  expect(diskNames({ serial: ' s3z8nb0k ', wwn: '0x5002538e40a1b2c3' })).toEqual([
    { kind: 'serial', value: 'S3Z8NB0K' },
    { kind: 'wwn', value: '5002538E40A1B2C3' },
  ]);
  expect(diskNames({ serial: '', wwn: 'naa.5002538e40a1b2c3' })).toHaveLength(1);
});

test.each([
  '',
  '0000000',
  'AA000000000000000001',
  '123456789',
  'QM00003',
  'none',
  'XXXXXXXX',
  'A1',
])('the serial "%s" is no name', (serial) => {
  expect(diskNames({ serial, wwn: '' })).toEqual([]);
});

test.each(['0x0000000000000000', '5000000000000000', 'eui.0000000000000001', 'naa.1'])(
  'the WWN "%s" is no name',
  (wwn) => {
    expect(diskNames({ serial: '', wwn })).toEqual([]);
  },
);
