import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type PxeOptions, pxe } from './pxe.ts';
import { anyAddress, anyText, hexBytes, testCodec } from './test-codec.ts';

const type = fc.nat(0xffff);
const servers = fc.array(fc.record({ type, addresses: fc.array(anyAddress, { maxLength: 4 }) }), {
  maxLength: 8,
});
const menu = fc.array(fc.record({ type, description: anyText(20) }), { maxLength: 8 });
const others = fc.array(
  fc.tuple(
    fc.integer({ min: 1, max: 254 }).filter((code) => ![6, 8, 9, 10, 71].includes(code)),
    fc.uint8Array({ maxLength: 40 }),
  ),
  { maxLength: 4 },
);
const values: fc.Arbitrary<PxeOptions> = fc.record(
  {
    discoveryControl: fc.nat(255),
    bootServers: servers,
    bootMenu: menu,
    menuPrompt: fc.record({ timeoutSeconds: fc.nat(255), prompt: anyText(100) }),
    bootItem: fc.record({ type, layer: type }),
    others,
  },
  { requiredKeys: ['others'] },
);

testCodec(pxe, {
  golden: [
    // What EDK2 sends to port 4011: boot item, type 0x8000, layer 0, end.
    ['470480000000ff', { bootItem: { type: 0x8000, layer: 0 }, others: [] }],
    [
      [
        '06010b', // discovery control
        '0807 8000 01 0a4d0001', // boot servers: type, count, address
        '0905 8000 02 5277', // menu: type, length, "Rw"
        '0a03 00 5277', // prompt: timeout, "Rw"
        'ff',
      ].join(' '),
      {
        discoveryControl: 11,
        bootServers: [{ type: 0x8000, addresses: ['10.77.0.1'] }],
        bootMenu: [{ type: 0x8000, description: 'Rw' }],
        menuPrompt: { timeoutSeconds: 0, prompt: 'Rw' },
        others: [],
      },
    ],
    ['0c02abcdff', { others: [[12, hexBytes('abcd')]] }],
  ],
  refused: [
    '06', // no length
    '0600', // discovery control of no byte
    '06020b00', // and of two
    '08068000010a4d00', // an address cut short
    '0803800001', // a count without its address
    '090480000252', // a description cut short
    '09018000',
    '0a00', // a prompt without its timeout
    '4703800000', // a boot item of three bytes
    '47058000000000',
  ],
  values,
});

test('the codec takes many small sub-options without slowing down', () => {
  const bytes = Uint8Array.from({ length: 2_000 }, (_, index) => (index % 2 === 0 ? 200 : 0));
  expect(pxe.decode(bytes).others).toHaveLength(1_000);
});
