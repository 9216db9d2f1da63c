import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compareBmcDrives, type DriveFinding, type ListedDrive } from './bmc-drives.ts';
import type { DeviceFacts } from './facts.ts';

const gb = 1_000_000_000;

function device(name: string, change: Partial<DeviceFacts> = {}): DeviceFacts {
  const identity = { model: 'SAMSUNG MZ7LH960HAJR', serial: `S455NY0M${name}`, wwn: '' };
  return {
    ...{ name, transport: 'sata', ...identity, firmware: '1', sizeBytes: 960 * gb },
    ...{ rotational: false, removable: false, readOnly: false, discardSupported: false },
    ...{ raidVolume: false, holders: [], regions: [], partitions: [] },
    ...change,
  };
}

function drive(name: string, change: Partial<ListedDrive> = {}): ListedDrive {
  const identity = { model: 'SAMSUNG MZ7LH960HAJR', serial: `S455NY0M${name}` };
  return { name: `Bay ${name}`, ...identity, sizeBytes: 960 * gb, detail: 'SSD, SATA', ...change };
}

function brief(finding: DriveFinding): string {
  switch (finding.kind) {
    case 'accounted':
      return `${finding.device.name} by ${finding.by}`;
    case 'behindVolume':
      return `behind ${finding.volumes.map(({ name }) => name).join()}`;
    case 'notStorage':
      return 'no storage';
    case 'gap':
      return 'gap';
  }
}

function compared(drives: readonly ListedDrive[], devices: readonly DeviceFacts[]): string[] {
  return compareBmcDrives(drives, devices).map(brief);
}

describe('a drive that the BMC lists is accounted for', () => {
  test.each([
    ['its serial number', {}, {}, 'a by serial'],
    ['a serial padded and written otherwise', { serial: ' 00s455-ny0ma ' }, {}, 'a by serial'],
    ['the WWN', { serial: '5002538E40123456' }, { wwn: '0x5002538e40123456' }, 'a by serial'],
    ['most of its serial', { serial: 'SAMSUNG_S455NY0Ma' }, {}, 'a by partOfSerial'],
    ['model and size without a serial', { serial: '' }, {}, 'a by modelAndSize'],
    [
      'model and size beside a filler serial',
      { serial: 'N/A', model: 'MZ7LH960' },
      {},
      'a by modelAndSize',
    ],
    ['nothing for a short part', { serial: 'NY0Ma' }, {}, 'gap'],
    ['nothing for a model of another size', { serial: '', sizeBytes: 480 * gb }, {}, 'gap'],
    ['nothing without a size', { serial: '', sizeBytes: 0 }, {}, 'gap'],
    ['nothing for another serial', { serial: 'S455NY0Mz' }, {}, 'gap'],
  ] as const)('a drive is accounted for by %s', (_, listed, seen, expected) => {
    expect(compared([drive('a', listed)], [device('a', seen)])).toEqual([expected]);
  });

  test('two equal drives with one device leave one of them a gap', () => {
    const twin = drive('a', { serial: '' });
    expect(compared([twin, { ...twin }], [device('a')])).toEqual(['a by modelAndSize', 'gap']);
    const same = drive('a', { serial: 'ONE-SERIAL' });
    const seen = [device('a', { serial: 'ONE-SERIAL' }), device('b', { serial: 'ONE-SERIAL' })];
    expect(compared([same, { ...same }], seen)).toEqual(['a by serial', 'b by serial']);
  });

  test('a drive is accounted for by the surest way first, whatever the order', () => {
    const drives = [drive('x', { serial: '' }), drive('a')];
    const seen = [device('a'), device('b')];
    expect(compared(drives, seen)).toEqual(['b by modelAndSize', 'a by serial']);
  });

  test('a drive is not accounted for by virtual media, an optical drive or a remote disk', () => {
    for (const transport of ['virtualMedia', 'optical', 'iscsi', 'kernel'] as const) {
      expect(compared([drive('a')], [device('a', { transport })])).toEqual(['gap']);
    }
  });

  test('a device that shows less than the BMC lists is told', () => {
    const [finding] = compareBmcDrives([drive('a')], [device('a', { sizeBytes: 720 * gb })]);
    expect(finding).toMatchObject({ kind: 'accounted', hiddenBytes: 240 * gb });
    const [rounded] = compareBmcDrives([drive('a', { sizeBytes: 960_197_124_096 })], [device('a')]);
    expect(rounded).toMatchObject({ hiddenBytes: 0 });
  });
});

test('a RAID volume may stand for any drive that nobody sees', () => {
  const seen = [device('a'), device('vd0', { raidVolume: true, serial: 'VOLUME-0' })];
  expect(compared([drive('a'), drive('b')], seen)).toEqual(['a by serial', 'behind vd0']);
});

test('virtual media and optical drives are no storage of the machine', () => {
  const words = ['Virtual CD', 'HL-DT-ST DVD-ROM', 'Optical Drive 1', 'Virtual Media'];
  for (const model of words) expect(compared([drive('a', { model })], [])).toEqual(['no storage']);
  expect(compared([drive('a', { model: 'KIOXIA KCD6XLUL960G CD6-R' })], [])).toEqual(['gap']);
});

test('a gap names the drive, and what to do about it', () => {
  const [lost] = compareBmcDrives([drive('3')], []);
  expect(lost).toMatchObject({
    kind: 'gap',
    reason:
      'the BMC lists "Bay 3" (serial S455NY0M3, model SAMSUNG MZ7LH960HAJR, 960 GB), ' +
      'and the runner sees no such disk',
    action: expect.stringContaining('disk in "Bay 3" is plugged in'),
  });
  const [stale] = compareBmcDrives([drive('3')], [device('9')]);
  expect(stale).toMatchObject({ reason: expect.stringContaining('S455NY0M9 of the same model') });
});

test('each drive has one finding, and each device accounts for one drive', () => {
  const text = fc.constantFrom('', 'A1', 'SERIAL-0001', 'serial0001', 'SERIAL-0002', 'DVD', 'N/A');
  const size = fc.constantFrom(0, gb, 2 * gb);
  const drives = fc.array(
    fc.record({ name: text, model: text, serial: text, sizeBytes: size, detail: text }),
  );
  const devices = fc.array(
    fc
      .record({ model: text, serial: text, wwn: text, sizeBytes: size, raidVolume: fc.boolean() })
      .map((change) => device('d', change)),
  );
  fc.assert(
    fc.property(drives, devices, (listed, seen) => {
      const findings = compareBmcDrives(listed, seen);
      expect(findings.map((finding) => finding.drive)).toEqual(listed);
      const used = findings.flatMap((one) => (one.kind === 'accounted' ? [one.device] : []));
      expect(new Set(used).size).toBe(used.length);
      expect(used.every((one) => !one.raidVolume)).toBe(true);
    }),
  );
});
