import fc from 'fast-check';
import { expect, test } from 'vitest';
import { context, evidence } from './certificate.fixture.ts';
import {
  buildAddendum,
  buildManifest,
  buildRevocation,
  type ErasureManifest,
  parseDocument,
} from './documents.ts';

const sha256 = 'ab'.repeat(32);
const host = { name: 'hosts/h1', uid: 'uid-1' };
const createdAt = '2026-11-23T01:02:03.000Z';

type Device = ErasureManifest['devices'][number];
const text = fc.string({ unit: 'grapheme', maxLength: 40 });
const decision: fc.Arbitrary<Device['decision']> = fc.oneof(
  text.map((certificate) => ({ kind: 'erased' as const, certificate, certificateSha256: sha256 })),
  text.map((reason) => ({ kind: 'listed' as const, reason })),
  text.map((reason) => ({ kind: 'refused' as const, reason, action: 'a' })),
  text.map((reason) => ({ kind: 'gap' as const, reason, action: 'a' })),
);
const device: fc.Arbitrary<Device> = fc.record({
  sources: fc.subarray(['kernel', 'bus', 'firmware', 'bmc'] as const),
  kind: text,
  name: text,
  model: text,
  serial: text,
  wwn: text,
  sizeBytes: fc.nat(),
  decision,
});

function manifest(devices: readonly Device[]): Uint8Array {
  const rest = { runnerSession: 's', previousSha256: null };
  return buildManifest({ host, useEpoch: 3, createdAt, devices, ...rest });
}

test('every manifest reads back, and is complete only without a gap or refusal', () => {
  fc.assert(
    fc.property(fc.array(device, { maxLength: 5 }), (devices) => {
      const read = parseDocument(manifest(devices));
      if (read.kind !== 'manifest') throw new Error(read.kind);
      expect(read.manifest.devices).toEqual(devices);
      const open = devices.some(({ decision: { kind } }) => kind === 'gap' || kind === 'refused');
      expect(read.manifest.complete).toBe(!open);
    }),
  );
});

test('the reader refuses a manifest that calls itself complete with a gap', () => {
  const gap = { kind: 'gap', reason: 'r', action: 'a' } as const;
  const [sample] = fc.sample(device, 1);
  if (sample === undefined) throw new Error('no sample');
  const lie = Buffer.from(manifest([{ ...sample, decision: gap }]))
    .toString()
    .replace('"complete": false', '"complete": true');
  expect(() => parseDocument(Buffer.from(lie))).toThrow('complete: is not true');
});

function addendum(change = {}, step = {}): Uint8Array {
  const certificate = 'erasureCertificates/c1';
  const erasedSeed = new Uint8Array(32).fill(1);
  const outcome = { certificate, erasedSeed, ...change };
  const signed = evidence(outcome, { bootId: 'boot-2', ...step });
  const rest = { deviceIndex: 0, certificateSha256: sha256, createdAt };
  return buildAddendum({ host: context().host, useEpoch: 3, evidence: signed, ...rest });
}

test('an addendum is built only from evidence that proves', () => {
  const read = parseDocument(addendum());
  expect(read).toMatchObject({
    kind: 'addendum',
    addendum: { certificate: 'erasureCertificates/c1', bootId: 'boot-2', placesRead: 1088 },
  });
  expect(() => addendum({ placesRead: 0n })).toThrow('does not prove');
  expect(() => addendum({ certificate: '' })).toThrow('evidence.certificate: missing');
  expect(() => addendum({}, { ofFailedStep: true })).toThrow('does not prove');
  expect(() => addendum({}, { hostUid: 'other' })).toThrow('it is of other');
});

test('the reader reads back a revocation, and refuses other forms and formats', () => {
  const bytes = buildRevocation({
    host,
    certificate: 'erasureCertificates/c1',
    certificateSha256: sha256,
    deviceSerial: 'S',
    reason: 'dataReturned',
    detail: 'byte 0x5a is left',
    offset: 4096,
    useEpoch: 3,
    createdAt,
  });
  expect(parseDocument(bytes)).toMatchObject({ kind: 'revocation', revocation: { offset: 4096 } });
  const json = Buffer.from(bytes).toString();
  expect(() => parseDocument(Buffer.from(json.replace(': 4096', ':  4096')))).toThrow('canonical');
  const newer = json.replace('revocation-1', 'revocation-9');
  expect(() => parseDocument(Buffer.from(newer))).toThrow('format: none that is known');
  expect(() => parseDocument(Buffer.from('[]'))).toThrow('format: missing');
});
