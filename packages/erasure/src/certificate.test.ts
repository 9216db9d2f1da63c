import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { StorageDeviceSchema } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import { expect, test } from 'vitest';
import { certify, context, evidence, trust, trustPem } from './certificate.fixture.ts';
import {
  buildStatement,
  joinEvidence,
  type StatementContext,
  separatedEvidenceSha256,
  separateEvidence,
} from './certificate.ts';
import { buildManifest } from './documents.ts';
import { signBytes } from './signature.ts';
import { parseStatement, provesErasure } from './statement.ts';
import { type Certificate, describeProblem, verifyCertificate } from './verify.ts';
import { deviceFactsOf, storageDeviceOf } from './wire.ts';

function problemsOf(certificate: Certificate, pem = trustPem): string[] {
  const check = verifyCertificate(certificate, pem);
  return check.kind === 'valid' ? [] : check.problems.map(describeProblem);
}

test('the statement verifies and says which level was reached', () => {
  const check = verifyCertificate(certify(buildStatement(context())), trustPem);
  if (check.kind !== 'valid') throw new Error(check.problems.map(describeProblem).join('; '));
  expect(check.statement).toMatchObject({
    level: 'clear',
    verdict: { kind: 'erased', placesRead: 1088 },
    startedAt: '2023-11-14T22:13:20.000Z',
    identity: { kind: 'proven', witnesses: ['uuid'] },
    previousSha256: null,
    useEpoch: 3,
  });
  expect(provesErasure(check.statement)).toBe(true);
});

test('a disk with a frozen overlay is certified with a note on what may be hidden', () => {
  const overlayUnknown = 'its device configuration overlay is frozen';
  const device = storageDeviceOf({
    ...deviceFactsOf(create(StorageDeviceSchema, { device: 'sda', serial: 'SER-1' })),
    capacity: {
      ...{ kind: 'examined', nativeBytes: 1_000_000, hostProtectedBytes: 0, overlayBytes: 0 },
      overlayUnknown,
    },
  });
  const taken = Array.from({ length: 70 }, (_, at) => `dm-${at} (LVM)`);
  const change = { device: create(StorageDeviceSchema, device), dismantled: taken };
  const statement = buildStatement(context({ evidence: evidence(change) }));
  expect(problemsOf(certify(statement))).toEqual([]);
  expect(parseStatement(statement).notExamined).toEqual([overlayUnknown]);
  expect(parseStatement(statement).dismantled).toHaveLength(64);
});

test('a certificate states how often a disk was read, and its speed over all readings', () => {
  const twice = { readings: 2, bytesOfReadings: 30_000_000n, verifyMs: 1_000n };
  const statement = parseStatement(buildStatement(context({ evidence: evidence(twice) })));
  expect(statement).toMatchObject({ verifyPasses: 2, readSpeed: 30_000_000, verifyMs: 1_000 });
});

const manifest = buildManifest({
  host: { name: 'hosts/h1', uid: 'uid-1' },
  useEpoch: 3,
  createdAt: '2026-11-23T01:02:03.000Z',
  runnerSession: 's',
  devices: [],
  previousSha256: null,
});

