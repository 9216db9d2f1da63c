import { quietLog } from '@rackwright/platform/testing';
import 'reflect-metadata';
import { generateKeyPairSync, webcrypto } from 'node:crypto';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { SubjectAlternativeNameExtension, X509CertificateGenerator } from '@peculiar/x509';
import { VirtualClock } from '@rackwright/bmc/conformance';
import {
  agent,
  bind,
  checkCertificateProof,
  formatJoinToken,
  readP256PublicKey,
  sha256Hex,
  unauthenticated,
} from '@rackwright/messages';
import type { LogFields } from '@rackwright/platform';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { serve } from '@rackwright/rpc';
import { afterEach, describe, expect, test } from 'vitest';
import { MemoryDisk } from '../journal/testing/disk.ts';
import { join, renew, splitAddress } from './enrolment.ts';
import { type AgentIdentity, IdentityFiles } from './identity.ts';
import { IdentityRenewal, renewAtMs } from './renewal.ts';

const clock = nodeClock();
const random = nodeRandom();
const parts = { clock, random };
/** Rounds of a virtual clock: more than any test takes. */
const roundsMax = 10_000;
const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** An issuer behind TLS that shows its certificate, checks proofs and knows one token. */
async function startIssuer() {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: 'CN=issuer',
    notAfter: new Date(clock.nowMs() + 3_600_000),
    signingAlgorithm: algorithm,
    keys,
    extensions: [new SubjectAlternativeNameExtension([{ type: 'ip', value: '127.0.0.1' }])],
  });
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey));
  const body = pkcs8.toString('base64');
  const privateKeyPem = `-----BEGIN PRIVATE KEY-----\n${body}\n-----END PRIVATE KEY-----\n`;
  const certificateChainPem = certificate.toString('pem');
  const asked: agent.IssueCertificateRequest[] = [];
  const answer = { agentEndpoint: 'cp:7441' };
  const token = formatJoinToken(
    sha256Hex(new Uint8Array(certificate.rawData)),
    'r1',
    new Uint8Array(32),
  );
  const server = await serve({
    address: '127.0.0.1',
    port: 0,
    tls: { privateKeyPem, certificateChainPem },
    services: [
      bind(agent.EnrolmentService, {
        issueCertificate: (request) => {
          const { publicKey, nonce, signature, joinToken } = request;
          const key = readP256PublicKey(publicKey);
          if (key === undefined || !checkCertificateProof(key, publicKey, nonce, signature)) {
            throw unauthenticated('PROOF', 'bad proof');
          }
          if (joinToken !== '' && !token.endsWith(joinToken)) {
            throw unauthenticated('TOKEN', 'unknown token');
          }
          asked.push(request);
          return {
            certificatePem: `certificate ${asked.length}`,
            caCertificatePem: certificateChainPem,
            rack: 'racks/r1',
            expireTime: timestampFromMs(clock.nowMs() + 7_000_000),
            agentEndpoint: answer.agentEndpoint,
          };
        },
      }),
    ],
    log: quietLog,
    clock,
    random,
  });
  closers.push(() => server.close());
  return { address: `127.0.0.1:${server.port}`, answer, asked, token };
}

