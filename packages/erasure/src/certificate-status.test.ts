import { create } from '@bufbuild/protobuf';
import { asIncarnation, StorageDeviceSchema } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { certificateOf, certify, evidence, newKey, trustPem } from './certificate.fixture.ts';
import { statementSha256 } from './certificate.ts';
import { judgeCertificates, type StatusQuestion } from './certificate-status.ts';
import { buildAddendum, buildManifest, buildRevocation } from './documents.ts';
import { publicKeyOf } from './signature.ts';
import { type Certificate, describeProblem, verifyCertificate, verifyDocument } from './verify.ts';

const createdAt = '2026-11-23T01:02:03.000Z';
const host = { name: 'hosts/h1', uid: 'uid-1' };
const plain = certificateOf();
const sha256 = statementSha256(plain.statement);

const revocation = certify(
  buildRevocation({
    host,
    certificate: 'erasureCertificates/c1',
    certificateSha256: sha256,
    deviceSerial: 'SER-1',
    reason: 'dataReturned',
    detail: 'byte 0x5a is left',
    offset: 4096,
    useEpoch: 3,
    createdAt,
  }),
);

/** By default the places of the seed of `plain` are read again. */
function addendum(bootId: string, change: Partial<agent.DeviceOutcome> = {}): Certificate {
  const erasedSeed = new Uint8Array(32).fill(1);
  const challengeSeed = new Uint8Array(32).fill(2);
  const outcome = { certificate: 'erasureCertificates/c1', erasedSeed, challengeSeed, ...change };
  const signed = evidence(outcome, { bootId });
  const rest = { deviceIndex: 0, certificateSha256: sha256, createdAt };
  return certify(buildAddendum({ host, useEpoch: 3, evidence: signed, ...rest }));
}

const manifest = certify(
  buildManifest({
    host,
    useEpoch: 4,
    createdAt,
    runnerSession: 's',
    devices: [],
    previousSha256: null,
  }),
);

function judge(
  certificates: readonly Certificate[],
  documents: readonly Certificate[] = [],
  change: Partial<StatusQuestion> = {},
) {
  const rest = { trust: trustPem, revocationsKnown: true, ...change };
  const { reports, documentProblems } = judgeCertificates({ certificates, documents, ...rest });
  return { statuses: reports.map(({ status }) => status), reports, documentProblems };
}

test('the check tells valid, void, metadata only, superseded, revoked and invalid apart', () => {
  const of = (change: Partial<agent.DeviceOutcome>) => [
    certificateOf({ evidence: evidence(change) }),
  ];
  expect(judge([plain]).statuses).toEqual(['valid']);
  expect(judge(of({ verdict: agent.VerdictKind.UNVERIFIED })).statuses).toEqual(['void']);
  const failed = certificateOf({ evidence: evidence({}, { ofFailedStep: true }) });
  expect(judge([failed]).statuses).toEqual(['void']);
  const metadata = { method: agent.ErasureMethod.METADATA_ONLY };
  expect(judge(of(metadata)).statuses).toEqual(['metadataOnly']);
  expect(judge([plain], [manifest]).statuses).toEqual(['superseded']);
  expect(judge([plain], [manifest, revocation]).statuses).toEqual(['revoked']);
  expect(judge([{ ...plain, signature: new Uint8Array(8) }]).statuses).toEqual(['invalid']);
});

test('the status says what is unknown without revocations, or an addendum of another boot', () => {
  const notProved = (documents: Certificate[], known: boolean) =>
    judge([plain], documents, { revocationsKnown: known }).reports[0]?.notProved.join('; ');
  expect(notProved([], false)).toMatch(/whether it was revoked is not known/);
  expect(notProved([], true)).not.toMatch(/revoked/);
  expect(notProved([], true)).toMatch(/not yet verified after a power cycle/);
  expect(notProved([addendum('boot')], true)).toMatch(/not yet verified after a power cycle/);
  expect(notProved([addendum('boot-2')], true)).not.toMatch(/power cycle/);
});

test('an addendum of other places, or of another device, proves nothing', () => {
  const notProved = (document: Certificate) =>
    judge([plain], [document], { revocationsKnown: true }).reports[0]?.notProved.join('; ');
  const otherSeed = addendum('boot-2', { erasedSeed: new Uint8Array(32).fill(3) });
  expect(notProved(otherSeed)).toMatch(/not yet verified.*: its addendum is of places of another/);
  const device = create(StorageDeviceSchema, { serial: 'SER-2', sizeBytes: 1_000_000n });
  expect(notProved(addendum('boot-2', { device }))).toMatch(/not yet verified.*of another device/);
});

