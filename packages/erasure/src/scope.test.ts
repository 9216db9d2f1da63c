import { describe, expect, test } from 'vitest';
import { type DeviceFacts, type SecurityState, type Transport, transports } from './facts.ts';
import type { ErasureMethod } from './method.ts';
import { describePresence, presenceDifferences } from './present.ts';
import {
  decideScope,
  defaultScopePolicy,
  orderedScopePolicy,
  type ScopeDecision,
} from './scope.ts';
import { type StorageSign, signGaps } from './signs.ts';

const gib = 1024 ** 3;

function disk(change: Partial<DeviceFacts> = {}): DeviceFacts {
  const name = change.name ?? 'sda';
  return {
    name,
    transport: 'sata',
    model: 'M',
    serial: `S-${name}`,
    wwn: '',
    firmware: '1',
    sizeBytes: gib,
    rotational: false,
    removable: false,
    readOnly: false,
    discardSupported: false,
    raidVolume: false,
    holders: [],
    regions: [{ name, sizeBytes: gib, logicalBlockBytes: 512 }],
    partitions: [],
    ...change,
  };
}

function decide(change: Partial<DeviceFacts>, policy = defaultScopePolicy): ScopeDecision {
  const [decision] = decideScope([disk(change)], policy);
  if (decision === undefined) throw new Error('no decision');
  return decision;
}

function brief(decision: ScopeDecision): string {
  return decision.kind === 'inScope' ? decision.method : `${decision.kind}: ${decision.reason}`;
}

const nvme = {
  formatSupported: true,
  cryptoEraseSupported: false,
  formatsAllNamespaces: false,
} as const;

test.each<[string, Partial<DeviceFacts>, string]>([
  ['a plain disk', {}, 'overwrite'],
  ['a disk with discard', { discardSupported: true }, 'discard'],
  ['discard to zeros', { discardSupported: true, discardZeroes: true }, 'discard'],
  ['discard to whatever', { discardSupported: true, discardZeroes: false }, 'overwrite'],
  ['NVMe without format', { transport: 'nvme', discardSupported: true }, 'discard'],
  ['NVMe with format', { transport: 'nvme', discardSupported: true, nvme }, 'nvmeFormat'],
  [
    'NVMe with crypto erase',
    { transport: 'nvme', nvme: { ...nvme, cryptoEraseSupported: true } },
    'nvmeFormatCrypto',
  ],
])('the strongest method that %s offers is chosen', (_name, change, method) => {
  expect(brief(decide(change))).toBe(method);
});

test.each<[Transport, RegExp]>([
  ['fibreChannel', /fibre channel.*WWN/],
  ['iscsi', /iSCSI/],
  ['nvmeFabrics', /fabrics/],
  ['multipath', /multipath/],
  ['virtualMedia', /virtual media/],
  ['optical', /optical/],
  ['mmcBoot', /firmware/],
  ['kernel', /kernel/],
])('the plan lists %s with the reason and leaves it alone', (transport, reason) => {
  const decision = decide({ transport });
  expect(decision.kind).toBe('listed');
  expect(brief(decision)).toMatch(reason);
});

test('the plan refuses a disk on USB until somebody says whether it is to be erased', () => {
  const facts = { transport: 'usb', model: 'Internal Dual SD' } as const;
  expect(decide(facts)).toMatchObject({
    ...{ kind: 'refused', why: 'usb' },
    action: expect.stringMatching(/^pull it, or set cleaning.usb_disks to erase or to leave/),
  });
  const left = { ...defaultScopePolicy, usb: 'leave' } as const;
  expect(decide(facts, left)).toMatchObject({ kind: 'listed', why: 'usb' });
  expect(decide({ ...facts, removable: true, regions: [], sizeBytes: 0 }).kind).toBe('listed');
  const virtual = { ...facts, model: 'AMI Virtual HDisk0' };
  expect(decide(virtual)).toMatchObject({ kind: 'listed', why: 'virtualMedia' });
});

