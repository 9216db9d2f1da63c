import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  BmcDriveListSchema,
  BmcPartsSchema,
  InventorySchema,
  PartKind,
  PartMatch,
  Transport,
} from '@rackwright/messages';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { comparedParts, gapsOfBmc, sameVersion } from './compare.ts';

const gb = 1_000_000_000n;
const { SAME, DIFFERS, ONLY_HOST, ONLY_BMC } = PartMatch;

interface PartsInit {
  readonly seen?: MessageInitShape<typeof InventorySchema>;
  readonly drives?: MessageInitShape<typeof BmcDriveListSchema>;
  readonly parts?: MessageInitShape<typeof BmcPartsSchema>;
}

function viewsOf({ seen, drives, parts }: PartsInit) {
  return {
    inventory: seen && create(InventorySchema, seen),
    bmcDrives: drives && create(BmcDriveListSchema, drives),
    bmcParts: parts && create(BmcPartsSchema, parts),
  };
}

/** Each row in short: how it matches, both names, what differs. */
function rowsOf(told: PartsInit) {
  return comparedParts(viewsOf(told)).map(({ match, host, bmc, differences = [] }) => [
    match,
    host?.name,
    bmc?.name,
    differences.join(),
  ]);
}

const disk = (device: string, serial: string, more: object = {}) => {
  return { device, serial, transport: Transport.SATA, sizeBytes: 960n * gb, ...more };
};
const drive = (name: string, serial: string, more: object = {}) => {
  return { name, serial, sizeBytes: 960n * gb, ...more };
};
const list = (...drives: object[]) => ({ available: true, complete: true, drives });

test('drives are compared by serial number, size and firmware', () => {
  const seen = {
    devices: [
      disk('sda', 'SERIAL-A', { firmware: 'F1' }),
      disk('sdb', 'SERIAL-B', { firmware: 'F1', sizeBytes: 480n * gb }),
      disk('sdc', 'SERIAL-C'),
      disk('sr0', '', { transport: Transport.OPTICAL }),
    ],
  };
  const drives = list(
    drive('Bay 1', 'serial-a', { firmware: 'f1' }),
    drive('Bay 2', 'SERIAL-B', { firmware: 'F2' }),
    drive('Bay 4', 'SERIAL-D'),
  );
  expect(rowsOf({ seen, drives })).toEqual([
    [SAME, 'sda', 'Bay 1', ''],
    [DIFFERS, 'sdb', 'Bay 2', 'size_bytes,version'],
    [ONLY_BMC, undefined, 'Bay 4', ''],
    [ONLY_HOST, 'sdc', undefined, ''],
  ]);
});

test('no part counts as missing if a side does not list such parts, or not all', () => {
  const seen = { devices: [disk('sda', 'SERIAL-A')], interfaces: [{ name: 'eth0', mac: 'aa' }] };
  const [open] = [[undefined, 'sda', undefined, '']];
  expect(rowsOf({ seen })[0]).toEqual(open);
  expect(rowsOf({ seen, drives: { available: false } })[0]).toEqual(open);
  expect(rowsOf({ seen, drives: { ...list(), complete: false } })[0]).toEqual(open);
  const drives = list(drive('Bay 1', 'SERIAL-A'));
  expect(rowsOf({ drives })).toEqual([[undefined, undefined, 'Bay 1', '']]);
  // A drive may be behind a volume of a RAID controller.
  const behind = { devices: [disk('sda', 'VOLUME', { raidVolume: true })] };
  expect(rowsOf({ seen: behind, drives }).map(([match]) => match)).toEqual([undefined, undefined]);
  const parts = { complete: false, interfaces: [{ name: 'NIC.1', mac: 'bb' }] };
  expect(rowsOf({ seen, parts }).slice(1)).toEqual([
    [undefined, 'eth0', undefined, ''],
    [ONLY_BMC, undefined, 'NIC.1', ''],
  ]);
});