test('a host’s chain is followed; two certificates in one place are refused', () => {
  const second = certificateOf({ previousSha256: sha256 });
  expect(judge([second, plain]).statuses).toEqual(['valid', 'valid']);
  expect(judge([second]).reports[0]?.notProved.join()).toMatch(/the certificate before it/);
  const fork = certificateOf({ previousSha256: sha256, orderedBy: 'user:x' });
  expect(judge([plain, second, fork]).statuses).toEqual(['valid', 'invalid', 'invalid']);
  const first = certificateOf({ orderedBy: 'user:x' });
  expect(judge([plain, first]).statuses).toEqual(['invalid', 'invalid']);
  expect(judge([plain, plain]).statuses).toEqual(['valid', 'valid']);
});

test('certificates of a store and of its copy stand beside each other, and say so', () => {
  const of = (store: string, orderedBy: string, previousSha256?: string) =>
    certificateOf({
      storeIncarnation: asIncarnation(store),
      orderedBy,
      ...(previousSha256 ? { previousSha256 } : {}),
    });
  const first = of('one', 'ann');
  const before = statementSha256(first.statement);
  const lost = of('one', 'bob', before);
  const restored = of('two', 'cid', before);
  const { statuses, reports } = judge([first, lost, restored]);
  expect(statuses).toEqual(['valid', 'valid', 'valid']);
  for (const [index, other] of [
    [1, restored],
    [2, lost],
  ] as const) {
    const said = reports[index]?.notProved.join('; ');
    expect(said).toContain(
      `put back to a copy, and SHA-256 ${statementSha256(other.statement)} follows`,
    );
  }
  expect(reports[0]?.notProved.join()).not.toContain('put back');
  const later = of('one', 'dan', statementSha256(lost.statement));
  const last = of('one', 'dan', statementSha256(later.statement));
  for (const order of [
    [last, later, restored, lost, first],
    [first, lost, later, last, restored],
  ]) {
    const { reports: all } = judge(order);
    const said = (each: Certificate) => all[order.indexOf(each)]?.notProved.join();
    const beside = `SHA-256 ${statementSha256(restored.statement)} follows`;
    expect([lost, later, last].map(said), 'all of the branch').toEqual(
      [0, 1, 2].map(() => expect.stringContaining(beside)),
    );
    expect(said(first)).not.toContain('put back');
  }
  const forged = of('two', 'eve', before);
  expect(judge([first, lost, restored, forged]).statuses).toEqual([
    ...['valid', 'valid', 'invalid', 'invalid'],
  ]);
});

test('the check trusts several keys, each in its own time', () => {
  const other = publicKeyOf(newKey().privatePem);
  const keys = (limits: string) => `${other}\n${limits}\n${trustPem}`;
  const kinds = (pem: string) => {
    const check = verifyCertificate(plain, pem);
    return check.kind === 'valid' ? [] : check.problems.map(({ kind }) => kind);
  };
  expect(kinds(keys(''))).toEqual([]);
  expect(kinds(other)).toEqual(['signature']);
  expect(kinds(keys('not-after: 2023-11-14T22:13:28Z'))).toEqual(['expiredKey']);
  expect(kinds(keys('not-after: 2023-11-14T22:13:30Z'))).toEqual([]);
  expect(kinds(keys('not-before: 2024-01-01T00:00:00Z'))).toEqual(['expiredKey']);
  expect(kinds(keys('not-after: nonsense'))).toEqual(['expiredKey']);
  expect(kinds(keys('not-after:'))).toEqual(['expiredKey']);
  const written = ['Not-After: 2023-11-01 00:00:00Z', '# not-after = 2023-11-01', 'not-after 2023'];
  for (const line of written) expect(kinds(keys(line)), line).toEqual(['expiredKey']);
});

test.each([
  ['manifest', manifest],
  ['addendum', addendum('boot-2')],
  ['revocation', revocation],
])('the check refuses a %s after any one byte of it is changed', (_name, document) => {
  expect(verifyDocument(document, trustPem).kind).toBe('valid');
  const length = document.statement.length;
  fc.assert(
    fc.property(fc.nat(length - 1), fc.integer({ min: 1, max: 255 }), (at, bits) => {
      const statement = document.statement.slice();
      statement[at] = (statement[at] ?? 0) ^ bits;
      expect(verifyDocument({ ...document, statement }, trustPem).kind).toBe('invalid');
    }),
    { numRuns: 60 },
  );
});

test('a field of an addendum that the agent did not sign is named, also when it is signed', () => {
  const { statement } = addendum('boot-2');
  const changed = Buffer.from(statement).toString().replace('"boot-2"', '"boot-3"');
  const check = verifyDocument(certify(Buffer.from(changed)), trustPem);
  if (check.kind === 'valid') throw new Error('valid');
  expect(check.problems.map(describeProblem)).toEqual([
    'bootId says "boot-3", the agent signed "boot-2"',
  ]);
});

test('the check counts only documents that verify', () => {
  const forged = { ...revocation, signature: manifest.signature };
  const { statuses, documentProblems } = judge([plain], [manifest, forged]);
  expect(statuses).toEqual(['superseded']);
  expect([...documentProblems.keys()]).toEqual([1]);
});