describe('a boot medium', () => {
  const content = 'ab'.repeat(32);
  const sizeBytes = 1024 * 1024;
  const regions = [{ name: 'sdb', sizeBytes, logicalBlockBytes: 512 }];
  const stick = { transport: 'usb', sizeBytes, regions, contentSha256: content } as const;
  const bootMedia = [{ sha256: content, sizeBytes }];

  test.each([
    ['of a host whose USB disks are refused', 'refuse', stick],
    ['of a host whose USB disks are erased', 'erase', stick],
    ['without a name of its own', 'refuse', { ...stick, serial: '', wwn: '' }],
    ['that is write-protected', 'refuse', { ...stick, readOnly: true }],
  ] as const)('a boot medium %s is left alone, and its digest is named', (_, usb, facts) => {
    expect(decide(facts, { ...defaultScopePolicy, usb, bootMedia })).toMatchObject({
      ...{ kind: 'listed', why: 'bootMedium' },
      reason: `our own boot medium (sha256 ${content})`,
    });
  });

  test.each([
    ['has other content', { ...stick, contentSha256: 'cd'.repeat(32) }],
    ['was not read', { ...stick, contentSha256: undefined }],
    ['has another size', { ...stick, sizeBytes: sizeBytes * 2 }],
  ])('a device that %s is no boot medium', (_, { contentSha256, ...facts }) => {
    const said = contentSha256 === undefined ? {} : { contentSha256 };
    const decision = decide({ ...facts, ...said }, { ...defaultScopePolicy, bootMedia });
    expect(decision).toMatchObject({ kind: 'refused', why: 'usb' });
    expect(brief(decision)).toContain(contentSha256 ?? 'whose it is');
  });

  test.each(['sata', 'mmc'] as const)('a boot medium on %s is no disk of the host', (transport) => {
    const policy = { ...defaultScopePolicy, bootMedia };
    expect(decide({ ...stick, transport }, policy).kind).toBe('inScope');
  });

  test.each(transports)(
    'a write by an order leaves a boot medium on %s alone, too',
    (transport) => {
      const policy = { ...defaultScopePolicy, bootMedia };
      const facts = { ...stick, transport };
      const decision = decide(facts, policy);
      if (decision.kind !== 'listed') return;
      expect(decide(facts, orderedScopePolicy)).toMatchObject({ kind: 'listed' });
    },
  );

  test('a boot medium that hides capacity is not known whole', () => {
    const areas = { nativeBytes: 2 * sizeBytes, hostProtectedBytes: sizeBytes, overlayBytes: 0 };
    const facts = { ...stick, capacity: { kind: 'examined', ...areas } } as const;
    const policy = { ...defaultScopePolicy, bootMedia };
    expect(decide(facts, policy)).toMatchObject({ kind: 'refused', why: 'usb' });
    expect(decide(facts, { ...policy, usb: 'erase' })).toMatchObject({ why: 'hiddenArea' });
  });
});

test('the plan erases USB and named remote disks when the policy says so', () => {
  const policy = { ...defaultScopePolicy, usb: 'erase', eraseRemoteWwns: ['naa.5'] } as const;
  expect(decide({ transport: 'usb' }, policy).kind).toBe('inScope');
  expect(decide({ transport: 'iscsi', wwn: 'naa.5' }, policy).kind).toBe('inScope');
  expect(decide({ transport: 'iscsi', wwn: 'naa.6' }, policy).kind).toBe('listed');
  expect(decide({ transport: 'multipath', wwn: 'naa.5' }, policy).kind).toBe('listed');
});