test('interfaces are compared by MAC address', () => {
  const interfaces = [
    { name: 'eth0', mac: '52:54:00:00:00:0a' },
    { name: 'eth1', mac: '52:54:00:00:00:0b' },
  ];
  const listed = [
    { name: 'NIC.1', mac: '52:54:00:00:00:0A' },
    { name: 'NIC.2', mac: '52:54:00:00:00:0C' },
  ];
  expect(rowsOf({ seen: { interfaces }, parts: { complete: true, interfaces: listed } })).toEqual([
    [SAME, 'eth0', 'NIC.1', ''],
    [ONLY_HOST, 'eth1', undefined, ''],
    [ONLY_BMC, undefined, 'NIC.2', ''],
  ]);
});

test('memory modules are the same by serial, else by slot, else by size without a serial', () => {
  const module = (slot: string, serial: string, gib = 16n) => {
    return { slot, serial, sizeBytes: gib << 30n };
  };
  const seen = {
    memoryModules: [
      module('DIMM_A1', 'S-111'),
      module('DIMM_A2', 'S-222'),
      module('P0 CHANNEL B', ''),
      module('DIMM_C1', 'S-444', 32n),
    ],
  };
  const memoryModules = [
    module('DIMM A2', 'S-999', 8n),
    module('somewhere', 's-111'),
    module('proc1dimm3', 'S-333'),
    module('proc1dimm4', 'S-555', 32n),
  ];
  expect(rowsOf({ seen, parts: { complete: true, memoryModules } })).toEqual([
    [SAME, 'DIMM_A1', 'somewhere', ''],
    [DIFFERS, 'DIMM_A2', 'DIMM A2', 'serial,size_bytes'],
    [SAME, 'P0 CHANNEL B', 'proc1dimm3', ''],
    [ONLY_HOST, 'DIMM_C1', undefined, ''],
    [ONLY_BMC, undefined, 'proc1dimm4', ''],
  ]);
});

test('firmware differs where both say a version; one side may say less of it', () => {
  const firmware = (bios: string) => [{ name: 'BIOS', version: bios }];
  const parts = { firmware: [...firmware('2.04.0'), { name: 'BMC', version: '7' }] };
  expect(rowsOf({ seen: { firmware: firmware('2.4') }, parts })).toEqual([
    [SAME, 'BIOS', 'BIOS', ''],
    [undefined, undefined, 'BMC', ''],
  ]);
  expect(rowsOf({ seen: { firmware: firmware('2.5') }, parts })[0]).toEqual([
    ...[DIFFERS, 'BIOS', 'BIOS', 'version'],
  ]);
  expect(sameVersion('U32 v2.1 (x)', 'u32 v2.10')).toBe(false);
  expect(sameVersion('0', '00')).toBe(true);
});

test('the comparison says what the BMC does not list', () => {
  expect(gapsOfBmc(viewsOf({}))).toContain('not asked for drives');
  const drives = { available: false, unavailableReason: 'it is silent' };
  const told = gapsOfBmc(viewsOf({ drives, parts: { complete: false } }));
  expect(told).toContain('it is silent');
  expect(told).toContain('more parts');
  expect(gapsOfBmc(viewsOf({ drives: list(), parts: { complete: true } }))).toBe('');
});

test('each part of each side stands in one row, whatever the lists hold', () => {
  const few = fc.constantFrom('', 'A-1', 'B-2', 'C-3');
  const parts = fc.array(fc.record({ slot: few, serial: few, mac: few, name: few }), {
    maxLength: 5,
  });
  fc.assert(
    fc.property(parts, parts, fc.boolean(), (own, others, complete) => {
      const seen = { interfaces: own, memoryModules: own };
      const rows = comparedParts(
        viewsOf({ seen, parts: { complete, interfaces: others, memoryModules: others } }),
      );
      for (const kind of [PartKind.INTERFACE, PartKind.MEMORY]) {
        const ofKind = rows.filter((row) => row.kind === kind);
        expect(ofKind.filter(({ host }) => host !== undefined)).toHaveLength(own.length);
        expect(ofKind.filter(({ bmc }) => bmc !== undefined)).toHaveLength(others.length);
      }
    }),
  );
});
