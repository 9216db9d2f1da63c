/** What tools print about devices, by their own source and the specifications they follow. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseAtaIdentity } from './ata-identity.ts';
import {
  compareSizes,
  parseMaxSectors,
  parseReadCapacity,
  parseRealMaxSectors,
  readScsiCapacity,
} from './capacity.ts';
import { parseHealth } from './health.ts';
import { identityText } from './identity.fixture.ts';
import { nvmeCapacity, parseCacheFeature } from './nvme.ts';
import { toolOutputBytesMax } from './tool.ts';
import { parseCachingPage } from './write-cache.ts';

test('cache, security, sanitize and hidden areas are read from IDENTIFY DEVICE', () => {
  // ACS-3 table 45: word 59 sanitize, 82/83 feature sets, 85 what is on, 128 security.
  const words = {
    27: 0x4143,
    59: 0xf000,
    82: 0x0422,
    83: 0x4800,
    85: 0x0020,
    89: 0x8010,
    90: 0x0005,
    119: 0x4100,
    128: 0x0021,
    217: 7200,
  };
  expect(parseAtaIdentity(identityText(words))).toEqual({
    hostProtectedArea: true,
    accessibleMaxAddress: true,
    overlay: true,
    writeCache: 'on',
    sanitize: {
      blockErase: true,
      cryptoScramble: true,
      overwrite: true,
      ataSecurityErase: true,
      ataEnhancedErase: true,
      ataSecurity: 'disabled',
    },
    rotation: 7200,
    eraseMinutes: 32,
    enhancedEraseMinutes: 10,
  });
});

test.each([
  [0x0001, 'disabled'],
  [0x0003, 'enabled'],
  [0x0009, 'frozen'],
  [0x000f, 'locked'],
])('the security word %x means %s', (word, state) => {
  const found = parseAtaIdentity(identityText({ 27: 0x4143, 82: 2, 128: word }));
  expect(found?.sanitize.ataSecurity).toBe(state);
});

test('the reader reads nothing from a device without answer, or with half of one', () => {
  expect(parseAtaIdentity('\n/dev/sdb:\n')).toBeUndefined();
  expect(parseAtaIdentity(identityText({}).slice(0, -41))).toBeUndefined();
  // Seen of a SCSI disk: zeros, exit code 0.
  expect(parseAtaIdentity(identityText({}))).toBeUndefined();
  expect(parseAtaIdentity(identityText({ 27: 0x4143 }))?.sanitize.ataSecurity).toBeUndefined();
});

test('the native size is read if the device says it, and not if hdparm invents it', () => {
  const enabled = '\n/dev/sda:\n max sectors   = 98304/131072, HPA is enabled\n';
  expect(parseMaxSectors(enabled)).toEqual({ addressable: 98_304, native: 131_072 });
  const successor = ' max sectors   = 131072/131072, ACCESSIBLE MAX ADDRESS disabled\n';
  expect(parseMaxSectors(successor)).toEqual({ addressable: 131_072, native: 131_072 });
  // Seen of a disk that refuses the command.
  expect(
    parseMaxSectors('SG_IO: bad/missing sense data\n max sectors   = 0/1, HPA is enabled'),
  ).toBe(undefined);
  expect(parseMaxSectors(' max sectors   = 5/3, HPA setting seems invalid')).toBeUndefined();
  expect(parseRealMaxSectors('DCO Revision: 0x0002\n\tReal max sectors: 262144\n')).toBe(262_144);
  const refused = 'DCO Revision: 0x0000 -- unknown, treating as 0002\n\tReal max sectors: 1\n';
  expect(parseRealMaxSectors(refused)).toBeUndefined();
});

test('a host protected area is told apart from an overlay behind it', () => {
  const sizes = { sizeBytes: 48 * 512, sectorBytes: 512, nativeSectors: 64, realSectors: 80 };
  expect(compareSizes(sizes)).toEqual({
    kind: 'examined',
    nativeBytes: 80 * 512,
    hostProtectedBytes: 16 * 512,
    overlayBytes: 16 * 512,
  });
  expect(compareSizes({ ...sizes, nativeSectors: 48, realSectors: undefined })).toMatchObject({
    ...{ nativeBytes: 48 * 512, hostProtectedBytes: 0, overlayBytes: 0 },
    overlayUnknown: expect.stringContaining('frozen'),
  });
});

test('the reader reads READ CAPACITY(16), and the total capacity of NVMe', () => {
  const said =
    'Read Capacity results:\n   Last LBA=131071 (0x1ffff), Number of logical blocks=131072\n' +
    '   Logical block length=512 bytes\n';
  expect(parseReadCapacity(said)).toBe(67_108_864);
  expect(parseReadCapacity('READ CAPACITY (16) failed: Invalid opcode')).toBeUndefined();
  expect(nvmeCapacity(1000, 200)).toMatchObject({ nativeBytes: 1000, hostProtectedBytes: 200 });
  expect(nvmeCapacity(0, 0).kind).toBe('notExamined');
});

test('a SCSI disk is not examined unless it offers more than the kernel uses', async () => {
  const stdout =
    'Read Capacity results:\n   Last LBA=131071 (0x1ffff), Number of logical blocks=131072\n' +
    '   Logical block length=512 bytes\n';
  const run = async () => ({ kind: 'exited', code: 0, stdout, stderr: '' }) as const;
  expect(await readScsiCapacity({ run }, '/dev/sda', 67_108_864)).toEqual({
    kind: 'notExamined',
    reason: 'a SCSI disk does not say whether MODE SELECT has made it smaller',
  });
  expect(await readScsiCapacity({ run }, '/dev/sda', 67_104_768)).toMatchObject({
    ...{ kind: 'examined', nativeBytes: 67_108_864, hostProtectedBytes: 4_096 },
  });
});

test('the reader reads the write cache and whether it can be switched off', () => {
  expect(parseCachingPage('    /dev/sda: ATA  D  2.5+\nWCE           1  [cha: y, def:  1]')).toBe(
    'on',
  );
  expect(parseCachingPage('WCE           1  [cha: n, def:  1, sav:  1]')).toBe('fixedOn');
  expect(parseCachingPage('WCE           0  [cha: y, def:  1]')).toBe('off');
  expect(parseCachingPage('Caching page not supported')).toBeUndefined();
  const feature = 'get-feature:0x06 (Volatile Write Cache), Current value:0x0000000';
  expect(parseCacheFeature(`${feature}1`)).toBe('on');
  expect(parseCacheFeature(`${feature}0`)).toBe('off');
  expect(parseCacheFeature('NVMe status: INVALID_FIELD(0x2)')).toBeUndefined();
});

test('the reader reads health from what smartctl says of ATA, SCSI and NVMe', () => {
  const ata = {
    smart_status: { passed: false },
    power_on_time: { hours: 9 },
    temperature: { current: -2 },
    ata_smart_attributes: {
      table: [
        { id: 5, raw: { value: 3 } },
        { id: 197, raw: { value: 4 } },
      ],
    },
  };
  expect(parseHealth(`noise\n${JSON.stringify(ata)}\n`)).toEqual({
    passed: false,
    powerOnHours: 9,
    temperatureCelsius: -2,
    reallocatedSectors: 3,
    pendingSectors: 4,
  });
  const nvme = { nvme_smart_health_information_log: { media_errors: 1, percentage_used: 130 } };
  expect(parseHealth(JSON.stringify(nvme))).toEqual({ mediaErrors: 1, percentUsed: 130 });
  expect(parseHealth(JSON.stringify({ scsi_grown_defect_list: 7 }))?.reallocatedSectors).toBe(7);
  expect(parseHealth('{"smartctl":{"exit_status":2}}')).toBeUndefined();
  expect(parseHealth('')).toBeUndefined();
});

const parsers: ((text: string) => unknown)[] = [
  parseAtaIdentity,
  parseMaxSectors,
  parseRealMaxSectors,
  parseReadCapacity,
  parseHealth,
  parseCachingPage,
  parseCacheFeature,
];

test('the reader takes as long for empty lines as for others, however many a tool prints', () => {
  const text = '\n'.repeat(toolOutputBytesMax);
  const before = process.cpuUsage();
  for (const parse of parsers) parse(text);
  const { user } = process.cpuUsage(before);
  expect(user / 1_000_000).toBeLessThan(5);
});

test('the reader gives a value or nothing for whatever a tool prints', () => {
  const likely = fc.oneof(
    fc.string(),
    fc.json(),
    fc.bigInt({ min: 0n, max: 1n << 80n }).map((n) => ` max sectors   = ${n}/${n}, HPA`),
    fc.bigInt({ min: 0n, max: 1n << 80n }).map((n) => `Number of logical blocks=${n}`),
    fc.uint8Array({ maxLength: 600 }).map((bytes) => identityText({ ...bytes })),
  );
  fc.assert(
    fc.property(likely, fc.string(), (text, more) => {
      for (const parse of parsers) {
        const found = parse(`${text}\n${more}`);
        if (typeof found === 'number') expect(Number.isSafeInteger(found)).toBe(true);
      }
    }),
  );
});