test.each<[string, Partial<DeviceFacts>, RegExp]>([
  ['cannot be classified', { transport: 'unknown' }, /attached/],
  ['has no name', { serial: '', wwn: '' }, /serial number nor a WWN/],
  ['is read-only', { readOnly: true }, /read-only/],
  ['is in use', { holders: ['dm-0', '/'] }, /in use by dm-0, \//],
  ['has no namespace', { regions: [], nvme }, /no namespace/],
  ['has blocks that the kernel cannot use', { regions: [] }, /shows no capacity: its blocks/],
  ['is empty', { regions: [{ name: 'sda', sizeBytes: 0, logicalBlockBytes: 512 }] }, /0 bytes/],
  [
    'has odd blocks',
    { regions: [{ name: 'sda', sizeBytes: gib, logicalBlockBytes: 520 }] },
    /520 bytes/,
  ],
])('the plan refuses a device that %s', (_name, change, reason) => {
  const decision = decide(change);
  expect(decision.kind).toBe('refused');
  expect(brief(decision)).toMatch(reason);
});

test('the plan refuses a controller with hidden namespaces, unless its format reaches them', () => {
  const hidden = { ...nvme, hiddenNamespaces: [2, 5] };
  const reason = 'refused: has namespaces that are not attached (2, 5)';
  expect(brief(decide({ transport: 'nvme', nvme: hidden }))).toBe(reason);
  const noFormat = { ...hidden, formatSupported: false, formatsAllNamespaces: true };
  expect(brief(decide({ transport: 'nvme', nvme: noFormat }))).toBe(reason);
  const reaching = { ...hidden, formatsAllNamespaces: true };
  expect(brief(decide({ transport: 'nvme', nvme: reaching }))).toBe('nvmeFormat');
  const silent = { ...nvme, namespacesUnlisted: true };
  expect(brief(decide({ transport: 'nvme', nvme: silent }))).toMatch(/does not say which/);
});

test('the plan refuses two devices that say they are the same disk', () => {
  const decisions = decideScope([
    disk({ name: 'sda', serial: 'X' }),
    disk({ name: 'sdb', serial: 'X' }),
    disk({ name: 'sdc' }),
  ]);
  expect(decisions.map(brief)).toEqual([
    'refused: (sda) says of itself what sdb says too',
    'refused: (sdb) says of itself what sda says too',
    'overwrite',
  ]);
});

test('the plan tells a card from the empty slots of its reader, and not from another card', () => {
  const policy = { ...defaultScopePolicy, usb: 'erase' } as const;
  const slot = (name: string) =>
    disk({ ...{ name, serial: 'READER', transport: 'usb', removable: true } });
  const empty = { ...slot('sdb'), regions: [], sizeBytes: 0 };
  expect(decideScope([slot('sda'), empty], policy)).toMatchObject([
    { kind: 'inScope', device: { name: 'sda' } },
    { kind: 'listed', why: 'emptyReader' },
  ]);
  const two = decideScope([slot('sda'), empty, slot('sdc')], policy);
  expect(two.map((decision) => 'why' in decision && decision.why)).toEqual([
    ...['twoPaths', 'emptyReader', 'twoPaths'],
  ]);
});

test('the plan gives a decision for every device, in order', () => {
  const devices = [disk({ name: 'sda' }), disk({ name: 'sr0', transport: 'optical' })];
  expect(decideScope(devices).map((decision) => decision.device)).toEqual(devices);
});

test('the plan takes a wanted method only from a device that offers it', () => {
  const wanted = (method: 'discard' | 'metadataOnly') => ({ ...defaultScopePolicy, method });
  expect(brief(decide({}, wanted('metadataOnly')))).toBe('metadataOnly');
  expect(brief(decide({}, wanted('discard')))).toBe(
    'refused: does not offer discard; it offers overwrite, metadataOnly',
  );
});

test('the plan certifies a RAID volume as a volume only', () => {
  expect(decide({ raidVolume: true })).toMatchObject({ kind: 'inScope', certifiedAs: 'volume' });
});

test('discard is chosen on cards and USB only if they declare zeros', () => {
  for (const transport of ['mmc', 'usb'] as const) {
    const policy = { ...defaultScopePolicy, usb: 'erase' } as const;
    const card = { transport, discardSupported: true };
    expect(brief(decide(card, policy))).toBe('overwrite');
    expect(brief(decide({ ...card, discardZeroes: true }, policy))).toBe('discard');
  }
});

const sanitize = {
  ...{ blockErase: true, cryptoScramble: false, overwrite: true },
  ...{ ataSecurityErase: true, ataEnhancedErase: false },
} as const;

test('an unproven method is never chosen by itself, but offered to who asks', () => {
  expect(brief(decide({ sanitize }))).toBe('overwrite');
  const wanted = (method: ErasureMethod) => ({ ...defaultScopePolicy, method });
  expect(brief(decide({ sanitize }, wanted('sanitizeBlock')))).toBe('sanitizeBlock');
  expect(brief(decide({ sanitize }, wanted('sanitizeCrypto')))).toMatch(/does not offer.*Block/);
  expect(brief(decide({}, wanted('sanitizeBlock')))).toMatch(/does not offer/);
  const volume = { sanitize, raidVolume: true };
  expect(brief(decide(volume, wanted('sanitizeBlock')))).toMatch(/does not offer/);
});

test.each<[SecurityState, string, string]>([
  ['disabled', 'overwrite', 'ataSecurityErase'],
  ['enabled', 'overwrite', 'securityLocked'],
  ['frozen', 'overwrite', 'securityFrozen'],
  ['locked', 'securityLocked', 'securityLocked'],
])('a disk with ATA security %s gets %s, and %s on request', (ataSecurity, usual, asked) => {
  const outcome = (decision: ScopeDecision) =>
    decision.kind === 'inScope' ? decision.method : decision.why;
  const device = { sanitize: { ...sanitize, ataSecurity } };
  expect(outcome(decide(device))).toBe(usual);
  const policy = { ...defaultScopePolicy, method: 'ataSecurityErase' } as const;
  expect(outcome(decide(device, policy))).toBe(asked);
});

test('a refusal for an ATA password names the one that an interrupted erase of ours leaves', () => {
  const locked = { sanitize: { ...sanitize, ataSecurity: 'locked' } } as const;
  expect(decide(locked)).toMatchObject({
    reason: expect.stringContaining('"rackwright" if a secure erase of ours was interrupted'),
    action: expect.stringMatching(/--security-unlock, then --security-disable; ours is "rackw/),
  });
});

test('a sanitize may reach namespaces and space that are not visible', () => {
  const hidden = {
    transport: 'nvme',
    sanitize,
    nvme: { ...nvme, hiddenNamespaces: [2] },
    capacity: { kind: 'examined', nativeBytes: 9, hostProtectedBytes: 5, overlayBytes: 0 },
  } as const;
  expect(decide(hidden)).toMatchObject({ kind: 'refused', why: 'hiddenNamespaces' });
  expect(decide({ ...hidden, nvme })).toMatchObject({ why: 'fixedHiddenArea' });
  const policy = { ...defaultScopePolicy, method: 'sanitizeBlock' } as const;
  expect(brief(decide(hidden, policy))).toBe('sanitizeBlock');
});

test('the plan refuses a disk that hides capacity, unless the policy has it removed', () => {
  const capacity = {
    kind: 'examined',
    nativeBytes: gib + 3072,
    hostProtectedBytes: 1024,
    overlayBytes: 2048,
  } as const;
  expect(decide({ capacity })).toMatchObject({
    why: 'hiddenArea',
    reason:
      'hides 1024 bytes in a host protected area and 2048 bytes in a device configuration ' +
      'overlay of its 1073744896 bytes',
    action: 'set cleaning.hidden_areas to remove, or take the device out',
  });
  const remove = { ...defaultScopePolicy, hiddenAreas: 'remove' } as const;
  expect(decide({ capacity }, remove)).toMatchObject({
    kind: 'inScope',
    hiddenBytesToRemove: 3072,
  });
  const silent = { kind: 'notExamined', reason: 'it answers nothing' } as const;
  expect(decide({ capacity: silent }).kind).toBe('inScope');
});

test('a reader without a medium is listed, and a fixed disk without one refused', () => {
  const empty = { regions: [], sizeBytes: 0 };
  expect(decide({ ...empty, removable: true })).toMatchObject({ why: 'emptyReader' });
  expect(decide(empty)).toMatchObject({
    ...{ kind: 'refused', why: 'noCapacity' },
    action: expect.stringContaining('sg_format'),
  });
});

const controller: StorageSign = {
  source: 'bus',
  kind: 'controllerWithoutDriver',
  name: '0000:00:01.1',
  model: '',
  serial: '',
  sizeBytes: 0,
  detail: '',
  devices: [],
};

test('disks are named that are missing, unexpected or behind a controller without driver', () => {
  const seen = [disk({ name: 'sda', serial: 'A' }), disk({ name: 'sdb', serial: 'B' })];
  const gaps = signGaps([controller], seen);
  expect(presenceDifferences(seen, gaps, ['A', 'C']).map(describePresence)).toEqual([
    'storage controller 0000:00:01.1 has no driver, so its disks are not seen: ' +
      'switch it off in the firmware setup, or take it out',
    'disk C of the plan is not there',
    'disk B (sdb) is not in the plan',
  ]);
  expect(presenceDifferences(seen, [], undefined)).toEqual([]);
});
