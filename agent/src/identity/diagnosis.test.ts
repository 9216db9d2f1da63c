import 'reflect-metadata';
import { webcrypto, X509Certificate } from 'node:crypto';
import { BasicConstraintsExtension, X509CertificateGenerator } from '@peculiar/x509';
import { sha256Hex } from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import { certificatesIn, fingerprintsOf, readBundle, signerOf } from './bundle.ts';
import { clockWarning, explainServer } from './diagnosis.ts';

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const dayMs = 86_400_000;
const nowMs = Date.UTC(2026, 10, 20, 12);

async function makeAuthority(name: string) {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const own = await X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    notBefore: new Date(nowMs - 10 * dayMs),
    notAfter: new Date(nowMs + 700 * dayMs),
    signingAlgorithm: algorithm,
    keys,
    extensions: [new BasicConstraintsExtension(true, 0, true)],
  });
  const sign = async (fromMs: number, toMs: number) => {
    const certificate = await X509CertificateGenerator.create({
      subject: 'CN=cp',
      issuer: own.subject,
      publicKey: keys.publicKey,
      signingKey: keys.privateKey,
      signingAlgorithm: algorithm,
      notBefore: new Date(fromMs),
      notAfter: new Date(toMs),
    });
    return new X509Certificate(certificate.toString('pem'));
  };
  const certificate = new X509Certificate(own.toString('pem'));
  return { certificate, pem: `${own.toString('pem')}\n`, sha256: sha256Hex(certificate.raw), sign };
}

const clock = { nowMs: () => nowMs, suspendAwareMs: () => 0, after: () => () => undefined };
const ours = await makeAuthority('ours');
const theirs = await makeAuthority('theirs');
const parts = { clock, host: 'cp.example', port: 7440, caPem: ours.pem, rack: 'racks/r1' };
const good = [await ours.sign(nowMs - dayMs, nowMs + 90 * dayMs), ours.certificate];

describe('the diagnosis of a control plane’s certificate', () => {
  test('finds nothing when all is well', () => {
    expect(explainServer(parts, { chain: good, timeMs: nowMs + 60_000 }, nowMs)).toBeUndefined();
    expect(explainServer(parts, { chain: [], timeMs: nowMs }, nowMs)).toBeUndefined();
  });

  test('names another authority, with both fingerprints and the remedy', async () => {
    const chain = [await theirs.sign(nowMs - dayMs, nowMs + dayMs), theirs.certificate];
    const said = explainServer(parts, { chain, timeMs: nowMs }, nowMs) ?? '';
    expect(said).toContain(`the agent trusts SHA-256 ${ours.sha256}`);
    expect(said).toContain(`shown is ${theirs.sha256}`);
    expect(said).toContain('rackwright rack join-token r1 --replace');
  });

  test('names a clock of this machine that is a day behind', async () => {
    const madeNow = await ours.sign(nowMs - 300_000, nowMs + 90 * dayMs);
    const probed = { chain: [madeNow, ours.certificate], timeMs: nowMs };
    const said = explainServer(parts, probed, nowMs - dayMs) ?? '';
    expect(said).toContain('this machine’s clock says 2026-11-19T12:00:00.000Z');
    expect(said).toContain('the control plane’s says 2026-11-20T12:00:00.000Z');
    expect(said).toContain('good from 2026-11-20T11:55:00.000Z to 2027-02-18T12:00:00.000Z');
    expect(said).toContain('timedatectl');
  });

  test('names a clock of either side that is a day off, while certificates still hold', () => {
    for (const timeMs of [nowMs - dayMs, nowMs + dayMs]) {
      const said = explainServer(parts, { chain: good, timeMs }, nowMs) ?? '';
      expect(said).toContain(new Date(timeMs).toISOString());
      expect(said).toContain(new Date(nowMs).toISOString());
    }
  });

  test('names the agent’s own certificate, ended or not begun by the other clock', async () => {
    const own = await ours.sign(nowMs - 9 * dayMs, nowMs - 2 * dayMs);
    const certificatePem = own.toString();
    const ended = explainServer(
      { ...parts, certificatePem },
      { chain: good, timeMs: nowMs },
      nowMs,
    );
    expect(ended).toContain('to 2026-11-18T12:00:00.000Z');
    expect(ended).toContain('asks for a new one by its registered key');
    expect(ended).not.toContain('timedatectl');
    const timeMs = nowMs - 30 * dayMs;
    const early = explainServer({ ...parts, certificatePem }, { chain: good, timeMs }, nowMs);
    expect(early).toContain('timedatectl');
  });

  test('says of clocks alone that they differ, beyond what is usual', () => {
    expect(clockWarning(nowMs, nowMs + 200_000)).toBeUndefined();
    expect(clockWarning(nowMs, nowMs - dayMs)).toContain('2026-11-19T12:00:00.000Z');
  });
});

describe('a bundle of authorities', () => {
  test('is taken whole, when it holds the one that signs', async () => {
    const pem = readBundle([theirs.pem, ours.pem], ours.sha256);
    expect(fingerprintsOf(certificatesIn(pem))).toEqual([theirs.sha256, ours.sha256]);
    const [leaf] = good;
    if (leaf === undefined) throw new Error('no leaf');
    expect(signerOf(leaf, certificatesIn(pem))?.raw).toEqual(ours.certificate.raw);
    expect(signerOf(leaf, [theirs.certificate])).toBeUndefined();
  });

  test.each([
    ['that is empty', []],
    ['without the one that signs', [theirs.pem]],
    ['with a certificate of no authority', [ours.pem, good[0]?.toString() ?? '']],
    ['with something else', [ours.pem, 'no certificate']],
    ['that is longer than anything real', Array.from({ length: 9 }, () => ours.pem)],
  ])('%s is refused', (_words, pems) => {
    expect(() => readBundle(pems, ours.sha256)).toThrow('bundle');
  });
});