test.for([
  ['certificate', buildStatement(context())],
  ['manifest', manifest],
] as const)('openssl alone verifies a %s, and refuses one changed byte', ([, bytes], here) => {
  const folder = mkdtempSync(join(tmpdir(), 'rackwright-certificate-'));
  const verify = () => {
    const args = ['dgst', '-sha256', '-verify', 'trust.pem', '-signature', '1.json.sig', '1.json'];
    return execFileSync('openssl', args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' });
  };
  try {
    try {
      execFileSync('openssl', ['version'], { stdio: 'pipe' });
    } catch {
      here.skip('peer missing: openssl: run npm run peers');
    }
    const { statement, signature } = certify(bytes);
    writeFileSync(join(folder, 'trust.pem'), trustPem);
    writeFileSync(join(folder, '1.json.sig'), signature);
    writeFileSync(join(folder, '1.json'), statement);
    expect(verify()).toBe('Verified OK\n');
    const changed = statement.slice();
    changed[200] = (changed[200] ?? 0) ^ 1;
    writeFileSync(join(folder, '1.json'), changed);
    expect(verify).toThrow();
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('verification fails after any one changed byte of statement or signature', () => {
  const { statement, signature } = certify(buildStatement(context()));
  for (let at = 0; at < statement.length; at += 7) {
    const changed = statement.slice();
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(problemsOf({ statement: changed, signature })).not.toEqual([]);
  }
  for (let at = 0; at < signature.length; at++) {
    const changed = signature.slice();
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(problemsOf({ statement, signature: changed })).not.toEqual([]);
  }
});

test('a field that differs from the signed evidence is named', () => {
  const { statement, signature } = certify(buildStatement(context()));
  const changed = Buffer.from(Buffer.from(statement).toString().replace('"Model"', '"Modem"'));
  const problems = problemsOf({ statement: changed, signature });
  expect(problems[0]).toMatch(/^the signature is not over this statement/);
  expect(problems[1]).toBe('device.model says "Modem", the agent signed "Model"');
  const resigned = certify(changed);
  expect(problemsOf(resigned)).toEqual(['device.model says "Modem", the agent signed "Model"']);
});

test('evidence that another key signed is refused', () => {
  const forged = { ...evidence(), signature: signBytes(evidence().payload, trust.privatePem) };
  const statement = buildStatement(context({ evidence: forged }));
  expect(problemsOf(certify(statement))).toEqual([
    "the agent's signature is not over this evidence by this agent's key",
  ]);
});

test.each([
  ['a verdict that was switched off', agent.VerdictKind.SWITCHED_OFF],
  ['data that is left', agent.VerdictKind.NOT_ERASED],
  ['no verdict at all', agent.VerdictKind.UNSPECIFIED],
])('no level is claimed for %s, and one that is claimed is refused', (_name, verdict) => {
  const statement = buildStatement(context({ evidence: evidence({ verdict }) }));
  const parsed = parseStatement(statement);
  expect(parsed.level).toBeNull();
  expect(provesErasure(parsed)).toBe(false);
  const lie = Buffer.from(statement).toString().replace('"level": null', '"level": "clear"');
  expect(() => parseStatement(Buffer.from(lie))).toThrow(/^level: null is what overwrite with/);
});

test('"erased" without a place that was read does not count as erased', () => {
  const statement = buildStatement(context({ evidence: evidence({ placesRead: 0n }) }));
  expect(parseStatement(statement).verdict.kind).toBe('unverified');
});

test('the certificate does not count metadata erasure as erasure of the device', () => {
  const method = agent.ErasureMethod.METADATA_ONLY;
  const parsed = parseStatement(buildStatement(context({ evidence: evidence({ method }) })));
  expect(parsed.level).toBe('metadata');
  expect(provesErasure(parsed)).toBe(false);
});

test('evidence of another host or operation, or incomplete evidence, is refused', () => {
  const build = (change: Partial<StatementContext>) => () => buildStatement(context(change));
  expect(build({ operationId: 'x' })).toThrow('evidence.operationId: it is of uid-1/1/2/1');
  expect(build({ host: { name: 'h', uid: 'u2' } })).toThrow('evidence.hostUid');
  expect(build({ deviceIndex: 1 })).toThrow('no device 1 of 1');
  const unspecified = evidence({ method: agent.ErasureMethod.UNSPECIFIED });
  expect(build({ evidence: unspecified })).toThrow('evidence.method: missing or unknown');
  const rubbish = { ...evidence(), payload: new Uint8Array([1, 2, 3]) };
  expect(build({ evidence: rubbish })).toThrow('no StepEvidence message');
});

test('other forms of the same statement, and unknown fields, are refused', () => {
  const text = Buffer.from(buildStatement(context())).toString();
  const spaced = text.replace('"useEpoch": 3', '"useEpoch":  3');
  const at = text.indexOf('"useEpoch": 3') + '"useEpoch": '.length;
  expect(() => parseStatement(Buffer.from(spaced))).toThrow(
    `not in canonical form from byte ${at} on`,
  );
  const extra = text.replace('"useEpoch": 3', '"useEpoch": 3, "x": 1');
  expect(() => parseStatement(Buffer.from(extra))).toThrow('x: no field of this format');
  expect(() => parseStatement(Buffer.from('{'))).toThrow('no JSON text');
});

test('a trusted key that is no key is refused as such', () => {
  const certificate = certify(buildStatement(context()));
  expect(problemsOf(certificate, 'nonsense')).toEqual([
    'the trusted key is unusable: not a public key',
  ]);
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' });
  const otherCurve = publicKey.export({ type: 'spki', format: 'pem' }).toString();
  expect(problemsOf(certificate, otherCurve)).toEqual([
    'the trusted key is unusable: a public key on P-256 is needed, not secp384r1',
  ]);
});

test('the confidence is derived from the places that were read', () => {
  const { verification, host, powerCycle } = parseStatement(buildStatement(context()));
  expect(verification).toEqual({
    level: 'sampled',
    places: 1024,
    shareReadPpcm: 100_000_000,
    findsSharePpcm: 448_714,
    confidenceBp: 9900,
  });
  expect(host).toMatchObject({ serial: 'HOST-SERIAL', assetTag: 'A-77' });
  expect(powerCycle).toBe('notYetVerified');
  const method = agent.ErasureMethod.NVME_FORMAT_CRYPTO;
  const crypto = parseStatement(buildStatement(context({ evidence: evidence({ method }) })));
  expect(crypto.verification).toMatchObject({ findsSharePpcm: null, confidenceBp: null });
  expect(crypto.methodProvenOnDevice).toBe(false);
});

test('evidence of a step that failed proves nothing, whatever it says of one disk', () => {
  const failed = evidence({}, { ofFailedStep: true });
  const statement = buildStatement(context({ evidence: failed }));
  const parsed = parseStatement(statement);
  expect(parsed).toMatchObject({ level: null, ofFailedStep: true, verdict: { kind: 'erased' } });
  expect(provesErasure(parsed)).toBe(false);
  const text = Buffer.from(statement).toString();
  const lie = text
    .replace('"ofFailedStep": true', '"ofFailedStep": false')
    .replace('"level": null', '"level": "clear"');
  expect(problemsOf(certify(Buffer.from(lie)))).toEqual([
    'level says "clear", the agent signed null',
    'ofFailedStep says false, the agent signed true',
  ]);
});

test('the stored parts of a certificate join to exactly the signed bytes', () => {
  const statement = buildStatement(context({ orderedBy: 'user:\n  "evidence": "x",' }));
  const { rest, evidence: payload, evidenceSha256 } = separateEvidence(statement);
  expect(payload).toEqual(Buffer.from(evidence().payload));
  expect(separatedEvidenceSha256(rest)).toBe(evidenceSha256);
  expect(separatedEvidenceSha256(statement)).toBeUndefined();
  expect(Buffer.from(joinEvidence(rest, payload))).toEqual(Buffer.from(statement));
  expect(() => joinEvidence(rest, new Uint8Array(3))).toThrow('is named, not these bytes');
});
