import { create } from '@bufbuild/protobuf';
import { InventorySchema } from '@rackwright/messages';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { traitsOf, unicastMac } from '../fleet-view/index.ts';
import { identitiesOf, isSameMachine } from './traits.ts';

const uuid = (byte: number) => Uint8Array.from({ length: 16 }, (_, at) => (at * 7 + byte) & 0xff);
const nic = (last: number) => `52:54:00:00:00:${last.toString(16).padStart(2, '0')}`;

function machine(uuidByte: number | undefined, serial: string, ...nics: number[]) {
  const system = { serial, ...(uuidByte === undefined ? {} : { uuid: uuid(uuidByte) }) };
  const interfaces = nics.map((last) => ({ mac: nic(last) }));
  return traitsOf(create(InventorySchema, { system, interfaces }));
}

const same = (...[one, other]: Parameters<typeof isSameMachine>) => isSameMachine(one, other);

test('zeros, filler words and invalid MACs count as absent', () => {
  const system = { uuid: new Uint8Array(16), serial: 'To be filled by O.E.M.' };
  const macs = ['00:00:00:00:00:00', 'ff:ff:ff:ff:ff:ff', '01:00:5e:00:00:01', 'no', nic(1)];
  const interfaces = macs.map((each) => ({ mac: each }));
  const traits = traitsOf(create(InventorySchema, { system, interfaces }), '52-54-00-00-00-0A');
  expect(traits).toEqual({ uuid: undefined, serial: undefined, macs: [nic(1), nic(10)] });
  expect(unicastMac('52-54-00-00-00-0A')).toBe(nic(10));
});

test('a machine is named by its UUID, else its serial, else its lowest MAC', () => {
  const names = (...of: Parameters<typeof machine>) =>
    identitiesOf(machine(...of)).map(({ by }) => by);
  expect(names(1, 'S1', 2, 1)).toEqual(['uuid', 'serial', 'mac']);
  expect(names(undefined, 'S1', 2, 1)).toEqual(['serial', 'mac']);
  expect(identitiesOf(machine(undefined, 'n/a', 2, 1))).toEqual([
    { by: 'mac', id: 'm-525400000001' },
  ]);
  expect(identitiesOf(machine(undefined, ''))).toEqual([]);
});

test('a machine is recognized with another interface, new ones, or a new board', () => {
  expect(same(machine(1, 'S1', 1, 2), machine(1, 'S1', 2, 1))).toBe(true);
  expect(same(machine(1, 'S1', 1, 2), machine(1, 'S1', 8, 9))).toBe(true);
  expect(same(machine(1, 'S1', 1, 2), machine(7, 'S1', 2))).toBe(true);
  expect(same(machine(undefined, '', 1, 2), machine(undefined, '', 2, 3))).toBe(true);
});

test('boards with one UUID, nodes with one serial and moved interfaces are told apart', () => {
  expect(same(machine(1, 'S1', 1), machine(1, 'S2', 2))).toBe(false);
  expect(same(machine(1, '', 1), machine(1, '', 2))).toBe(false);
  expect(same(machine(1, 'CHASSIS', 1), machine(2, 'CHASSIS', 2))).toBe(false);
  expect(same(machine(1, 'S1', 1), machine(2, 'S2', 1))).toBe(false);
});

test('the comparison is symmetric; a machine with any trait equals itself', () => {
  const any = fc
    .tuple(
      fc.option(fc.nat(3), { nil: undefined }),
      fc.constantFrom('', 'S1', 'S2'),
      fc.array(fc.nat(3), { maxLength: 3 }),
    )
    .map(([id, serial, nics]) => machine(id, serial, ...nics));
  fc.assert(
    fc.property(any, any, (one, other) => {
      expect(same(one, other)).toBe(same(other, one));
      expect(same(one, one)).toBe(identitiesOf(one).length > 0);
    }),
  );
});