describe('joining a rack', () => {
  test('trusts the CA of the token, proves the key and keeps what it gets', async () => {
    const issuer = await startIssuer();
    const { disk } = new MemoryDisk().open();
    const files = new IdentityFiles(disk, '/state');
    expect(await files.load()).toBeUndefined();
    const identity = await join(parts, await files.key(), issuer.address, issuer.token);
    await files.save(identity);
    expect(await files.load()).toEqual(identity);
    expect(identity).toMatchObject({
      certificatePem: 'certificate 1',
      rack: 'racks/r1',
      agentEndpoint: 'cp:7441',
      enrolmentAddress: issuer.address,
    });
    expect((await disk.stat('/state/agent-key.pem'))?.mode).toBe(0o600);
    expect((await disk.stat('/state/identity.json'))?.mode).toBe(0o600);
  });

  test('asks with the same key again after a lost reply', async () => {
    const issuer = await startIssuer();
    const { disk } = new MemoryDisk().open();
    const files = () => new IdentityFiles(disk, '/state');
    await join(parts, await files().key(), issuer.address, issuer.token);
    await join(parts, await files().key(), issuer.address, issuer.token);
    const [first, second] = issuer.asked;
    expect(first?.publicKey).toEqual(second?.publicKey);
    expect(first?.nonce).not.toEqual(second?.nonce);
  });

  test('renews with its key alone', async () => {
    const issuer = await startIssuer();
    const files = new IdentityFiles(new MemoryDisk().open().disk, '/state');
    const key = await files.key();
    const joined = await join(parts, key, issuer.address, issuer.token);
    const renewed = await renew(parts, key, joined);
    expect(renewed.certificatePem).toBe('certificate 2');
    expect(issuer.asked.at(-1)?.joinToken).toBe('');
  });

  test('refuses another CA, half a token and half an answer', async () => {
    const issuer = await startIssuer();
    const files = new IdentityFiles(new MemoryDisk().open().disk, '/state');
    const key = await files.key();
    const foreign = formatJoinToken('0'.repeat(64), 'r1', new Uint8Array(32));
    await expect(join(parts, key, issuer.address, foreign)).rejects.toThrow(/no certificate/);
    await expect(join(parts, key, issuer.address, 'rwj1.x')).rejects.toThrow(/no join token/);
    expect(issuer.asked).toEqual([]);
    issuer.answer.agentEndpoint = '';
    await expect(join(parts, key, issuer.address, issuer.token)).rejects.toThrow(/expire_time/);
  });

  test('uses no file that others can read, and says how to go on', async () => {
    for (const name of ['agent-key.pem', 'identity.json']) {
      const { disk } = new MemoryDisk().open();
      await disk.writeAtomic(`/state/${name}`, new TextEncoder().encode('{}'), 0o644);
      const files = new IdentityFiles(disk, '/state');
      await expect(files.key()).rejects.toThrow(`chmod 600 /state/${name}`);
    }
    const { disk } = new MemoryDisk().open();
    const files = new IdentityFiles(
      { ...disk, stat: async () => ({ sizeBytes: 2, mode: 0o600, isOurs: false }) },
      '/state',
    );
    await expect(files.load()).rejects.toThrow('another user');
  });

  test('keeps the agent’s key when the file of the key alone is gone', async () => {
    const issuer = await startIssuer();
    const { disk } = new MemoryDisk().open();
    const files = new IdentityFiles(disk, '/state');
    const key = await files.key();
    await files.save(await join(parts, key, issuer.address, issuer.token));
    await disk.remove('/state/agent-key.pem');
    expect((await files.key()).privateKeyPem).toBe(key.privateKeyPem);
  });

  test('keeps the old key until the new one has its certificate', async () => {
    const issuer = await startIssuer();
    const { disk } = new MemoryDisk().open();
    const files = new IdentityFiles(disk, '/state');
    const old = await files.key();
    await files.save(await join(parts, old, issuer.address, issuer.token));
    const next = await files.newKey();
    const wrong = issuer.token.slice(0, -4) + 'AAAA';
    await expect(join(parts, next, issuer.address, `${wrong}x`)).rejects.toThrow();
    expect((await files.key()).privateKeyPem).toBe(old.privateKeyPem);
    // After a lost reply the same new key asks again.
    expect((await files.newKey()).privateKeyPem).toBe(next.privateKeyPem);
    await files.save(await join(parts, next, issuer.address, issuer.token));
    await files.adoptNewKey(next);
    expect((await files.key()).privateKeyPem).toBe(next.privateKeyPem);
    expect((await files.newKey()).privateKeyPem).not.toBe(next.privateKeyPem);
  });

  test('says that half an identity needs a new join, and keeps the key', async () => {
    const { disk } = new MemoryDisk().open();
    const half = new TextEncoder().encode('{"privateKeyPem": "x", "rack": "racks/r1"}');
    await disk.writeAtomic('/state/identity.json', half, 0o600);
    const files = new IdentityFiles(disk, '/state');
    await expect(files.load()).rejects.toThrow('join again');
    expect((await files.key()).privateKeyPem).toContain('PRIVATE KEY');
  });

  test('says that a damaged identity needs a new join', async () => {
    const { disk } = new MemoryDisk().open();
    await disk.writeAtomic('/state/identity.json', new Uint8Array([123]), 0o600);
    await expect(new IdentityFiles(disk, '/state').load()).rejects.toThrow('join again');
  });
});

