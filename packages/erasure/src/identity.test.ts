import { expect, test } from 'vitest';
import { judgeIdentity, type MachineWitness } from './identity.ts';

function uuid(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex, 'hex'));
}

const raw = '00112233445566778899aabbccddeeff';

function machine(change: Partial<MachineWitness> = {}): MachineWitness {
  return { serials: {}, ...change };
}

test.each([
  ['as given', raw],
  ['with its first three fields turned', '33221100554477668899aabbccddeeff'],
  ['with all bytes turned', 'ffeeddccbbaa99887766554433221100'],
])('the comparison recognizes a GUID %s', (_name, bmc) => {
  expect(judgeIdentity(machine({ uuid: uuid(raw) }), machine({ uuid: uuid(bmc) }))).toEqual({
    kind: 'proven',
    witnesses: ['uuid'],
  });
});

test('both sides of a GUID that differs are named', () => {
  const other = '00112233445566778899aabbccddee00';
  expect(judgeIdentity(machine({ uuid: uuid(raw) }), machine({ uuid: uuid(other) }))).toEqual({
    kind: 'mismatch',
    witness: 'uuid',
    inBand: raw,
    outOfBand: other,
  });
});

test('one witness that differs outweighs others that are equal', () => {
  const verdict = judgeIdentity(
    machine({ uuid: uuid(raw), serials: { product: 'A1' } }),
    machine({ uuid: uuid(raw), serials: { product: 'B2' } }),
  );
  expect(verdict).toMatchObject({ kind: 'mismatch', witness: 'productSerial' });
});

test('serials are compared without case and blanks, also among other parts', () => {
  const verdict = judgeIdentity(
    machine({ serials: { product: ' abc12 ', chassis: 'CH-9' } }),
    machine({ serials: { product: 'CH-9', chassis: 'ch-9' } }),
  );
  expect(verdict).toEqual({ kind: 'proven', witnesses: ['productSerial', 'chassisSerial'] });
});

test.each([
  'To be filled by O.E.M.',
  'Default string',
  'Not Specified',
  '0000000000',
  '0123456789',
  ' ',
  'XXXXXXXX',
])('the comparison takes the serial "%s" for absent on both sides', (serial) => {
  const side = machine({ serials: { product: serial } });
  expect(judgeIdentity(side, side).kind).toBe('unproven');
});

test.each([
  '00000000000000000000000000000000',
  'ffffffffffffffffffffffffffffffff',
  '03000200040005000006000700080009',
])('the comparison takes the UUID %s for absent', (hex) => {
  const side = machine({ uuid: uuid(hex) });
  expect(judgeIdentity(side, side).kind).toBe('unproven');
});

test('the comparison is unproven, saying what each side has, when no witness is shared', () => {
  expect(
    judgeIdentity(machine({ uuid: uuid(raw) }), machine({ serials: { board: 'B7' } })),
  ).toEqual({
    kind: 'unproven',
    reason: 'no witness that both sides know: the machine says a UUID, its BMC says a board serial',
  });
});

test('the comparison compares the BMC as seen in band with the one seen out of band', () => {
  const here = machine({ bmcDeviceGuid: uuid(raw) });
  expect(judgeIdentity(here, here)).toEqual({ kind: 'proven', witnesses: ['bmc'] });
  const there = machine({ bmcDeviceGuid: uuid(`${raw.slice(0, 30)}01`) });
  expect(judgeIdentity(here, there)).toMatchObject({ kind: 'mismatch', witness: 'bmc' });
});
