import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { InventorySchema } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { partChanges, partChangeText } from './changes.ts';

const mac = '52:54:00:00:00:01';
type Shape = MessageInitShape<typeof InventorySchema>;

function textsOf(before: Shape, now: Shape): string[] {
  const [was, is] = [create(InventorySchema, before), create(InventorySchema, now)];
  expect(partChanges(was, was)).toEqual([]);
  return partChanges(was, is).map(partChangeText);
}

test('disks and interfaces come and go', () => {
  expect(
    textsOf(
      {
        devices: [{ serial: 'A1', model: 'M' }, { serial: 'B1' }],
        interfaces: [{ mac }, { mac: '52:54:00:00:00:02' }],
      },
      {
        devices: [{ serial: 'B1' }, { serial: 'C1' }, { serial: 'STICK', removable: true }],
        interfaces: [{ mac: mac.toUpperCase() }],
      },
    ),
  ).toEqual(['disk A1 is gone', 'disk C1 is new', 'interface 52:54:00:00:00:02 is gone']);
});

test('firmware of board and disks becomes another; what one side does not say is no change', () => {
  const firmware = (version: string) => [{ name: 'BIOS', version }];
  expect(
    textsOf(
      { firmware: firmware('1.0'), devices: [{ serial: 'A1', firmware: 'F1' }, { serial: 'B1' }] },
      {
        firmware: [...firmware('1.1'), { name: 'BMC', version: '3' }],
        devices: [
          { serial: 'A1', firmware: 'F2' },
          { serial: 'B1', firmware: 'F2' },
        ],
      },
    ),
  ).toEqual(['firmware BIOS: 1.0 is now 1.1', 'firmware A1: F1 is now F2']);
});

test('a memory module is another in another slot, and an older runner lists none', () => {
  const module = (slot: string, serial: string) => ({ slot, serial, sizeBytes: 8n << 30n });
  const memoryModules = [module('A1', 'S1'), module('A2', '')];
  expect(textsOf({ memoryModules: [] }, { memoryModules })).toEqual([]);
  expect(textsOf({ memoryModules }, { memoryModules: [] })).toEqual([]);
  expect(textsOf({ memoryModules }, { memoryModules: [module('A1', 'S2')] })).toEqual([
    'memory module S1 in A1 is gone',
    'memory module A2 is gone',
    'memory module S2 in A1 is new',
  ]);
});

test('a cable moves when another is heard, or nobody after listening for long enough', () => {
  const leaf = { chassisId: 'c', systemName: 'leaf-1', portId: 'Ethernet1' };
  const other = { chassisId: '02:00:00:00:00:09', portId: 'Ethernet9' };
  const heard = (neighbors: readonly object[], listenedSeconds: number): Shape => ({
    interfaces: [{ mac, neighbors: [...neighbors], listenedSeconds }],
  });
  expect(textsOf(heard([leaf], 3), heard([other], 3))).toEqual([
    `interface ${mac} is cabled to 02:00:00:00:00:09 Ethernet9, and was to leaf-1 Ethernet1`,
  ]);
  expect(textsOf(heard([leaf], 3), heard([], 35))).toEqual([
    `interface ${mac} is cabled to nothing, and was to leaf-1 Ethernet1`,
  ]);
  expect(textsOf(heard([], 35), heard([leaf], 1))).toHaveLength(1);
  expect(textsOf(heard([leaf], 3), heard([], 34))).toEqual([]);
  expect(textsOf(heard([], 34), heard([leaf], 3))).toEqual([]);
  expect(textsOf(heard([leaf, other], 60), heard([other, leaf], 60))).toEqual([]);
});