describe('the renewal', () => {
  const newIdentity = (): AgentIdentity => ({
    privateKeyPem: generateKeyPairSync('ec', { namedCurve: 'P-256' })
      .privateKey.export({ type: 'pkcs8', format: 'pem' })
      .toString(),
    certificatePem: '',
    caCertificatePem: '',
    rack: 'racks/r1',
    enrolmentAddress: '127.0.0.1:1',
    agentEndpoint: '127.0.0.1:1',
    issuedAtMs: 1_000,
    expiresAtMs: 3_001_000,
  });
  const identity = newIdentity();

  test('is due between 50 and 70 % of the life, at a place of its own that stays', () => {
    const places = Array.from({ length: 200 }, newIdentity).map((each) => {
      const part = (renewAtMs(each) - each.issuedAtMs) / (each.expiresAtMs - each.issuedAtMs);
      expect(renewAtMs({ ...each })).toBe(renewAtMs(each));
      return part;
    });
    expect(Math.min(...places)).toBeGreaterThanOrEqual(0.5);
    expect(Math.max(...places)).toBeLessThan(0.7);
    // No quarter of the span is left out or holds most of them.
    for (const from of [0.5, 0.55, 0.6, 0.65]) {
      const inside = places.filter((part) => part >= from && part < from + 0.05);
      expect(inside.length).toBeGreaterThan(20);
      expect(inside.length).toBeLessThan(100);
    }
  });

  test('is tried again and again, later and later, and stops with the agent', async () => {
    const virtual = new VirtualClock();
    const warnings: string[] = [];
    const log = { ...quietLog, warn: (_fields: unknown, text: string) => warnings.push(text) };
    const files = new IdentityFiles(new MemoryDisk().open().disk, '/state');
    const renewal = new IdentityRenewal({ clock: virtual, random, log, files }, identity);
    renewal.start();
    for (let round = 0; round < roundsMax && warnings.length < 3; round += 1) {
      virtual.step();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(warnings.length).toBeGreaterThanOrEqual(3);
    expect(virtual.nowMs()).toBeGreaterThanOrEqual(renewAtMs(identity));
    expect(renewal.current()).toBe(identity);
    renewal.stop();
    expect(virtual.step()).toBe(false);
  });

  test('a certificate that had ended before it was here is tried again', async () => {
    const virtual = new VirtualClock();
    const retries: number[] = [];
    const error = (fields: LogFields) => void retries.push(Number(fields['retryInMs']));
    const log = { ...quietLog, error };
    const files = new IdentityFiles(new MemoryDisk().open().disk, '/state');
    const late = { ...identity, issuedAtMs: 1_000, expiresAtMs: 0 };
    const renewal = new IdentityRenewal({ clock: virtual, random, log, files }, late);
    renewal.start();
    for (let round = 0; round < roundsMax && retries.length < 3; round += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      virtual.step();
    }
    renewal.stop();
    expect(retries.length).toBeGreaterThanOrEqual(3);
    expect(Math.min(...retries)).toBeGreaterThanOrEqual(0);
  });

  test('a certificate that has ended is tried more often than one an hour', async () => {
    const virtual = new VirtualClock();
    const retries: number[] = [];
    const error = (fields: LogFields) => void retries.push(Number(fields['retryInMs']));
    const log = { ...quietLog, error };
    const files = new IdentityFiles(new MemoryDisk().open().disk, '/state');
    const ended = { ...identity, issuedAtMs: -700_000_000, expiresAtMs: -1 };
    const renewal = new IdentityRenewal({ clock: virtual, random, log, files }, ended);
    renewal.start();
    for (let round = 0; round < roundsMax && retries.length < 12; round += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      virtual.step();
    }
    renewal.stop();
    expect(retries.length).toBeGreaterThanOrEqual(12);
    expect(Math.max(...retries)).toBeLessThanOrEqual(30_000);
  });
});

describe('an address', () => {
  test('is host and port', () => {
    expect(splitAddress('cp.example:7440')).toEqual({ host: 'cp.example', port: 7440 });
    expect(splitAddress('[::1]:1')).toEqual({ host: '::1', port: 1 });
    for (const text of ['cp', 'cp:', ':7440', '::1:7440', 'cp:70000', 'https://cp:1']) {
      expect(() => splitAddress(text)).toThrow('host:port');
    }
  });
});
