/** Each sentence about a certificate: what it proves, what it does not, and why. */
import { create } from '@bufbuild/protobuf';
import { StorageDeviceSchema, Transport } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import { expect, test } from 'vitest';
import { certificateOf, certify, evidence, trustPem } from './certificate.fixture.ts';
import { type StatementContext, statementSha256 } from './certificate.ts';
import { judgeCertificates } from './certificate-status.ts';
import { buildManifest, buildRevocation } from './documents.ts';
import type { Certificate } from './verify.ts';

interface Change {
  readonly outcome?: Partial<agent.DeviceOutcome>;
  readonly step?: Partial<agent.StepEvidence>;
  readonly context?: Partial<StatementContext>;
}

const signed = 'the control plane signed it, and its agent signed the evidence (uid-1/1/2/1)';
const cleared = 'clear by one overwrite with zeros';
const read = '1088 places of 4 KiB, 4456448 bytes, were read back';
const sampled =
  `${read}: 100 %; a share of 0.4487 % left anywhere is found with 99 % confidence` as const;
const hidden = 'hidden areas: the device was not asked';
const unproved = 'not yet verified after a power cycle, as far as is known here';

function reportOf(change: Change, documents: readonly Certificate[] = []) {
  const { outcome = {}, step = {}, context = {} } = change;
  const certificate = certificateOf({ evidence: evidence(outcome, step), ...context });
  const question = { certificates: [certificate], documents, trust: trustPem };
  return judgeCertificates({ ...question, revocationsKnown: true }).reports[0];
}

const volume = create(StorageDeviceSchema, {
  ...{ device: 'sda', transport: Transport.SATA, model: 'Model', serial: 'SER-1' },
  ...{ sizeBytes: 1_000_000n, raidVolume: true },
});
const full = create(agent.VerificationSchema, { level: agent.VerificationLevel.FULL });
const { METADATA_ONLY } = agent.ErasureMethod;
const { SWITCHED_OFF, UNVERIFIED } = agent.VerdictKind;
const metadata = 'metadata by overwrite of partition tables and metadata';

test.each<[string, Change, readonly string[], readonly string[]]>([
  ['sampled', {}, [cleared, sampled], [hidden]],
  ['read whole', { outcome: { verification: full } }, [cleared, `${read}: every byte`], [hidden]],
  [
    'unverified',
    { outcome: { verdict: UNVERIFIED, verdictReason: 'I/O error' } },
    [],
    ['that it was erased: I/O error', hidden],
  ],
  [
    'not judged',
    { outcome: { verdict: SWITCHED_OFF } },
    [],
    ['that it was erased: the verdict was switched off', hidden],
  ],
  [
    'overwritten in part',
    { outcome: { method: METADATA_ONLY } },
    [metadata, `${read}: 100 %`],
    ['that anything but metadata was erased', hidden],
  ],
  [
    'a RAID volume',
    { outcome: { device: volume } },
    [cleared, sampled],
    [hidden, 'the disks behind this RAID volume'],
  ],
  ['of a failed step', { step: { ofFailedStep: true } }, [], ['nothing: its step failed', hidden]],
  [
    'of a machine that proved nothing',
    { step: { identityWitnesses: [] }, context: { identityWaivedBy: 'a policy' } },
    [cleared, sampled],
    [hidden, 'which machine it was: waived by a policy'],
  ],
])(
  'the sentences say all of a device that is %s, and nothing more',
  (_, change, proved, notProved) => {
    const report = reportOf(change);
    expect(report?.proved).toEqual([signed, ...proved]);
    expect(report?.notProved).toEqual([...notProved, unproved]);
    expect(report?.problems).toEqual([]);
  },
);

const createdAt = '2026-11-23T01:02:03.000Z';
const host = { name: 'hosts/h1', uid: 'uid-1' };

function manifestOf(useEpoch: number, uid = host.uid): Certificate {
  const rest = { createdAt, runnerSession: 's', devices: [], previousSha256: null };
  return certify(buildManifest({ host: { ...host, uid }, useEpoch, ...rest }));
}

test('a later use of the host is said with both uses, an earlier or another host’s is not', () => {
  const used = 'that the device is still erased: this is of use 3, and use 4 is known';
  expect(reportOf({}, [manifestOf(4)])).toMatchObject({
    ...{ status: 'superseded', notProved: [hidden, unproved, used] },
  });
  for (const document of [manifestOf(3), manifestOf(2), manifestOf(4, 'uid-2')]) {
    expect(reportOf({}, [document])).toMatchObject({
      ...{ status: 'valid', notProved: [hidden, unproved] },
    });
  }
  expect(reportOf({}, [manifestOf(4), manifestOf(3)])?.status).toBe('superseded');
});

test('a revocation is shown with its day, its reason and its detail', () => {
  const certificate = certificateOf();
  const revocation = certify(
    buildRevocation({
      ...{ host, certificate: 'erasureCertificates/c1', deviceSerial: 'SER-1', offset: 4096 },
      ...{ certificateSha256: statementSha256(certificate.statement), useEpoch: 3, createdAt },
      ...{ reason: 'dataReturned', detail: 'byte 0x5a is left' },
    }),
  );
  const judged = judgeCertificates({
    ...{ certificates: [certificate], documents: [revocation], trust: trustPem },
    revocationsKnown: false,
  });
  expect(judged.reports[0]).toMatchObject({
    ...{ status: 'revoked', notProved: [hidden, unproved] },
    problems: [`revoked on ${createdAt}: dataReturned: byte 0x5a is left`],
  });
});

test('a certificate that cannot be read proves nothing, and a bad document is named', () => {
  const broken = { statement: new Uint8Array([1]), signature: new Uint8Array(8) };
  const { reports, documentProblems } = judgeCertificates({
    ...{ certificates: [broken], documents: [manifestOf(4), broken], trust: trustPem },
    revocationsKnown: true,
  });
  expect(reports[0]).toMatchObject({ status: 'invalid', proved: [], notProved: ['anything'] });
  expect(reports[0]?.problems).not.toEqual([]);
  expect([...documentProblems.keys()]).toEqual([1]);
});
