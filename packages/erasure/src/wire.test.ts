import { create } from '@bufbuild/protobuf';
import { StorageDeviceSchema, Transport as WireTransport } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import { expect, test } from 'vitest';
import { type DeviceFacts, type MediaType, transports, type WriteCache } from './facts.ts';
import { erasureMethods } from './method.ts';
import { verificationToWire } from './verification-wire.ts';
import {
  deviceFactsOf,
  methodOf,
  methodToWire,
  type RecordedVerdict,
  storageDeviceOf,
  transportOf,
  verdictOf,
  verdictToWire,
} from './wire.ts';

const nvme: DeviceFacts = {
  name: 'nvme0',
  transport: 'nvme',
  model: 'M',
  serial: 'S',
  wwn: 'eui.1',
  firmware: 'F',
  sizeBytes: 2 ** 41,
  rotational: false,
  removable: false,
  readOnly: true,
  discardSupported: true,
  discardZeroes: false,
  raidVolume: false,
  holders: ['md0'],
  regions: [
    {
      name: 'nvme0n1',
      sizeBytes: 2 ** 41,
      logicalBlockBytes: 4096,
      discardGranularityBytes: 65_536,
    },
  ],
  partitions: [{ region: 'nvme0n1', offsetBytes: 1_048_576, sizeBytes: 4096 }],
  nvme: {
    formatSupported: true,
    cryptoEraseSupported: false,
    formatsAllNamespaces: true,
    deallocatedByte: 0xff,
    hiddenNamespaces: [3, 7],
    namespacesUnlisted: true,
    unallocatedBytes: 2 ** 40,
  },
  manufacturer: 'ACME',
  mediaType: 'ssd',
  capacity: {
    kind: 'examined',
    nativeBytes: 2 ** 41 + 4096,
    hostProtectedBytes: 4096,
    overlayBytes: 512,
    overlayUnknown: 'frozen',
  },
  writeCache: 'fixedOn',
  health: {
    passed: false,
    powerOnHours: 7,
    reallocatedSectors: 0,
    pendingSectors: 1,
    mediaErrors: 2,
    percentUsed: 120,
    temperatureCelsius: -3,
  },
  sanitize: {
    blockErase: true,
    cryptoScramble: false,
    overwrite: true,
    ataSecurityErase: true,
    ataEnhancedErase: false,
    ataSecurity: 'frozen',
  },
};

test('the codec carries every fact of a device over the wire and back', () => {
  expect(deviceFactsOf(storageDeviceOf(nvme))).toEqual(nvme);
  for (const transport of transports) {
    expect(deviceFactsOf(storageDeviceOf({ ...nvme, transport })).transport).toBe(transport);
  }
  const changes: Partial<DeviceFacts>[] = [
    ...mediaTypes.map((mediaType) => ({ mediaType })),
    ...writeCaches.map((writeCache) => ({ writeCache })),
    { capacity: { kind: 'notExamined', reason: 'behind a bridge' } },
    { health: {} },
  ];
  for (const change of changes) {
    const device = { ...nvme, ...change };
    expect(deviceFactsOf(storageDeviceOf(device))).toEqual(device);
  }
});

const mediaTypes: readonly MediaType[] = [
  'hdd',
  'ssd',
  'flashCard',
  'persistentMemory',
  'optical',
  'virtual',
];
const writeCaches: readonly WriteCache[] = ['none', 'on', 'off', 'fixedOn'];

test('a value that the inventory of an older runner lacks counts as unknown', () => {
  const older = create(StorageDeviceSchema, { device: 'sda', contentSha256: 'none' });
  const facts = deviceFactsOf(older);
  for (const name of [
    'manufacturer',
    'mediaType',
    'capacity',
    'writeCache',
    'health',
    'sanitize',
    'contentSha256',
  ]) {
    expect([name, Object.hasOwn(facts, name)]).toEqual([name, false]);
  }
  const { sanitize } = deviceFactsOf(create(StorageDeviceSchema, { sanitize: {}, capacity: {} }));
  expect(sanitize === undefined || Object.hasOwn(sanitize, 'ataSecurity')).toBe(false);
  const digest = 'ab'.repeat(32);
  const told = create(StorageDeviceSchema, { contentSha256: digest });
  expect(deviceFactsOf(told).contentSha256).toBe(digest);
});

test('unknown transports and methods count as none', () => {
  expect(transportOf(99 as WireTransport)).toBe('unknown');
  expect(transportOf(WireTransport.UNSPECIFIED)).toBe('unknown');
  expect(methodOf(agent.ErasureMethod.UNSPECIFIED)).toBeUndefined();
  expect(methodOf(99 as agent.ErasureMethod)).toBeUndefined();
  for (const method of erasureMethods) expect(methodOf(methodToWire(method))).toBe(method);
});

const erased = {
  kind: 'erased',
  level: 'sampled',
  placesRead: 1,
  bytesRead: 4096,
  bytesExamined: 8192,
} as const;
const verification = verificationToWire({ level: 'sampled', places: 1 });

test('the codec carries verdicts, and reads what it does not know as unverified', () => {
  const verdicts: RecordedVerdict[] = [
    erased,
    { kind: 'notErased', reason: 'r' },
    { kind: 'unverified', reason: 'u' },
    { kind: 'switchedOff' },
  ];
  for (const verdict of verdicts) {
    const fields = { ...verdictToWire(verdict), verification, challengeBlocksWritten: 64n };
    expect(verdictOf(create(agent.DeviceOutcomeSchema, fields))).toEqual(verdict);
  }
  const newer = create(agent.DeviceOutcomeSchema, { verdict: 99 as agent.VerdictKind });
  expect(verdictOf(newer).kind).toBe('unverified');
});

test('an erasure without places that were read, or without a challenge, is unverified', () => {
  const message = { ...verdictToWire(erased), verification };
  const read = (fields: object) =>
    verdictOf(create(agent.DeviceOutcomeSchema, { ...message, ...fields })).kind;
  expect(read({ challengeBlocksWritten: 64n })).toBe('erased');
  expect(read({ challengeBlocksWritten: 0n })).toBe('unverified');
  expect(read({ challengeBlocksWritten: 64n, placesRead: 0n })).toBe('unverified');
  const challenged = { challengeBlocksWritten: 64n };
  expect(read({ ...challenged, verification: undefined })).toBe('unverified');
  expect(read({ ...challenged, bytesExamined: 0n })).toBe('unverified');
});
